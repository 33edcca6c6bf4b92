"""
Labels of a few rows
====================

If the classes of a few rows are known, :class:`fiedler.LLGC` spreads them over the graph: the influence of a label
decreases with the distance in the graph. Clusterers accept partial labels as well.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from fiedler import LLGC, ManifoldClustering
from fiedler.datasets import load, two_moons
from fiedler.plots import ClustersDisplay

# %%
# Two labels per moon, -1 elsewhere.

X, y = two_moons(n_samples=300, noise=0.06, random_state=0)
known = np.concatenate([np.flatnonzero(y == label)[:2] for label in (0, 1)])
partial_labels = np.full(len(y), -1)
partial_labels[known] = y[known]

model = LLGC().fit(X, partial_labels)
predicted = model.predict(X)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
ClustersDisplay.from_predictions(X, partial_labels, ax=axes[0], names=False)
ClustersDisplay.from_predictions(X, predicted, model.predict_proba(X), ax=axes[1], names=False)
for ax, title in zip(axes, ("known labels", f"predicted labels: {(predicted == y).mean():.0%} correct")):
    ax.scatter(*X[known].T, s=90, facecolors="none", edgecolors="black", linewidths=1.4)
    ax.set(title=title, xticks=[], yticks=[])

# %%
# Digits with one, two, five and ten labels per class, compared with a classifier that uses the labelled rows only. The
# clusterer needs hardly any labels to find the clusters, but one label per class may not be enough to match clusters
# with classes: some of the labelled rows are in the cluster of another class, and the names are swapped.

digits = load("digits", normalize="unit")
X, y = digits.X[:500], digits.y[:500]
counts = [1, 2, 5, 10]
accuracy = {"logistic regression": [], "LLGC": [], "ManifoldClustering": []}
for count in counts:
    rows = np.concatenate([np.flatnonzero(y == label)[:count] for label in range(10)])
    partial_labels = np.full(len(y), -1)
    partial_labels[rows] = y[rows]
    unknown = partial_labels < 0
    classifier = LogisticRegression(C=10, max_iter=1000).fit(X[rows], y[rows])
    accuracy["logistic regression"].append((classifier.predict(X[unknown]) == y[unknown]).mean())
    accuracy["LLGC"].append((LLGC().fit(X, partial_labels).predict(X[unknown]) == y[unknown]).mean())
    model = ManifoldClustering(10, random_state=0).fit(X, partial_labels)
    accuracy["ManifoldClustering"].append((model.labels_ == y)[unknown].mean())

figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
for name, values in accuracy.items():
    ax.plot(counts, values, marker="o", label=name)
ax.set(xlabel="labels per class", ylabel="accuracy on the other rows", xscale="log", xticks=counts, xticklabels=counts)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
