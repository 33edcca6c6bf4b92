"""
The neighbour graph of an AnnData object
========================================

Single-cell tools store the graph of the cells in ``adata.obsp["connectivities"]``, for example with scanpy's
``pp.neighbors``. :func:`fiedler.integrations.anndata.cluster` uses that graph, so that scanpy and fiedler have the same
one, and stores clusters and memberships in the object, where scanpy's plots find them.

The cells in this example are simulated. With real data, call ``sc.pp.neighbors(adata)`` instead of building the graph
here.
"""

# sphinx_gallery_thumbnail_number = 2
import anndata as ad
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import fiedler
from fiedler import AffinityGraph, KNNGraph
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
# Cluster the cells. Labels, confidence and memberships are stored in ``adata``; with scanpy,
# ``sc.pl.umap(adata, color=["fiedler", "fiedler_confidence"])`` draws them.

model = fiedler.integrations.anndata.cluster(adata, 3)
print(adata)
print(pd.crosstab(adata.obs["type"], adata.obs["fiedler"]))

ClustersDisplay.from_predictions(adata.obsm["X_pca"][:, :2], model.labels_, model.memberships_, y=types)
plt.show()
