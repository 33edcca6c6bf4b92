"""`LabelGraph`: what a person knows of the classes, as edges [lpi, Eq. 5 and section 4.3].

    W_ij = 1/n_l  if i and j both belong to class l, else 0

whose rows sum to one, the self-loop 1/n_l included. Where only some labels are known, W is mixed with a graph of
neighbours: edges between rows known to differ go, edges between rows known to agree come.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from .._validation import check_data, check_labels, check_nonnegative
from ..core.backend import asarray_like, to_numpy
from ..core.sparse import Sparse, csr_parts, filter_entries, from_scipy_like, row_indices, to_scipy
from .affinity import AffinityGraph
from .recipes import FULL_UP_TO, as_affinity, link_new_points

UNKNOWN = -1


class LabelGraph(BaseEstimator):
    """A graph from class labels, all of them or some of them known.

    Parameters
    ----------
    base : recipe, AffinityGraph or matrix, optional
        The graph of neighbours that holds the rows without a label; needed as soon as there are any.
    strength : float, default=1.0
        The sum of the weights from a known row to its class, in units of the mean degree of ``base`` (1 without one).

    Examples
    --------
    >>> from fiedler import LabelGraph
    >>> graph = LabelGraph().build([[0.0], [1.0], [2.0], [3.0]], y=[0, 0, 1, 1])
    >>> graph.weights.toarray()
    array([[0. , 0.5, 0. , 0. ],
           [0.5, 0. , 0. , 0. ],
           [0. , 0. , 0. , 0.5],
           [0. , 0. , 0.5, 0. ]])
    >>> graph.degrees
    array([1., 1., 1., 1.])
    """

    uses_labels = True

    def __init__(self, base: Any = None, strength: float = 1.0) -> None:
        self.base = base
        self.strength = strength

    def build(self, X: Any, y: Any = None) -> AffinityGraph:
        """The graph on the rows of ``X``, whose classes are ``y``, -1 for unknown."""
        X = check_data(X, min_samples=2)
        classes = self._classes(y, X.shape[0])
        strength = check_nonnegative(self.strength, "strength")
        if self.base is None:
            return _assemble(None, strength, classes, X)
        neighbours = as_affinity(self.base, X)
        degree = float(neighbours.degrees.mean())
        return _assemble(neighbours, strength * degree, classes, X)

    def link(self, X_new: Any, X: Any, graph: AffinityGraph) -> Sparse:
        """The weights (n_new, n) from new points, which have no label, to the rows of ``X``."""
        if self.base is None:
            raise ValueError("new points have no label and so no edges; give LabelGraph a base, such as KNNGraph()")
        return link_new_points(self.base, X_new, X, graph)

    def _classes(self, y: Any, n: int) -> np.ndarray:
        """Classes numbered 0, 1, ..., and -1 where unknown."""
        if y is None:
            raise ValueError("LabelGraph is made from labels; call fit(X, y), with -1 in y for rows of unknown class")
        known, labels = known_labels(y, n)
        if not known.all() and self.base is None:
            raise ValueError(
                f"{int((~known).sum())} rows have no label and would stand alone; give base=KNNGraph() to hold them"
            )
        classes = np.full(n, UNKNOWN)
        classes[known] = np.unique(labels, return_inverse=True)[1]
        return classes


def as_column(y: Any) -> Any:
    """Labels in one column as a vector, with scikit-learn's warning; anything else as it is."""
    return column_or_1d(y, warn=True) if getattr(y, "ndim", 1) == 2 else y


def known_labels(y: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows have a label other than the number -1, and those rows' labels, as numbers or as strings."""
    labels = check_labels(y, "y", n_samples=n)
    if labels.dtype.kind in "iufb":
        known = labels != UNKNOWN
        return known, labels[known]
    if any(label is None or label != label for label in labels):  # None, or a NaN among names
        raise ValueError("y holds missing labels; use the number -1 for a row of unknown class")
    known = np.array([not _is_unknown(label) for label in labels])
    return known, np.array([str(label) for label in labels[known]])


def check_partial_labels(y: Any, n: int, k: int | None = None) -> np.ndarray | None:
    """What a clusterer may take from ``y``: clusters 0, 1, ... (below ``k``) of some rows and -1 for the others.

    A ``y`` without any -1, or of names, is not for it: pipelines and searches hand true labels to every estimator, and
    a clusterer must not look at them.
    """
    labels = None if y is None else np.asarray(as_column(to_numpy(y)))
    if labels is not None and labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        labels = labels.astype(np.int64)
    if labels is None or labels.dtype.kind not in "iu" or labels.ndim != 1 or (labels != UNKNOWN).all():
        return None
    if len(labels) != n or labels.min() < UNKNOWN or (k is not None and labels.max() >= k):
        most = "" if k is None else f" to {k - 1}"
        got = f"{len(labels)} from {labels.min()} to {labels.max()}" if len(labels) else "none"
        raise ValueError(f"y must hold {n} clusters from 0{most}, or -1 where unknown; got {got}")
    return labels.astype(np.int64) if (labels >= 0).any() else None


def spread_over_groups(labels: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Labels carried over to all rows of a group that hard must-links hold together."""
    known = labels != UNKNOWN
    of_group = np.full(groups.max() + 1, UNKNOWN)
    of_group[groups[known]] = labels[known]
    if (torn := known & (of_group[groups] != labels)).any():
        row = int(np.flatnonzero(torn)[0])
        raise ValueError(f"y names two clusters for rows that hard must-links hold together, row {row} among them")
    return of_group[groups]


def _is_unknown(label: Any) -> bool:
    return (isinstance(label, numbers.Real) and label == UNKNOWN) or str(label) == str(UNKNOWN)


def class_cliques(classes: np.ndarray) -> sp.csr_array:
    """W of Eq. 5 over the known rows, its diagonal included."""
    sizes = np.bincount(classes[classes >= 0])
    if (pairs := int((sizes.astype(np.float64) ** 2).sum())) > FULL_UP_TO**2:
        raise ValueError(f"these classes hold {pairs:,} pairs of rows; label fewer rows, or a part of each class")
    members = sp.csr_array(
        (np.ones(int(sizes.sum())), (np.flatnonzero(classes >= 0), classes[classes >= 0])),
        shape=(len(classes), len(sizes)),
    )
    return sp.csr_array(members @ sp.diags_array(1.0 / np.maximum(sizes, 1)) @ members.T)


def _assemble(neighbours: AffinityGraph | None, strength: float, classes: np.ndarray, X: Any) -> AffinityGraph:
    """Neighbours' edges that no labels forbid, plus ``strength`` times the cliques of the classes."""
    cliques = strength * class_cliques(classes)
    edges = filter_entries(cliques, (row_indices(cliques) != cliques.indices) & (cliques.data > 0))
    given: dict[str, Any] = {}
    if neighbours is not None:
        W = to_scipy(neighbours.weights)
        ends = classes[row_indices(W)], classes[W.indices]
        edges = edges + filter_entries(W, (ends[0] < 0) | (ends[1] < 0) | (ends[0] == ends[1]))
        given = {name: getattr(neighbours, name) for name in ("constants", "recall", "signed")}
    home = X.data if sp.issparse(X) else X
    weights = from_scipy_like(edges, home)
    data = csr_parts(weights)[0]
    return AffinityGraph(weights, loops=asarray_like(cliques.diagonal(), data, dtype=data.dtype), **given)
