"""Every estimator, with settings under which the contract checks run in moments."""

from fiedler import (
    LCGMM,
    LLGC,
    LPI,
    NLE,
    EmbedKMeans,
    GaussianMixture,
    KNNGraph,
    LapGMM,
    LaplacianEigenmaps,
    LearnedLaplacian,
    LPIClustering,
    ManifoldClustering,
    SpectralClustering,
)
from fiedler.baselines import GNMF, NMFClustering

ESTIMATORS = [
    LaplacianEigenmaps(),
    SpectralClustering(n_clusters=3, cut="ncut"),
    SpectralClustering(n_clusters=3, cut="njw"),
    SpectralClustering(n_clusters=3, cut="ratio"),
]

# The printed solver of LapGMM is not among them: as published it may smooth a whole cluster away on pure noise.
MIXTURES = [
    GaussianMixture(n_clusters=3),
    LapGMM(n_clusters=3),
    LapGMM(n_clusters=3, solver="anchored"),
    LCGMM(n_clusters=3),
]

# Of rows, not of graphs: the paper's dot-product weights, LPI's default, ask for rows without negative entries.
LINEAR = [
    LPI(2, graph=KNNGraph(5)),
    LPI(2, graph=KNNGraph(5), solver="regression"),
    LPIClustering(n_clusters=3),
    LPIClustering(n_clusters=3, assign="kmeans"),
    EmbedKMeans(n_clusters=3),
    EmbedKMeans(n_clusters=3, embedding=LPI(graph=KNNGraph(5)), n_components="k-1"),
    NMFClustering(n_clusters=3),
]

SUPERVISED = [
    LLGC(),
    LLGC(normalize=None, alpha=0.5),
    LearnedLaplacian(max_iter=10),
    LearnedLaplacian(metric="diagonal", optimizer="doubling", pair_weight=1.0, max_iter=10),
]

# Of the rows it was fitted to alone: it has no predict.
TRANSDUCTIVE = [GNMF(n_clusters=3, n_init=1, max_iter=50)]

FLAGSHIP = [ManifoldClustering(n_clusters=3)]

CUTS = [
    NLE(n_clusters=3, n_init=2, max_iter=100),
    NLE(n_clusters=3, n_init=2, max_iter=100, cut="ncut", init="auto"),
]
