"""A user's file, for type checkers: the first call and one use of every public name. It is checked, never run."""

import numpy as np

import fiedler
from fiedler import (
    LCGMM,
    LLGC,
    LPI,
    NLE,
    AffinityGraph,
    Directions,
    EmbedKMeans,
    FitHistory,
    FullGraph,
    GaussianMixture,
    GenieLinkage,
    HessianEigenmaps,
    KNNGraph,
    LabelGraph,
    LandmarkGraph,
    LapGMM,
    LaplacianEigenmaps,
    LearnedLaplacian,
    LPIClustering,
    ManifoldClustering,
    PairwiseConstraints,
    RadiusGraph,
    SpectralClustering,
    Whitening,
    choose_n_clusters,
)
from fiedler.errors import FiedlerError, InputError
from fiedler.manifold import ClusterResult, NClustersChoice
from fiedler.metrics import clustering_accuracy

X = np.random.default_rng(0).normal(size=(60, 4))
y: list[int] = [0] * 20 + [1] * 20 + [-1] * 20

labels, memberships, model = fiedler.cluster(X, n_clusters=3)
expected_seconds: float = fiedler.estimate(100_000, 50, n_clusters=10, dtype="float32").seconds
result: ClusterResult = fiedler.cluster([[0.0, 1.0], [2.0, 3.0]], "auto", random_state=0, verbose=True)
report: str = model.report(n_uncertain=3)
n_found: int = model.n_clusters_

pairs = PairwiseConstraints(must_link=[(0, 1)], cannot_link=[(0, 2)], n_samples=60)
graph: AffinityGraph = KNNGraph(n_neighbors=5, weight="heat", connect="mst").build(X)
RadiusGraph(1.0).build(X)
FullGraph("heat", bandwidth=1.5).build(X)
LandmarkGraph(20).build(X)
LabelGraph(KNNGraph(5)).build(X, y)
AffinityGraph.from_matrix(np.eye(3))

ManifoldClustering(n_clusters="auto", graph=graph).fit(X, y, constraints=pairs).predict(X)
SpectralClustering(3, graph=KNNGraph(5), cut="njw").fit(graph).predict(X)
SpectralClustering(3, graph="precomputed").fit(np.eye(3))
LapGMM(3, lam=0.5, init=np.zeros(60, dtype=int)).fit(X, constraints=pairs).predict_proba(X, use_graph=True)
LCGMM(3, pca=2).fit(X).score(X)
SpectralClustering(3).fit_predict(X, constraints=pairs.per_row())
GaussianMixture(3, covariance_type="tied").fit(X).bic(X)
history: FitHistory = GaussianMixture(3).fit(X).history_
GenieLinkage(3, length="local").fit(X).linkage_matrix()
LPIClustering(3, assign="kmeans").fit(X).predict(X)
EmbedKMeans(3, LaplacianEigenmaps(2), n_components="k-1").fit(X).predict(X)
LPI(2, graph=KNNGraph(5)).fit(X).transform(X)
Whitening("edges", graph=KNNGraph(5)).fit(X).transform(X)
Directions(center=False).fit_transform(X)
HessianEigenmaps(2).fit_transform(X)
NLE(3, cut="ncut").fit(X).predict(X)
LaplacianEigenmaps(2, graph=graph).fit_transform(X)
LearnedLaplacian(metric="diagonal").fit(X, y).transform(X)
LLGC(alpha=0.9).fit(X, y).predict_proba(X)

choice: NClustersChoice = choose_n_clusters(X, range(2, 5), estimator=SpectralClustering())
accuracy: float = clustering_accuracy([0, 1], labels)
fiedler.save(model, "model.safetensors")
fiedler.load("model.safetensors")

try:
    fiedler.cluster(X, n_clusters=1000)
except InputError as error:
    code: str = error.code
    base: FiedlerError = error
