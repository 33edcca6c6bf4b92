"""Questions to a person about pairs of rows, and cross-validation with their answers.

The pairs to ask about are those whose answer is most uncertain, among typical rows.

An edge (i, j) of the graph joins similar rows. With memberships q the model gives them the probability p = q_i'q_j of
belonging together; the answer is most informative where the entropy of p is largest, at the boundary between
clusters, and least informative at outliers, which resemble few other rows. So edges are ranked by

    H(q_i'q_j) · min(1, d_i/d̃, d_j/d̃),    d̃ the median degree,

and selected from the top. Rows that were selected, and their nearest neighbours, are not selected again, since they
would have the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import check_is_fitted

from .._typing import LabelsLike, MatrixLike, RandomState
from .._validation import check_int, check_seed
from ..core.arrays import to_numpy
from ..core.sparse import row_indices, to_scipy
from ..errors import InputError, InputTypeError
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints, check_constraints, split_by_sign
from ..graph.smoothing import resolvent

MAX_RANKED_EDGES = 2_000_000  # of a larger graph only the heaviest edges are ranked
N_EXCLUDED_NEIGHBORS = 8  # nearest neighbours of a selected row that are not selected any more
SMOOTHING_ALPHA = 0.9  # how far hard labels are spread over the graph to become memberships


def suggest_pairs(
    model: BaseEstimator, n_pairs: int = 10, *, constraints: PairwiseConstraints | None = None
) -> np.ndarray:
    """Suggest pairs of rows to ask a person about, the most informative first.

    Parameters
    ----------
    model : fitted estimator
        A model with ``graph_`` and one of ``memberships_``, ``label_distributions_`` and ``labels_``.
    n_pairs : int, default=10
        The maximum number of pairs.
    constraints : PairwiseConstraints, optional
        Known pairs; neither they nor pairs that follow from them are suggested.

    Returns
    -------
    ndarray of shape (at most n_pairs, 2)
        Row numbers. Fewer than ``n_pairs`` if the graph has not enough edges that are far enough apart.

    Examples
    --------
    >>> from fiedler import KNNGraph, SpectralClustering
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.supervision import PairwiseConstraints, suggest_pairs
    >>> X, y = two_moons(n_samples=300, noise=0.15, random_state=0)
    >>> model = SpectralClustering(2, KNNGraph(10), random_state=0).fit(X)
    >>> asked = suggest_pairs(model, 20)
    >>> together = y[asked[:, 0]] == y[asked[:, 1]]  # the answers of the person
    >>> pairs = PairwiseConstraints(asked[together], asked[~together], len(X))
    >>> model.fit(X, constraints=pairs).labels_.shape
    (300,)
    """
    check_is_fitted(model)
    graph = getattr(model, "graph_", None)
    if not isinstance(graph, AffinityGraph):
        problem = f"{type(model).__name__} has no graph whose edges could be suggested"
        raise InputError(problem, "fit a model with a graph of edges, such as KNNGraph()", code="no_graph")
    n_pairs, known = check_int(n_pairs, "n_pairs"), check_constraints(constraints, graph)
    if graph.has_negative_weights:
        graph = split_by_sign(graph)[0]
    first, second = _heavy_edges(graph)
    if known is not None:
        implied = _is_implied(first, second, known.closure())
        first, second = first[~implied], second[~implied]
    scores = informativeness(_memberships(model, graph), to_numpy(graph.degrees), first, second)
    return _select_spaced_pairs(graph, first, second, scores, n_pairs)


def informativeness(memberships: np.ndarray, degrees: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return H(q_i'q_j) · min(1, d_i/d̃, d_j/d̃) for every pair, H in bits."""
    p = np.clip((memberships[first] * memberships[second]).sum(axis=1), 1e-12, 1 - 1e-12)
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
    relative = np.minimum(degrees / max(float(np.median(degrees)), 1e-300), 1)
    return entropy * np.minimum(relative[first], relative[second])


def _memberships(model: BaseEstimator, graph: AffinityGraph) -> np.ndarray:
    """Return the memberships of a model, or its labels spread over the graph."""
    for name in ("memberships_", "label_distributions_"):
        if hasattr(model, name):
            memberships = to_numpy(getattr(model, name)).astype(np.float64)
            undecided = memberships.sum(axis=1)[:, None] == 0
            return np.where(undecided, 1 / memberships.shape[1], memberships)
    if not hasattr(model, "labels_"):
        problem = f"{type(model).__name__} has neither clusters nor classes, so there is nothing to ask about"
        raise InputError(problem, "pass a fitted clusterer or classifier", code="model_without_labels")
    labels = to_numpy(model.labels_)
    host_graph = AffinityGraph(to_scipy(graph.weights).astype(np.float64))
    return resolvent(np.eye(int(labels.max()) + 1)[labels], host_graph, SMOOTHING_ALPHA, tol=1e-4)


def _heavy_edges(graph: AffinityGraph) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of every edge once, or of the heaviest edges if there are too many."""
    W = to_scipy(graph.weights)
    rows = row_indices(W)
    upper = np.flatnonzero(rows < W.indices)
    if len(upper) > MAX_RANKED_EDGES:
        upper = upper[np.argpartition(-W.data[upper], MAX_RANKED_EDGES)[:MAX_RANKED_EDGES]]
    return rows[upper].astype(np.int64), W.indices[upper].astype(np.int64)


def _is_implied(first: np.ndarray, second: np.ndarray, closed: PairwiseConstraints) -> np.ndarray:
    """Whether each pair is among the known and implied ones."""
    n = closed.n_samples
    answered = np.concatenate([links[:, 0] * n + links[:, 1] for links in (closed.must_link, closed.cannot_link)])
    return np.isin(np.minimum(first, second) * n + np.maximum(first, second), answered)


def _select_spaced_pairs(
    graph: AffinityGraph, first: np.ndarray, second: np.ndarray, scores: np.ndarray, n_pairs: int
) -> np.ndarray:
    """Select the pairs of the highest scores, none at a row that is selected already or next to such a row."""
    W = to_scipy(graph.weights)
    excluded = np.zeros(graph.n_nodes, dtype=bool)
    selected: list[tuple[int, int]] = []
    for edge in np.argsort(-scores, kind="stable"):
        if len(selected) == n_pairs or scores[edge] <= 0:
            break
        pair = int(first[edge]), int(second[edge])
        if excluded[list(pair)].any():
            continue
        selected.append(pair)
        for row in pair:
            entries = slice(W.indptr[row], W.indptr[row + 1])
            nearest = np.argsort(-W.data[entries], kind="stable")[:N_EXCLUDED_NEIGHBORS]
            excluded[row] = True
            excluded[W.indices[entries][nearest]] = True
    return np.array(selected, dtype=np.int64).reshape(-1, 2)


class ConstrainedKFold:
    """Cross-validation folds that split no must-linked group, so that no pair reveals rows on which a fold is tested.

    Parameters
    ----------
    constraints : PairwiseConstraints
        The pairs.
    n_splits : int, default=5
        The number of folds.
    random_state : int, RandomState or None, default=None
        Random seed or generator, with which the groups are shuffled.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.supervision import ConstrainedKFold, PairwiseConstraints
    >>> pairs = PairwiseConstraints([(0, 9), (1, 8)], [(0, 1)], n_samples=10)
    >>> for train, test, known, hidden in ConstrainedKFold(pairs, 2, random_state=0).split_pairs(np.zeros((10, 1))):
    ...     print(len(train), len(test), known.n_pairs + hidden.n_pairs)
    5 5 2
    5 5 2
    """

    def __init__(self, constraints: PairwiseConstraints, n_splits: int = 5, random_state: RandomState = None) -> None:
        self.constraints = constraints
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: MatrixLike, y: LabelsLike | None = None, groups: object = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows for training and for testing of each fold."""
        pairs = check_constraints(self.constraints, X)
        if pairs is None:
            problem = "ConstrainedKFold needs PairwiseConstraints"
            hint = "without constraints use scikit-learn's KFold"
            raise InputTypeError(problem, hint, code="invalid_constraints", parameter="constraints")
        n_splits, n_groups = check_int(self.n_splits, "n_splits", minimum=2), int(pairs.groups.max()) + 1
        if n_splits > n_groups:
            problem = f"n_splits={n_splits} is more than the number of must-linked groups ({n_groups})"
            hint = f"choose at most {n_groups}" if n_groups > 1 else "use fewer must-links"
            fields = {"parameter": "n_splits", "value": n_splits, "n_groups": n_groups}
            raise InputError(problem, hint, code="too_few_groups", **fields)
        folds = GroupKFold(n_splits, shuffle=True, random_state=check_seed(self.random_state))
        return folds.split(np.zeros(pairs.n_samples), groups=pairs.groups)

    def split_pairs(
        self, X: MatrixLike
    ) -> Iterator[tuple[np.ndarray, np.ndarray, PairwiseConstraints, PairwiseConstraints]]:
        """Yield the rows for training and testing of each fold, and the pairs among either, numbered within them."""
        for train, test in self.split(X):
            yield train, test, self.constraints.subset(train), self.constraints.subset(test)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds."""
        return self.n_splits
