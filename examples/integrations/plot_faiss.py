"""
Neighbours from a faiss index
=============================

``KNNGraph`` uses faiss by itself where rows are many. An index that already exists, of vectors kept nowhere else,
gives its neighbours as they are: distances and numbers become a sparse matrix, and that a graph.
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
# An index, here an HNSW graph. It is asked for one neighbour more than wanted, since every row finds itself first.

index = faiss.IndexHNSWFlat(X.shape[1], 16)
index.add(X)
p = 9
sq_distances, neighbours = index.search(X, p + 1)

# %%
# Self-tuned weights from the squared distances, each edge found from one side counting half. Nothing
# here is dense.

rows = np.repeat(np.arange(len(X)), p + 1)
columns, sq_distances = neighbours.ravel(), np.maximum(sq_distances, 0)
scales = np.sqrt(sq_distances[:, min(7, p)])
weights = np.exp(-sq_distances.ravel() / np.maximum(scales[rows] * scales[columns], 1e-12))
found = (columns >= 0) & (columns != rows)  # -1 is what faiss says where it found fewer
W = sp.csr_array((weights[found], (rows[found], columns[found])), shape=(len(X), len(X)))
graph = AffinityGraph.from_matrix((W + W.T) / 2)
print(graph, "components:", graph.components()[0])
graph = graph.connect(X)  # by the shortest edges, where there is more than one

# %%
# Any model takes the graph in place of rows.

model = ManifoldClustering(5, random_state=0).fit(graph)
print(f"accuracy {clustering_accuracy(y, model.labels_):.1%}")
GraphDisplay.from_graph(graph, PCA(2, random_state=0).fit_transform(X), model.labels_)
plt.show()
