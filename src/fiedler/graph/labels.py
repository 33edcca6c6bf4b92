"""`LabelGraph`, whose edges come from class labels [lpi, Eq. 5 and section 4.3], and checks of labels.

    W_ij = 1/n_l  if i and j both belong to class l, else 0

The rows of W sum to one, including the self-loop 1/n_l. If only some labels are known, W is combined with a graph of
neighbours: its edges between rows of different known classes are removed, and edges within known classes are added.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from .._typing import GraphLike, LabelsLike, MatrixLike
from .._validation import as_array, check_data, check_labels, check_nonnegative, is_foreign
from ..core.arrays import Array, asarray_like, to_numpy
from ..core.sparse import Sparse, csr_parts, filter_entries, from_scipy_like, row_indices, to_scipy
from ..errors import InputError, shown
from .affinity import AffinityGraph
from .kernels import MAX_FULL_NODES
from .recipes import as_affinity, link_new_points

UNKNOWN = -1  # the label of a row whose class is not known
MISSING = {"None", "nan", "NaN", "<NA>", "NaT"}  # how labels that are missing print
MAX_LABEL = 2**53  # above, floats are not all of the whole numbers


class LabelGraph(BaseEstimator):
    """A graph from class labels, of which all or some are known.

    Parameters
    ----------
    base : recipe, AffinityGraph or matrix, optional
        The graph of neighbours, which links the rows without a label; required if there are any.
    strength : float, default=1.0
        The sum of the weights from a labelled row to its class, in units of the mean degree of ``base`` (1 if None).

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

    def __init__(self, base: GraphLike = None, strength: float = 1.0) -> None:
        self.base = base
        self.strength = strength

    def build(self, X: MatrixLike, y: LabelsLike | None = None) -> AffinityGraph:
        """Build the graph on the rows of ``X``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their classes, -1, NaN or None if unknown.
        """
        return self._build(check_data(X, min_samples=2), y)

    def _build(self, X: Array, y: LabelsLike | None = None) -> AffinityGraph:
        classes = self._classes(y, X.shape[0])
        strength = check_nonnegative(self.strength, "strength")
        if self.base is None:
            return _assemble(None, strength, classes, X)
        neighbors = as_affinity(self.base, X, validated=True)
        degree = float(neighbors.degrees.mean())
        return _assemble(neighbors, strength * degree, classes, X)

    def link(self, X_new: MatrixLike, X: MatrixLike, graph: AffinityGraph) -> Sparse:
        """Return the weights (n_new, n) from new points, which have no label, to the rows of ``X``."""
        return self._link(check_data(X_new), check_data(X), graph)

    def _link(self, X_new: Array, X: Array, graph: AffinityGraph) -> Sparse:
        if self.base is None:
            problem = "new points have no label and so no edges"
            hint = "pass a base to LabelGraph, such as KNNGraph()"
            raise InputError(problem, hint, code="no_base_graph", parameter="base")
        return link_new_points(self.base, X_new, X, graph)

    def _classes(self, y: LabelsLike | None, n: int) -> np.ndarray:
        """Return classes numbered 0, 1, ..., and -1 for unknown."""
        if y is None:
            problem = "LabelGraph is built from labels, but y is None"
            hint = "call fit(X, y), with -1 in y for rows of unknown class"
            raise InputError(problem, hint, code="labels_required", parameter="y")
        known, labels = known_labels(y, n)
        if not known.all() and self.base is None:
            problem = f"{int((~known).sum())} rows have no label and would be isolated"
            hint = "set base=KNNGraph() to link them"
            raise InputError(problem, hint, code="no_base_graph", parameter="base", n_rows=int((~known).sum()))
        classes = np.full(n, UNKNOWN)
        classes[known] = np.unique(labels, return_inverse=True)[1]
        return classes


def as_column(y: Any) -> Any:
    """Return labels in one column as a vector, with scikit-learn's warning; anything else unchanged."""
    if getattr(y, "ndim", 1) != 2:
        return y
    if y.shape[1] != 1 or sp.issparse(y):
        problem = f"y must have one label per row; got shape {tuple(y.shape)}"
        raise InputError(problem, code="wrong_shape", parameter="y")
    return column_or_1d(y, warn=True)


def consecutive(labels: np.ndarray) -> np.ndarray:
    """Number the distinct labels from 0 on, in ascending order."""
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() <= len(labels):
        present = np.bincount(labels) > 0  # no sort, which takes most of the time for a million labels
        return (np.cumsum(present) - 1)[labels]
    return np.unique(labels, return_inverse=True)[1]


def check_node_labels(labels: LabelsLike, n_nodes: int) -> np.ndarray:
    """Validate cluster labels of any array library, one per node, and return them as a NumPy array."""
    return check_labels(to_numpy(labels) if is_foreign(labels) else labels, n_samples=n_nodes)


def mark_unknown(y: LabelsLike) -> Any:
    """Return labels with the number -1 where they are missing: NaN, None, or pandas' NA.

    Examples
    --------
    >>> mark_unknown([0, None, 1]), mark_unknown(np.array([np.nan, 2.0]))
    (array([ 0, -1,  1]), array([-1.,  2.]))
    """
    labels = as_array(y, object if isinstance(y, list | tuple) else None)  # else NaN among names becomes a name
    if labels is None or labels.dtype.kind not in "fO":
        return y if labels is None else labels
    if labels.dtype.kind == "f":
        return np.where(np.isnan(labels), UNKNOWN, labels)
    is_missing = [not isinstance(label, str) and str(label) in MISSING for label in labels.ravel()]
    marked = np.where(np.reshape(is_missing, labels.shape), UNKNOWN, labels)
    if all(isinstance(label, numbers.Real) and not isinstance(label, bool) for label in marked.ravel()):
        return np.array(marked.tolist())
    return marked if any(is_missing) else y


def known_labels(y: LabelsLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have a label, neither the number -1 nor missing, and the labels, as numbers or as strings."""
    labels = check_labels(mark_unknown(y), "y", n_samples=n)
    if labels.dtype.kind in "iufb":
        known = labels != UNKNOWN
        return known, labels[known]
    is_number = [isinstance(label, numbers.Real) for label in labels]
    known = np.array([str(y) != str(UNKNOWN) and not (real and y == UNKNOWN) for y, real in zip(labels, is_number)])
    return known, np.array([str(label) for label in labels[known]])


def check_classes(labels: np.ndarray) -> None:
    """Raise an error if known labels are measurements, such as 0.37, and not classes."""
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        problem = "Unknown label type: y contains continuous values instead of classes"
        hint = "use integers or strings, and -1 for rows of unknown class"
        raise InputError(problem, hint, code="labels_are_not_classes", parameter="y")


def check_partial_labels(y: LabelsLike | None, n: int, k: int | None = None) -> np.ndarray | None:
    """Return the labels in ``y`` that a clusterer may use: 0, 1, ... (below ``k``) for some rows, -1 for the others.

    None if every row has a label, or labels are measurements: pipelines and searches pass true labels and targets to
    every estimator, and a clusterer must not use them.
    """
    if y is None:
        return None
    try:
        host = to_numpy(mark_unknown(y))
    except (ValueError, TypeError):  # a ragged list, or a sparse tensor
        raise InputError(f"y must have one label per row; got {shown(y)}", code="wrong_shape", parameter="y") from None
    known, classes = known_labels(as_column(host), n)
    if known.all() or not known.any():
        return None
    if classes.dtype.kind not in "iuf":
        problem = f"y has the class {shown(str(classes[0]))} for a row, and others are unknown"
        hint = "number the classes from 0 on, as clusters are, and use -1 for unknown"
        raise InputError(problem, hint, code="labels_are_not_numbers", parameter="y")
    if classes.dtype.kind == "f" and (classes != np.round(classes)).any():
        return None
    if classes.min() < 0 or classes.max() >= (MAX_LABEL if k is None else k):
        allowed = "from 0 to 2**53 - 1" if k is None else f"from 0 to {k - 1}"
        problem = f"y must contain {n} labels, {allowed}, or -1 for unknown; got {classes.min()} to {classes.max()}"
        raise InputError(problem, code="invalid_partial_labels", parameter="y", n_samples=n)
    labels = np.full(n, UNKNOWN)
    labels[known] = classes
    return labels


def spread_over_groups(labels: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Copy each label to all rows of its group, where the groups are those of hard must-links."""
    known = labels != UNKNOWN
    of_group = np.full(groups.max() + 1, UNKNOWN)
    of_group[groups[known]] = labels[known]
    if (conflicting := known & (of_group[groups] != labels)).any():
        row = int(np.flatnonzero(conflicting)[0])
        problem = f"y gives two clusters to rows that hard must-links keep together, row {row} among them"
        hint = "correct y, or remove the must-link"
        raise InputError(problem, hint, code="labels_contradict_must_links", parameter="y", row=row)
    return of_group[groups]


def class_cliques(classes: np.ndarray) -> sp.csr_array:
    """Return W of Eq. 5 over the labelled rows, including its diagonal."""
    sizes = np.bincount(classes[classes >= 0])
    if (n_pairs := int((sizes.astype(np.float64) ** 2).sum())) > MAX_FULL_NODES**2:
        problem = f"these classes contain {n_pairs:,} pairs of rows"
        hint = "label fewer rows, or only some rows of each class"
        raise InputError(problem, hint, code="too_many_pairs", n_pairs=n_pairs)
    members = sp.csr_array(
        (np.ones(int(sizes.sum())), (np.flatnonzero(classes >= 0), classes[classes >= 0])),
        shape=(len(classes), len(sizes)),
    )
    return sp.csr_array(members @ sp.diags_array(1.0 / np.maximum(sizes, 1)) @ members.T)


def _assemble(neighbors: AffinityGraph | None, strength: float, classes: np.ndarray, X: Array) -> AffinityGraph:
    """Combine the neighbours' edges, except between different classes, with ``strength`` times the class cliques."""
    cliques = strength * class_cliques(classes)
    edges = filter_entries(cliques, (row_indices(cliques) != cliques.indices) & (cliques.data > 0))
    inherited: dict[str, Any] = {}
    if neighbors is not None:
        W = to_scipy(neighbors.weights)
        ends = classes[row_indices(W)], classes[W.indices]
        edges = edges + filter_entries(W, (ends[0] < 0) | (ends[1] < 0) | (ends[0] == ends[1]))
        inherited = {name: getattr(neighbors, name) for name in ("constants", "recall", "signed")}
    weights = from_scipy_like(edges, X.data if sp.issparse(X) else X)
    data = csr_parts(weights)[0]
    return AffinityGraph(weights, loops=asarray_like(cliques.diagonal(), data, dtype=data.dtype), **inherited)
