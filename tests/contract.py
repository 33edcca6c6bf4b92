"""What the contract tests need to know of an estimator: which data it takes, and which result it gives."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_clusterer
from sklearn.utils import get_tags

from fiedler.core.arrays import to_numpy
from registry_instances import check_instances

INSTANCES = list(check_instances())
LEARN_FROM_LABELS = {"LMNN", "LearnedLaplacian", "MMC"}  # transformers; pairs may do as well


def blobs(n_per_cluster=40, seed=7):
    """Three well separated clusters of rows in five dimensions."""
    rng = np.random.RandomState(seed)
    return np.repeat(6 * np.eye(5)[:3], n_per_cluster, axis=0) + rng.normal(size=(3 * n_per_cluster, 5))


def rows_for(model, X):
    """Return rows that the estimator accepts."""
    return np.abs(X) if get_tags(model).input_tags.positive_only else X


def target_for(model, n):
    """Return labels of some rows for estimators that learn from them, and None for clusterers and embeddings."""
    if is_clusterer(model) or not (is_classifier(model) or type(model).__name__ in LEARN_FROM_LABELS):
        return None
    y = np.arange(n) * 3 // n
    if is_classifier(model) or type(model).__name__ == "LearnedLaplacian":
        y[np.random.RandomState(0).permutation(n)[: n // 2]] = -1
    return y


def fit(model, X, y=None):
    """Fit with the labels that the estimator needs."""
    return model.fit(X, target_for(model, X.shape[0]) if y is None else y)


def result(model, X):
    """Return what the estimator says of rows: labels, classes or coordinates."""
    if hasattr(model, "predict"):
        return to_numpy(model.predict(X))
    values = model.transform(X) if hasattr(model, "transform") else model.labels_
    return values.toarray() if sp.issparse(values) else to_numpy(values)
