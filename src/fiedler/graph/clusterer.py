"""What clusterers with ``predict`` share: ``fit_predict`` with all arguments of ``fit``, and a score without labels."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClusterMixin

from .._typing import Array, LabelsLike, MatrixLike
from .._validation import check_data
from ..core.backend import to_numpy
from ..errors import warn
from .affinity import AffinityGraph
from .community import modularity
from .graph_parameter import as_affinity
from .recipes import default_recipe


class ClustererMixin(ClusterMixin):
    """Mixin for clusterers that label new rows."""

    def fit_predict(self: Any, X: MatrixLike | AffinityGraph, y: LabelsLike | None = None, **fit_params: Any) -> Array:
        """Fit and return the cluster of each row.

        Parameters
        ----------
        X, y, **fit_params
            As in ``fit``.

        Returns
        -------
        labels : array of shape (n,)
        """
        return self.fit(X, y, **fit_params).labels_

    def score(self: Any, X: MatrixLike, y: LabelsLike | None = None) -> float:
        """Return the modularity of the predicted clusters on the default graph of ``X``.

        The graph, of nine self-tuned neighbours, is the same for all models, so that they can be compared, for example
        by ``GridSearchCV(model, {"graph__n_neighbors": [5, 10, 15]})``. No labels are used.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, d)
            At least three rows.
        y : ignored

        Returns
        -------
        modularity : float
            At most 1; larger is better, 0 for clusters as connected as by chance.
        """
        rows = self._transform_rows(check_data(X, min_samples=3))
        graph = as_affinity(default_recipe(rows.shape[0]), rows, validated=True)
        return float(modularity(graph, to_numpy(self.predict(X))))

    def _transform_rows(self, X: Array) -> Array:
        """Return the rows as the model's graph uses them."""
        return X


def warn_if_clusters_are_empty(n_found: int, n_clusters: int, remedy: str, *, stacklevel: int) -> None:
    """Warn if fewer clusters contain rows than were requested."""
    if n_found < n_clusters:
        warn(
            f"only {n_found} of the {n_clusters} clusters contain any rows",
            remedy,
            code="empty_clusters",
            stacklevel=stacklevel + 1,
            n_found=n_found,
            n_clusters=n_clusters,
        )
