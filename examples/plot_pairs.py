"""
Pairs that belong together, and pairs that do not
=================================================

A person who cannot name the classes can often say of two rows whether they belong together. Such pairs go into ``fit``
of four models, and :func:`fiedler.supervision.suggest_pairs` says which ones are worth asking about.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fiedler import LapGMM, LearnedLaplacian, PairwiseConstraints, SpectralClustering
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy
from fiedler.supervision import suggest_pairs

# %%
# Three digits that are easily confused.

digits = load("digits")
rows = np.flatnonzero(np.isin(digits.y, [3, 8, 9]))[:240]
X, y = digits.X[rows], digits.y[rows]
model = LapGMM(3, pca=15, random_state=0).fit(X)
before = clustering_accuracy(y, model.labels_)

# %%
# The model asks about thirty pairs: edges of the graph of which it does not know whether they lie within a cluster. The
# answers come from the true classes here, and from a person elsewhere.

asked = suggest_pairs(model, 30)
same = y[asked[:, 0]] == y[asked[:, 1]]
pairs = PairwiseConstraints(asked[same], asked[~same], n_samples=len(X), strength=3.0)
after = LapGMM(3, pca=15, random_state=0).fit(X, constraints=pairs)
print(pairs)
print(f"nothing known: {before:.1%}; {pairs.n_pairs} pairs: {clustering_accuracy(y, after.labels_):.1%}")

Z = PCA(2, random_state=0).fit_transform(X)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, labels, title in zip(axes, (model.labels_, after.labels_), ("nothing known", "pairs known")):
    ax.scatter(*Z.T, c=labels, cmap="Set2", s=18)
    broken = pairs.violations(labels)
    for links, colour in ((broken.must_link, "black"), (broken.cannot_link, "red")):
        for i, j in links:
            ax.plot(*Z[[i, j]].T, color=colour, lw=1.2)
    ax.set(title=f"{title}: {broken.n_pairs} of {pairs.n_pairs} pairs broken", xticks=[], yticks=[])

# %%
# :class:`fiedler.LearnedLaplacian` is a graph that learns its metric and its scale from the rows, and listens to pairs.
# As a recipe it goes where a graph goes.

few = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
learnt = SpectralClustering(3, graph=LearnedLaplacian(random_state=0), random_state=0).fit(X, constraints=few)
plain = SpectralClustering(3, random_state=0).fit(X)
print(f"spectral clustering, as it is: {clustering_accuracy(y, plain.labels_):.1%}")
print(f"on the learnt graph, {few.n_pairs} pairs: {clustering_accuracy(y, learnt.labels_):.1%}")
plt.show()
