"""
Unrolling a Swiss roll
======================

:class:`fiedler.LaplacianEigenmaps` finds coordinates in which neighbours stay close. On a rolled sheet the first
coordinate runs along the sheet, which principal components cannot follow. Rows that were not part of the fit are
embedded by ``transform``.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

from fiedler import KNNGraph, LaplacianEigenmaps
from fiedler.datasets import swiss_roll

X, part = swiss_roll(n_samples=1500, random_state=0)
X_new, part_new = swiss_roll(n_samples=40, random_state=1)

# %%
# The colour shows the position along the sheet; circles are new rows.

maps = LaplacianEigenmaps(2, graph=KNNGraph(10), random_state=0).fit(X)
flat = PCA(2, random_state=0).fit(X)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, (name, Z, Z_new) in zip(
    axes,
    [
        ("principal components", flat.transform(X), flat.transform(X_new)),
        ("Laplacian eigenmaps", maps.embedding_, maps.transform(X_new)),
    ],
):
    ax.scatter(*Z.T, c=part, cmap="viridis", s=8, linewidths=0)
    ax.scatter(*Z_new.T, c=part_new, cmap="viridis", s=60, edgecolors="black", linewidths=0.8)
    ax.set(title=name, xticks=[], yticks=[])

# %%
# The eigenvalue of a coordinate measures how smooth it is on the graph.

print("eigenvalues", maps.eigenvalues_)
plt.show()
