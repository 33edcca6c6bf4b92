"""Questions to a person about pairs of rows, and cross-validation with their answers.

**Within a partition**: `suggest_pairs`. The pairs to ask about are those whose answer is most uncertain, among typical
rows. An edge (i, j) of the graph joins similar rows. With memberships q the model gives them the probability
p = q_i'q_j of belonging together; the answer is most informative where the entropy of p is largest, at the boundary
between clusters, and least informative at outliers, which resemble few other rows. So edges are ranked by

    H(q_i'q_j) · min(1, d_i/d̃, d_j/d̃),    d̃ the median degree,

and selected from the top. Rows that were selected, and their nearest neighbours, are not selected again, since they
would have the same answer. The answers are constraints for another fit.

**Among partitions**, coarse and fine ones: `Inquiry`. After answers a_1, a_2, ... a candidate partition c has the
probability

    w_c ∝ prior_c Π_j (1-ε if c agrees with a_j, else ε),    ε the error rate of answers,

and the partition of the highest expected adjusted Rand index with the one that is meant is chosen,

    argmax_c Σ_c' w_c' ARI(c, c').

That pair is asked about for which this expectation is highest after its answer, on average over both answers; pairs
that are asked together are selected one after the other, each for all likely answers to those before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
from ..metrics.scores import agreement_matrix

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


# ---------------------------------------------------------------------------------------------------- among partitions

ERROR_RATE = 0.15  # ε
N_DRAWN_PAIRS = 200  # from which a question is selected
MAX_OUTCOMES = 32  # combinations of answers, the most probable ones, for which the next pair is selected
ENTROPY_WEIGHT = 1e-3  # decides where no single answer changes the choice


class Inquiry(NamedTuple):
    """Which of several partitions a person means, by answers about pairs of rows.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        The numbers of the rows that are partitioned.
    labels : ndarray of shape (n_candidates, n_rows)
        The candidate partitions.
    prior : ndarray of shape (n_candidates,)
        The probabilities of the candidates without answers.
    agreement : ndarray of shape (n_candidates, n_candidates)
        The adjusted Rand indices of candidates, 0 where they are negative.
    pairs, same : ndarrays of shape (n_answers, 2) and (n_answers,)
        Positions in ``rows`` that were asked about, ascending, and whether they belong together.

    Examples
    --------
    >>> coarse, fine = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 4, 5])
    >>> inquiry = Inquiry.among([coarse, fine], prior=[0.5, 0.5])
    >>> pairs = inquiry.ask(1)
    >>> coarse[pairs[:, 0]] == coarse[pairs[:, 1]]  # in the fine partition they are not
    array([ True])
    >>> inquiry.with_answers(pairs, [False]).chosen.tolist()
    [0, 1, 2, 3, 4, 5]
    """

    rows: np.ndarray
    labels: np.ndarray
    prior: np.ndarray
    agreement: np.ndarray
    pairs: np.ndarray
    same: np.ndarray

    @classmethod
    def among(
        cls,
        partitions: Sequence[np.ndarray],
        prior: Sequence[float] | np.ndarray,
        rows: np.ndarray | None = None,
        row_weights: np.ndarray | None = None,
    ) -> Inquiry:
        """Start without answers; ``rows`` are by default 0, 1, ..."""
        labels = np.stack([np.unique(one, return_inverse=True)[1] for one in partitions]).astype(np.int32)
        numbers = np.arange(labels.shape[1]) if rows is None else rows
        no_pairs, weights = np.empty((0, 2), dtype=np.int64), np.asarray(prior, dtype=np.float64)
        agreement = agreement_matrix(labels.astype(np.int64), row_weights)
        return cls(numbers, labels, weights / weights.sum(), agreement, no_pairs, np.empty(0, dtype=bool))

    def with_answers(self, pairs: np.ndarray, same: Sequence[bool] | np.ndarray) -> Inquiry:
        """Return the inquiry with further answers."""
        answers = np.concatenate([self.same, np.asarray(same, dtype=bool)])
        return self._replace(pairs=np.concatenate([self.pairs, np.sort(pairs, axis=1)]), same=answers)

    @property
    def weights(self) -> np.ndarray:
        """The probabilities of the candidates after the answers."""
        return posterior(self.labels, self.prior, self.pairs, self.same)

    @property
    def chosen(self) -> np.ndarray:
        """The labels of the candidate with the highest expected agreement."""
        return self.labels[int(np.round(self.agreement @ self.weights, 9).argmax())]

    def ask(self, n_pairs: int) -> np.ndarray:
        """Return at most so many pairs of positions in ``rows`` to ask about, the most decisive first."""
        rng, weights = np.random.RandomState(len(self.same)), self.weights
        drawn = draw_pairs(self.labels, weights, n_pairs - 1 + N_DRAWN_PAIRS, rng)
        is_known = (drawn[:, None] == self.pairs).all(axis=2).any(axis=1)
        drawn = drawn[~is_known]
        return drawn[select_decisive_pairs(_together(self.labels, drawn), weights, self.agreement, n_pairs)]


def _together(labels: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Whether each candidate has each pair in one cluster, shape (n_candidates, n_pairs)."""
    return labels[:, pairs[:, 0]] == labels[:, pairs[:, 1]]


def posterior(
    labels: np.ndarray, prior: np.ndarray, pairs: np.ndarray, same: np.ndarray, error_rate: float = ERROR_RATE
) -> np.ndarray:
    """Return w_c ∝ prior_c (1-ε)^a ε^(q-a) for a candidate that agrees with a of q answers."""
    n_wrong = (_together(labels, pairs) != same).sum(axis=1)
    weights = prior * (error_rate / (1 - error_rate)) ** (n_wrong - n_wrong.min())
    return weights / weights.sum()


def draw_pairs(labels: np.ndarray, weights: np.ndarray, n_pairs: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw at most so many different pairs: half of them at random, and half within a cluster of a random candidate."""
    n_rows, n_within = labels.shape[1], n_pairs // 2
    first = rng.randint(n_rows, size=n_pairs)
    second = (first + 1 + rng.randint(max(n_rows - 1, 1), size=n_pairs)) % n_rows
    for i, candidate in enumerate(rng.choice(len(labels), size=n_within, p=weights)):
        members = np.flatnonzero(labels[candidate] == labels[candidate, first[i]])
        second[i] = members[rng.randint(len(members))]
    pairs = np.sort(np.column_stack([first, second])[first != second], axis=1).astype(np.int64)
    _, places = np.unique(pairs, axis=0, return_index=True)
    return pairs[np.sort(places)]


def select_decisive_pairs(
    together: np.ndarray, weights: np.ndarray, agreement: np.ndarray, n_pairs: int, error_rate: float = ERROR_RATE
) -> list[int]:
    """Return the numbers of pairs whose answers raise the expected agreement of the choice most, one after the other.

    For outcomes o of the questions before, with joint probabilities w_oc of outcome and candidate, that is the pair of
    the largest Σ_o Σ_a max_c Σ_c' ARI(c, c') P(a | c') w_oc', plus a small multiple of the entropy of its answer.
    """
    selected: list[int] = []
    outcomes, left = weights[None], np.ones(together.shape[1], dtype=bool)
    likelihood = np.where(together, 1 - error_rate, error_rate)  # of the answer "same"
    for _ in range(min(n_pairs, together.shape[1])):
        joint = outcomes[:, None] * likelihood.T  # (outcome, pair, candidate)
        expected = joint @ agreement  # ARI is symmetric
        other = (outcomes @ agreement)[:, None] - expected
        value = (expected.max(axis=2) + other.max(axis=2)).sum(axis=0)
        value = value + ENTROPY_WEIGHT * _entropy(outcomes.sum(axis=1)[:, None], joint.sum(axis=2)).sum(axis=0)
        best = int(np.where(left, np.round(value, 9), -np.inf).argmax())
        selected.append(best)
        left[best] = False
        outcomes = np.concatenate([joint[:, best], outcomes - joint[:, best]])
        outcomes = outcomes[np.argsort(-outcomes.sum(axis=1), kind="stable")[:MAX_OUTCOMES]]
    return selected


def _entropy(total: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the entropy in nats of an event of probability part / total, times total."""
    p = np.clip(part / np.maximum(total, 1e-300), 1e-12, 1 - 1e-12)
    return -total * (p * np.log(p) + (1 - p) * np.log(1 - p))


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
