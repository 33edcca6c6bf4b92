"""A score for clusterers that needs no labels, so that a grid search can compare them."""

from __future__ import annotations

from typing import Any

from .._typing import MatrixLike
from .._validation import check_data
from ..core.backend import to_numpy
from .community import modularity
from .recipes import as_affinity, self_tuned

SCORE_NEIGHBORS = 9  # of the graph on which clusters are scored


class ModularityScoreMixin:
    """``score``: the modularity of the predicted clusters."""

    def score(self: Any, X: MatrixLike, y: Any = None) -> float:
        """Return the modularity of the predicted clusters on the self-tuned graph of nine neighbours of ``X``.

        The graph is the same whatever the model's own graph and number of clusters, so that models can be compared,
        for example by ``GridSearchCV(model, {"graph__n_neighbors": [5, 10, 15]})``. No labels are used.

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
        rows = check_data(X, min_samples=3)
        rows = self._rows(rows) if hasattr(self, "_rows") else rows
        graph = as_affinity(self_tuned(min(SCORE_NEIGHBORS, rows.shape[0] - 1)), rows, validated=True)
        return float(modularity(graph, to_numpy(self.predict(X))))
