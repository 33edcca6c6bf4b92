"""Mistakes that a type checker must find in a user's file: each line marked with an arrow is an error."""

import numpy as np

import fiedler
from fiedler import NLE, GenieLinkage, KNNGraph, LapGMM, ManifoldClustering, SpectralClustering

X = np.zeros((60, 4))

fiedler.cluster(X, n_clusters="three")  # <-
fiedler.cluster(X, n_cluster=3)  # <-
ManifoldClustering(n_clusters=2.5)  # <-
SpectralClustering(3, cut="average")  # <-
GenieLinkage(3, length="euclidean")  # <-
SpectralClustering(3, random_state="0")  # <-
KNNGraph(n_neighbors=5, weight="gauss")  # <-
LapGMM(3, covariance_type="round")  # <-
LapGMM(3, solver="fast")  # <-
LapGMM(3).fit(X, constraints=[(0, 1)])  # <-
LapGMM(3, init="kmean")  # <-
LapGMM(3, operator="heatt")  # <-
NLE(3, init="spectrl")  # <-
fiedler.cluster("nonsense")  # <-
fiedler.cluster(X, graph="knn")  # <-
