"""
The neighbour graph of an AnnData object
========================================

Single-cell tools store the graph of the cells in ``adata.obsp["connectivities"]``, for example with scanpy's
``pp.neighbors``. :meth:`fiedler.AffinityGraph.from_matrix` accepts that matrix, so that scanpy and fiedler use the same
graph. The clusters are stored in ``adata.obs``.

The cells in this example are simulated. With real data, call ``sc.pp.neighbors(adata)`` instead of building the graph
here.
"""

# sphinx_gallery_thumbnail_number = 2
import anndata as ad
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fiedler import AffinityGraph, KNNGraph, ManifoldClustering
from fiedler.plots import ClustersDisplay, SpectrumDisplay

# %%
# Three cell types of unequal size, with counts of 200 genes, forty of which differ between the types.

rng = np.random.default_rng(0)
types = np.repeat([0, 1, 2], [300, 150, 50])
rates = np.exp(rng.normal(size=200))[None, :].repeat(3, axis=0)
rates[:, :40] *= np.exp(rng.normal(scale=0.8, size=(3, 40)))
counts = rng.poisson(rates[types]).astype(np.float32)
adata = ad.AnnData(counts, obs=pd.DataFrame({"type": pd.Categorical(types)}, index=[f"cell{i}" for i in range(500)]))

# %%
# The usual preprocessing: normalisation to the same total, logarithms, principal components. Then a graph of fifteen
# neighbours.

logs = np.log1p(1e3 * counts / counts.sum(axis=1, keepdims=True))
U, scales, _ = np.linalg.svd(logs - logs.mean(axis=0), full_matrices=False)
adata.obsm["X_pca"] = U[:, :15] * scales[:15]
adata.obsp["connectivities"] = KNNGraph(15, weight="local").build(adata.obsm["X_pca"]).weights

# %%
# The following steps work for any AnnData object with a graph.

graph = AffinityGraph.from_matrix(adata.obsp["connectivities"])
SpectrumDisplay.from_graph(graph, 10)

# %%
# Cluster the graph, and store labels, confidence and memberships.

model = ManifoldClustering(3, random_state=0).fit(graph)
adata.obs["cluster"] = pd.Categorical(model.labels_)
adata.obs["confidence"] = model.memberships_.max(axis=1)
adata.obsm["X_fiedler"] = model.memberships_
print(adata)
print(pd.crosstab(adata.obs["type"], adata.obs["cluster"]))

ClustersDisplay.from_predictions(adata.obsm["X_pca"][:, :2], model.labels_, model.memberships_, y=types)
plt.show()
