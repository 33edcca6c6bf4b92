"""
Labels of a few rows
====================

Where the classes of a few rows are known, :class:`fiedler.LLGC` spreads them over the graph: the more of the graph
there is between a row and a label, the less it hears of it. A clusterer can be told as well.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from fiedler import LLGC, ManifoldClustering
from fiedler.datasets import load, two_moons
from fiedler.plots import ClustersDisplay

# %%
# Two labels a moon, -1 elsewhere.

X, y = two_moons(n_samples=300, noise=0.06, random_state=0)
known = np.concatenate([np.flatnonzero(y == kind)[:2] for kind in (0, 1)])
some = np.full(len(y), -1)
some[known] = y[known]

model = LLGC().fit(X, some)
found = model.predict(X)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
ClustersDisplay.from_predictions(X, some, ax=axes[0], names=False)
ClustersDisplay.from_predictions(X, found, model.predict_proba(X), ax=axes[1], names=False)
for ax, title in zip(axes, ("what is known", f"what follows: {(found == y).mean():.0%} right")):
    ax.scatter(*X[known].T, s=90, facecolors="none", edgecolors="black", linewidths=1.4)
    ax.set(title=title, xticks=[], yticks=[])

# %%
# Digits, and one label in a class, two, five, ten. A classifier that sees the labelled rows alone is shown beside. The
# clusterer finds its clusters with hardly any labels, but one label a class may be too few to name them: some of these
# rows lie among the digits of another class, and names are swapped.

digits = load("digits", normalize="unit")
X, y = digits.X[:500], digits.y[:500]
counts = [1, 2, 5, 10]
right = {"logistic regression": [], "LLGC": [], "ManifoldClustering": []}
for count in counts:
    rows = np.concatenate([np.flatnonzero(y == kind)[:count] for kind in range(10)])
    some = np.full(len(y), -1)
    some[rows] = y[rows]
    unknown = some < 0
    plain = LogisticRegression(C=10, max_iter=1000).fit(X[rows], y[rows])
    right["logistic regression"].append((plain.predict(X[unknown]) == y[unknown]).mean())
    right["LLGC"].append((LLGC().fit(X, some).predict(X[unknown]) == y[unknown]).mean())
    told = ManifoldClustering(10, random_state=0).fit(X, some)
    right["ManifoldClustering"].append((told.labels_ == y)[unknown].mean())

figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
for name, values in right.items():
    ax.plot(counts, values, marker="o", label=name)
ax.set(xlabel="labels a class", ylabel="accuracy on the other rows", xscale="log", xticks=counts, xticklabels=counts)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
