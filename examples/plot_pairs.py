"""
Must-link and cannot-link pairs
===============================

A person who cannot name the classes can often say whether two rows belong together. Such pairs can be passed to ``fit``
of the clusterers, and :func:`fiedler.supervision.suggest_pairs` suggests which pairs to ask about.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fiedler import LapGMM, LearnedLaplacian, PairwiseConstraints, SpectralClustering
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy
from fiedler.supervision import suggest_pairs

# %%
# Three digits that are often confused.

digits = load("digits")
rows = np.flatnonzero(np.isin(digits.y, [3, 8, 9]))[:240]
X, y = digits.X[rows], digits.y[rows]
model = LapGMM(3, pca=15, random_state=0).fit(X)
before = clustering_accuracy(y, model.labels_)

# %%
# The model suggests thirty pairs: edges of the graph for which it is uncertain whether both ends are in the same
# cluster. Here the answers come from the true classes; in practice they come from a person.

suggested = suggest_pairs(model, 30)
same = y[suggested[:, 0]] == y[suggested[:, 1]]
pairs = PairwiseConstraints(suggested[same], suggested[~same], n_samples=len(X), strength=3.0)
after = LapGMM(3, pca=15, random_state=0).fit(X, constraints=pairs)
print(pairs)
print(f"without pairs: {before:.1%}; with {pairs.n_pairs} pairs: {clustering_accuracy(y, after.labels_):.1%}")

Z = PCA(2, random_state=0).fit_transform(X)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, labels, title in zip(axes, (model.labels_, after.labels_), ("without pairs", "with pairs")):
    ax.scatter(*Z.T, c=labels, cmap="Set2", s=18)
    violated = pairs.violations(labels)
    for links, color in ((violated.must_link, "black"), (violated.cannot_link, "red")):
        for i, j in links:
            ax.plot(*Z[[i, j]].T, color=color, lw=1.2)
    ax.set(title=f"{title}: {violated.n_pairs} of {pairs.n_pairs} pairs violated", xticks=[], yticks=[])

# %%
# :class:`fiedler.LearnedLaplacian` learns the metric and the scale of a graph from the rows and from pairs. It is a
# recipe and can be used wherever a graph is expected.

few = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
learned = SpectralClustering(3, graph=LearnedLaplacian(random_state=0), random_state=0).fit(X, constraints=few)
plain = SpectralClustering(3, random_state=0).fit(X)
print(f"spectral clustering, default graph: {clustering_accuracy(y, plain.labels_):.1%}")
print(f"spectral clustering, graph learned with {few.n_pairs} pairs: {clustering_accuracy(y, learned.labels_):.1%}")
plt.show()
