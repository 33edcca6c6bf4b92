"""
The graph and its spectrum
==========================

Everything here begins with a graph. It is an object of its own: build it once, look at it, hand it to several models.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt

from fiedler import KNNGraph, SpectralClustering
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.datasets import two_moons
from fiedler.plots import GraphDisplay, SpectrumDisplay

X, y = two_moons(n_samples=300, noise=0.05, random_state=3)

# %%
# Seven neighbours, with weights that fall with the distance in the measure of each row's own neighbourhood. An edge
# found from one side only counts half. Where the graph falls apart, ``connect="mst"`` joins its parts by their shortest
# possible edges.

graph = KNNGraph(7, weight="local", symmetrize="mean", connect="mst").build(X)
print(graph, "connected components:", graph.components()[0])
GraphDisplay.from_graph(graph, X)

# %%
# The smallest eigenvalues of the normalised Laplacian. There are as many zeros as components, and the second value,
# nearly zero, says that the graph nearly falls into two. The widest gap comes later: long clusters have slow modes of
# their own, in pairs here, one a moon. On such data a gap alone is no guide to the number of clusters.

SpectrumDisplay.from_graph(graph, 10, n_clusters=2)

# %%
# The vector of the second eigenvalue is the Fiedler vector, after which the library is named: it changes sign where the
# graph is thinnest.

pairs = smallest_eigenpairs(graph, 2, kind="random_walk")
fiedler_vector = pairs.vectors[:, 1]
print(f"eigenvalue {pairs.values[1]:.2e}, residual {pairs.residuals[1]:.0e}")
figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
most = abs(fiedler_vector).max()
points = ax.scatter(*X.T, c=fiedler_vector, cmap="RdBu", vmin=-most, vmax=most, s=14, edgecolors="0.4", linewidths=0.3)
figure.colorbar(points, label="Fiedler vector")
ax.set(xticks=[], yticks=[])

# %%
# Spectral clustering does this with as many vectors as there are clusters. The built graph goes in as it is.

model = SpectralClustering(2, graph=graph, random_state=0).fit(X)
GraphDisplay.from_estimator(model, X)
plt.show()
