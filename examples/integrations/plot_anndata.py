"""
The neighbour graph of an AnnData object
========================================

Single-cell tools keep the graph of the cells in ``adata.obsp["connectivities"]``, where scanpy's ``pp.neighbors`` puts
it. :meth:`fiedler.AffinityGraph.from_matrix` takes that matrix, so that one graph serves scanpy and fiedler, and the
clusters go back to ``adata.obs``.

The cells here are made up, and so is the graph; with real ones, ``sc.pp.neighbors(adata)`` comes first.
"""

# sphinx_gallery_thumbnail_number = 2
import anndata as ad
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fiedler import AffinityGraph, KNNGraph, ManifoldClustering
from fiedler.plots import ClustersDisplay, SpectrumDisplay

# %%
# Three cell types of unequal size, counts of 200 genes, of which forty differ between the types.

rng = np.random.default_rng(0)
kinds = np.repeat([0, 1, 2], [300, 150, 50])
rates = np.exp(rng.normal(size=200))[None, :].repeat(3, axis=0)
rates[:, :40] *= np.exp(rng.normal(scale=0.8, size=(3, 40)))
counts = rng.poisson(rates[kinds]).astype(np.float32)
adata = ad.AnnData(counts, obs=pd.DataFrame({"type": pd.Categorical(kinds)}, index=[f"cell{i}" for i in range(500)]))

# %%
# Normalised to the same total, logarithms, principal components: the usual way, and a graph of fifteen neighbours.

logs = np.log1p(1e3 * counts / counts.sum(axis=1, keepdims=True))
U, scales, _ = np.linalg.svd(logs - logs.mean(axis=0), full_matrices=False)
adata.obsm["X_pca"] = U[:, :15] * scales[:15]
adata.obsp["connectivities"] = KNNGraph(15, weight="local").build(adata.obsm["X_pca"]).weights

# %%
# From here on it is any AnnData object.

graph = AffinityGraph.from_matrix(adata.obsp["connectivities"])
SpectrumDisplay.from_graph(graph, 10)

# %%
# Clusters of the graph, with memberships.

model = ManifoldClustering(3, random_state=0).fit(graph)
adata.obs["cluster"] = pd.Categorical(model.labels_)
adata.obs["confidence"] = model.memberships_.max(axis=1)
adata.obsm["X_fiedler"] = model.memberships_
print(adata)
print(pd.crosstab(adata.obs["type"], adata.obs["cluster"]))

ClustersDisplay.from_predictions(adata.obsm["X_pca"][:, :2], model.labels_, model.memberships_, y=kinds)
plt.show()
