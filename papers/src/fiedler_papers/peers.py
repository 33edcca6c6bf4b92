"""Methods in common use today, as clusterers with ``fit`` and ``labels_``.

Protocols refer to these classes by name, and archived records are matched by a digest of the protocol.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import HDBSCAN, SpectralClustering
from sklearn.mixture import GaussianMixture

from fiedler._typing import Array
from fiedler.core.pca import fit_pca
from fiedler.errors import SingularCovarianceError

RIDGES = (1e-6, 1e-4, 1e-2)  # added to the diagonal of covariances, tried in this order


class Reduced(ClusterMixin, BaseEstimator):
    """Fit a mixture to principal components: a number of them, or a share of the variance."""

    def __init__(
        self, model: Any = None, pca: float = 0.98, n_clusters: int = 8, random_state: int | None = None
    ) -> None:
        self.model = model
        self.pca = pca
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: Array, y: object = None) -> Reduced:
        """Project the rows of ``X``, then fit the mixture."""
        size = self.pca if self.pca < 1 else min(self.pca, min(X.shape) - 1)
        Z = fit_pca(X, size, random_state=self.random_state)(X)
        model = clone(self.model).set_params(n_components=self.n_clusters, random_state=self.random_state).fit(Z)
        self.labels_, self.n_iter_, self.converged_ = model.predict(Z), model.n_iter_, model.converged_
        self.objective_ = float(model.lower_bound_)
        return self


class UMAPMixture(ClusterMixin, BaseEstimator):
    """Fit a Gaussian mixture to a UMAP embedding in ten dimensions (20 neighbours, min_dist 0)."""

    def __init__(
        self, n_clusters: int = 8, n_components: int = 10, n_neighbors: int = 20, random_state: int | None = None
    ):
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit(self, X: Array, y: object = None) -> UMAPMixture:
        """Embed the rows, then fit the mixture, with a larger ridge where a covariance is singular."""
        from umap import UMAP  # of the extra 'peers'; a plan skips this method where it is not installed

        n, seed = X.shape[0], self.random_state
        size, neighbors = min(self.n_components, n - 2), min(self.n_neighbors, n - 1)
        embedding = UMAP(
            n_components=size, n_neighbors=neighbors, min_dist=0.0, init="spectral" if n > 60 else "random",
            random_state=seed,
        )  # fmt: skip
        rows = sp.csr_matrix(X, dtype=np.float32) if sp.issparse(X) else X  # it accepts no sparse arrays
        Z = embedding.fit_transform(rows).astype(np.float64)
        for ridge in RIDGES:
            try:
                mixture = GaussianMixture(self.n_clusters, n_init=5, random_state=seed, reg_covar=ridge).fit(Z)
            except ValueError:  # a covariance that is not positive definite
                continue
            self.labels_, self.objective_ = mixture.predict(Z), float(mixture.lower_bound_)
            self.n_iter_, self.converged_ = mixture.n_iter_, mixture.converged_
            return self
        raise SingularCovarianceError(
            f"covariances are not positive definite even with {RIDGES[-1]:g} on the diagonal", value=RIDGES[-1]
        )


class SpectralPeer(ClusterMixin, BaseEstimator):
    """Run scikit-learn's SpectralClustering on ten nearest neighbours, its default number."""

    def __init__(self, n_clusters: int = 8, n_neighbors: int = 10, random_state: int | None = None) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit(self, X: Array, y: object = None) -> SpectralPeer:
        """Cluster the rows of ``X``."""
        neighbors = min(self.n_neighbors, X.shape[0] - 1)
        model = SpectralClustering(
            self.n_clusters, affinity="nearest_neighbors", n_neighbors=neighbors, random_state=self.random_state
        )
        self.labels_ = model.fit(X).labels_
        return self


class Density(ClusterMixin, BaseEstimator):
    """Run scikit-learn's HDBSCAN with its defaults, without K; its noise counts as a cluster.

    Sparse rows are compared by cosine from a dense matrix of distances, as scikit-learn's HDBSCAN accepts no sparse
    rows.
    """

    def fit(self, X: Array, y: object = None) -> Density:
        """Cluster the rows of ``X``."""
        if sp.issparse(X):
            cosines = (X @ X.T).toarray()
            model = HDBSCAN(metric="precomputed").fit(np.sqrt(np.maximum(2 - 2 * cosines, 0)))
        else:
            model = HDBSCAN(copy=True).fit(X)
        self.labels_ = model.labels_ - model.labels_.min()
        return self
