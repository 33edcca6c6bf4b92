"""
The graph and its spectrum
==========================

All methods of fiedler work on a graph of the rows. The graph is an object of its own: it can be built once, inspected,
and passed to several models.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt

from fiedler import KNNGraph, SpectralClustering
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.datasets import two_moons
from fiedler.plots import GraphDisplay, SpectrumDisplay

X, y = two_moons(n_samples=300, noise=0.05, random_state=3)

# %%
# Seven neighbours, with weights that decrease with the distance relative to the distances in the neighbourhood of each
# row. An edge that is found from one side only has half the weight. If the graph is disconnected, ``connect="mst"``
# joins its components by the shortest possible edges.

graph = KNNGraph(7, weight="local", symmetrize="mean", connect="mst").build(X)
print(graph, "connected components:", graph.components()[0])
GraphDisplay.from_graph(graph, X)

# %%
# The smallest eigenvalues of the normalised Laplacian. There are as many zeros as components. The second eigenvalue is
# nearly zero, because the graph nearly consists of two components. The largest gap comes later: elongated clusters have
# small eigenvalues of their own, here in pairs, one for each moon. On such data, the largest gap alone does not show
# the number of clusters.

SpectrumDisplay.from_graph(graph, 10, n_clusters=2)

# %%
# The eigenvector of the second eigenvalue is the Fiedler vector, after which the library is named. It changes sign
# where the graph is thinnest.

pairs = smallest_eigenpairs(graph, 2, kind="random_walk")
fiedler_vector = pairs.vectors[:, 1]
print(f"eigenvalue {pairs.values[1]:.2e}, residual {pairs.residuals[1]:.0e}")
figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
limit = abs(fiedler_vector).max()
points = ax.scatter(
    *X.T, c=fiedler_vector, cmap="RdBu", vmin=-limit, vmax=limit, s=14, edgecolors="0.4", linewidths=0.3
)
figure.colorbar(points, label="Fiedler vector")
ax.set(xticks=[], yticks=[])

# %%
# Spectral clustering uses as many eigenvectors as there are clusters. It accepts the graph as a parameter.

model = SpectralClustering(2, graph=graph, random_state=0).fit(X)
GraphDisplay.from_estimator(model, X)
plt.show()
