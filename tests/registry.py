"""Every estimator, with settings under which the contract checks run in moments."""

from fiedler import LCGMM, GaussianMixture, LapGMM, LaplacianEigenmaps, SpectralClustering

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
