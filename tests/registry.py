"""Every estimator, with settings under which the contract checks run in moments."""

from fiedler import LaplacianEigenmaps, SpectralClustering

ESTIMATORS = [
    LaplacianEigenmaps(),
    SpectralClustering(n_clusters=3, cut="ncut"),
    SpectralClustering(n_clusters=3, cut="njw"),
    SpectralClustering(n_clusters=3, cut="ratio"),
]
