"""Rows to draw: their labels, memberships and graph as a fitted model gives them, in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data
from ..core.backend import convert_like, to_numpy
from ..errors import InputError
from ..graph.affinity import AffinityGraph

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from .._typing import Array, MatrixLike

LABEL_ATTRIBUTES = ("labels_", "transduction_")
MEMBERSHIP_ATTRIBUTES = ("memberships_", "label_distributions_")


class LabeledRows(NamedTuple):
    """Rows and what a model gives for them; None where it gives nothing."""

    labels: np.ndarray | None
    memberships: np.ndarray | None = None
    graph: AffinityGraph | None = None
    X: Array | None = None
    feature_names: tuple[str, ...] | None = None


def labeled_rows(model: BaseEstimator, X: MatrixLike | AffinityGraph | None = None) -> LabeledRows:
    """Return the labels of ``X``: those of the fit for the training rows (or None), those of ``predict`` for others."""
    check_is_fitted(model)
    data, name = as_rows(X), type(model).__name__
    if data is None or was_fitted_to(model, data):
        rows = training_rows(model, data)
    else:
        memberships = to_numpy(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
        rows = LabeledRows(to_numpy(model.predict(X)), memberships, None, data, feature_names(model))
    if rows.labels is None:
        raise InputError(
            f"{name} has no labels to draw", "pass a fitted clusterer", code="model_without_labels", estimator=name
        )
    if data is not None and data.shape[0] != len(rows.labels):
        raise InputError(
            f"X has {data.shape[0]} rows, but {name} has labels for the {len(rows.labels)} training rows only",
            "pass the training rows",
            code="not_the_training_rows",
            n_rows=data.shape[0],
            n_training_rows=len(rows.labels),
        )
    return rows


def training_rows(model: BaseEstimator, X: Array | None = None) -> LabeledRows:
    """Return what a model stores of the rows it was fitted to."""
    check_is_fitted(model)
    labels = _first_attribute(model, LABEL_ATTRIBUTES)
    memberships = _first_attribute(model, MEMBERSHIP_ATTRIBUTES)
    graph = getattr(model, "graph_", None)
    graph = graph if isinstance(graph, AffinityGraph) else None
    return LabeledRows(labels, memberships, graph, X, feature_names(model))


def as_rows(X: MatrixLike | AffinityGraph | None) -> Array | None:
    """Validate ``X`` as rows; None for a graph, whose nodes have no coordinates."""
    return None if X is None or isinstance(X, AffinityGraph) else check_data(X)


def check_memberships(memberships: Array, n: int | None = None) -> np.ndarray:
    """Validate memberships: one row per sample, one column per cluster, entries between 0 and 1."""
    array = to_numpy(memberships)
    if array.ndim != 2 or 0 in array.shape or n not in (None, len(array)):
        raise InputError(
            f"memberships must have shape ({'n' if n is None else n}, n_clusters), one row per sample; "
            f"got shape {array.shape}",
            code="wrong_shape",
            parameter="memberships",
            shape=array.shape,
        )
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1 + 1e-6):
        raise InputError(
            "memberships must lie between 0 and 1",
            "scale the rows to sum to one",
            code="invalid_memberships",
            parameter="memberships",
        )
    return array.astype(np.float64)


def was_fitted_to(model: Any, X: Array) -> bool:
    """Whether ``X`` are the training rows, as far as the model can tell; without ``predict`` they must be."""
    if not hasattr(model, "predict"):
        return True
    if not hasattr(model, "_fit_X"):
        return False
    training_X = model._rows_of_fit() if hasattr(model, "_rows_of_fit") else model._fit_X
    if training_X is None:  # fitted on a graph or an affinity matrix
        return True
    if tuple(training_X.shape) != tuple(X.shape):
        return False
    X = convert_like(X, training_X)
    if sp.issparse(training_X):
        return bool((training_X != X).nnz == 0)
    return bool(np.array_equal(to_numpy(X), to_numpy(training_X)))


def n_clusters_of(model: BaseEstimator) -> int | None:
    """Return the number of clusters that a model found or was asked for."""
    for name in ("n_clusters_", "n_clusters"):
        if isinstance(number := getattr(model, name, None), (int, np.integer)):
            return int(number)
    labels = _first_attribute(model, LABEL_ATTRIBUTES)
    return None if labels is None else len(np.unique(labels))


def feature_names(model: BaseEstimator) -> tuple[str, ...] | None:
    """Return the names of the columns, if the training data had names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def _first_attribute(model: BaseEstimator, names: tuple[str, ...]) -> np.ndarray | None:
    for name in names:
        if (value := getattr(model, name, None)) is not None:
            return to_numpy(value)
    return None
