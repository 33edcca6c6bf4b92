"""What a fitted model says of rows: labels, memberships and the graph, on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data
from ..core.backend import convert_like, to_numpy
from ..graph.affinity import AffinityGraph

LABELS = ("labels_", "transduction_")
MEMBERSHIPS = ("memberships_", "label_distributions_")


class Shown(NamedTuple):
    """Rows and what is known of them; None where it is not known."""

    labels: np.ndarray | None
    memberships: np.ndarray | None = None
    graph: AffinityGraph | None = None
    rows: Any = None
    feature_names: tuple[str, ...] | None = None


def shown(model: Any, X: Any = None) -> Shown:
    """The labels of ``X``: those of the fit for the rows it saw (or None), of ``predict`` for others."""
    check_is_fitted(model)
    rows = as_rows(X)
    if rows is None or was_fitted_to(model, rows):
        found = kept(model, rows)
    else:
        memberships = to_numpy(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
        found = Shown(to_numpy(model.predict(X)), memberships, None, rows, feature_names(model))
    if found.labels is None:
        raise ValueError(f"{type(model).__name__} has no labels to draw; give a fitted clusterer")
    if rows is not None and rows.shape[0] != len(found.labels):
        raise ValueError(
            f"X has {rows.shape[0]} rows, but {type(model).__name__} labels only the {len(found.labels)} it was fitted "
            "to; pass those"
        )
    return found


def kept(model: Any, rows: Any = None) -> Shown:
    """What a model keeps of the rows it was fitted to."""
    check_is_fitted(model)
    labels, memberships = (_first(model, names) for names in (LABELS, MEMBERSHIPS))
    graph = getattr(model, "graph_", None)
    graph = graph if isinstance(graph, AffinityGraph) else None
    return Shown(labels, memberships, graph, rows, feature_names(model))


def as_rows(X: Any) -> Any:
    """Data as rows; None for a graph, whose nodes have no coordinates."""
    return None if X is None or isinstance(X, AffinityGraph) else check_data(X)


def was_fitted_to(model: Any, rows: Any) -> bool:
    """Whether these are the rows of the fit, as far as the model can tell; without ``predict`` they must be."""
    if not hasattr(model, "predict"):
        return True
    if not hasattr(model, "_fit_X"):
        return False
    if (seen := model._fit_X) is None:  # fitted on a graph or an affinity matrix
        return True
    if tuple(seen.shape) != tuple(rows.shape):
        return False
    rows = convert_like(rows, seen)
    return (rows != seen).nnz == 0 if sp.issparse(seen) else bool(np.array_equal(to_numpy(rows), to_numpy(seen)))


def n_clusters(model: Any) -> int | None:
    """How many clusters a model was told to find or has found."""
    for name in ("n_clusters_", "n_clusters"):
        if isinstance(number := getattr(model, name, None), (int, np.integer)):
            return int(number)
    labels = _first(model, LABELS)
    return None if labels is None else len(np.unique(labels))


def feature_names(model: Any) -> tuple[str, ...] | None:
    """The names of the columns, where the data had some."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def _first(model: Any, names: tuple[str, ...]) -> np.ndarray | None:
    for name in names:
        if (value := getattr(model, name, None)) is not None:
            return to_numpy(value)
    return None
