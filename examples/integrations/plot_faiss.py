"""
Neighbours from a faiss index
=============================

:class:`fiedler.KNNGraph` searches with faiss if ``method="faiss"``. The neighbours of an existing index can be used as
well: the distances and row numbers that it returns are converted to a sparse matrix, and the matrix to a graph.
"""

import faiss
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from fiedler import AffinityGraph, ManifoldClustering
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy
from fiedler.plots import GraphDisplay

faiss.omp_set_num_threads(1)
digits = load("digits", classes=5, normalize="unit")
X, y = digits.X[:600].astype(np.float32), digits.y[:600]

# %%
# An index, here an HNSW graph. The search includes one additional neighbour, since every row is its own nearest
# neighbour.

index = faiss.IndexHNSWFlat(X.shape[1], 16)
index.add(X)
p = 9
sq_distances, neighbors = index.search(X, p + 1)

# %%
# Self-tuned weights from the squared distances. An edge that is found from one side only has half the weight. No dense
# matrix is formed.

rows = np.repeat(np.arange(len(X)), p + 1)
columns, sq_distances = neighbors.ravel(), np.maximum(sq_distances, 0)
scales = np.sqrt(sq_distances[:, min(7, p)])
weights = np.exp(-sq_distances.ravel() / np.maximum(scales[rows] * scales[columns], 1e-12))
is_edge = (columns >= 0) & (columns != rows)  # faiss returns -1 if it finds fewer neighbours
W = sp.csr_array((weights[is_edge], (rows[is_edge], columns[is_edge])), shape=(len(X), len(X)))
graph = AffinityGraph.from_matrix((W + W.T) / 2)
print(graph, "components:", graph.components()[0])
graph = graph.connect(X)  # joins the components, if there are several, by the shortest edges

# %%
# A graph can be passed to the model in place of rows.

model = ManifoldClustering(5, random_state=0).fit(graph)
print(f"accuracy {clustering_accuracy(y, model.labels_):.1%}")
GraphDisplay.from_graph(graph, PCA(2, random_state=0).fit_transform(X), model.labels_)
plt.show()
