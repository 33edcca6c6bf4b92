"""Questions to a person about pairs of rows, whose answers choose among partitions and numbers of clusters.

1. *Candidates*: the partition of the fit, those it was compared with, and quick ones for many numbers of clusters
   (:mod:`fiedler.graph.partitions`), on the graph of the model or that of a random sample of its rows.
2. *Prior*: the share `FITTED_SHARE` for the partition of the fit; the rest in proportion to

       max(score_K / max_K score_K, MIN_SCORE)²   with the evidence for the number of clusters (:mod:`.n_clusters`),
       min(K / K_fit, K_fit / K)                  for a fit whose number was given,

   divided equally among the partitions into K clusters.
3. *Questions and choice*: see :mod:`fiedler.supervision.questions`. Rows outside the sample join the cluster of the
   nearest sampled row along the edges of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from scipy.sparse.csgraph import dijkstra
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int
from ..core.arrays import Array, asarray_like, random_subset, take_rows, to_numpy
from ..core.sparse import to_scipy
from ..errors import InputError, shown
from ..graph.affinity import AffinityGraph
from ..graph.community import modularity
from ..graph.constraints import attractive_part
from ..graph.partitions import edge_lengths, partitions
from ..graph.weights import CopiedRows
from ..metrics.scores import weighted_ari
from ..supervision.questions import Inquiry
from .candidates import Candidate, candidates_table, mean_normalized_cut
from .memberships import PartialSupervision, walk_memberships
from .n_clusters import MAX_SAMPLED_ROWS, NClustersChoice, default_candidates
from .report_text import ANSWERS
from .state import FittedState

FITTED_SHARE, ONE_SHARE = 0.3, 0.9  # of the prior, for the partition of the fit; the latter if it is one cluster
MIN_SCORE = 0.03  # relative to the best, of numbers that were not compared as well


def candidate_prior(numbers: np.ndarray, evidence: NClustersChoice | None) -> np.ndarray:
    """Return the prior of partitions into some numbers of clusters, of which the first is that of the fit."""
    if evidence is not None and evidence.score is not None and max(evidence.score, default=0.0) > 0:
        scores = dict(zip(evidence.candidates, evidence.score))
        relative = np.array([scores.get(k, 0.0) for k in numbers.tolist()]) / max(evidence.score)
        weights = np.maximum(relative, MIN_SCORE) ** 2
    else:
        weights = np.minimum(numbers / numbers[0], numbers[0] / numbers)
    weights = weights / np.bincount(numbers)[numbers]
    share = ONE_SHARE if numbers[0] == 1 else FITTED_SHARE
    return (1 - share) * weights / weights.sum() + share * (np.arange(len(numbers)) == 0)


def nearest_along_edges(graph: AffinityGraph, nodes: np.ndarray) -> np.ndarray:
    """Return for every node the position in ``nodes`` of the nearest of them; 0 where none is reached.

    The length of an edge is 1 - log w, with weights relative to the largest.
    """
    places = np.zeros(graph.n_nodes + 1, dtype=np.int64)  # the last one for nodes that are not reached
    places[nodes] = np.arange(len(nodes))
    if len(nodes) == graph.n_nodes:
        return places[:-1]
    lengths = to_scipy(graph.weights).astype(np.float64)
    lengths.data = 1 + edge_lengths(lengths.data)
    sources = dijkstra(lengths, directed=False, indices=nodes, min_only=True, return_predecessors=True)[2]
    return places[np.where(sources < 0, graph.n_nodes, sources)]


def check_answers(pairs: Any, same: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return validated pairs of row numbers, shape (n_answers, 2), and answers, shape (n_answers,)."""
    try:
        numbers, answers = (to_numpy(one) if hasattr(one, "shape") else np.asarray(one) for one in (pairs, same))
    except (TypeError, ValueError):
        numbers, answers = np.asarray(None), np.asarray(None)
    if numbers.size == answers.size == 0:
        return np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=bool)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or numbers.dtype.kind not in "iu":
        problem = f"pairs must be pairs of row numbers, shape (n_pairs, 2); got {shown(pairs)}"
        raise InputError(problem, "pass what questions() returned", code="invalid_pairs", parameter="pairs")
    if answers.shape != numbers.shape[:1] or answers.dtype.kind != "b":
        which = "the pair" if len(numbers) == 1 else f"each of the {len(numbers)} pairs"
        problem = f"same must be True or False for {which}; got {shown(same)}"
        hint = "leave out pairs without an answer"
        raise InputError(problem, hint, code="invalid_answers", parameter="same")
    is_wrong = ((numbers < 0) | (numbers >= n_rows)).any(axis=1) | (numbers[:, 0] == numbers[:, 1])
    if is_wrong.any():
        pair = tuple(numbers[is_wrong][0].tolist())
        problem = f"pairs contains {pair}, but two different rows from 0 to {n_rows - 1} are needed"
        raise InputError(problem, "correct or remove it", code="invalid_pair", parameter="pairs", pair=pair)
    return numbers.astype(np.int64), answers


class QuestionsMixin:
    """Mixin for ``questions`` and ``answer``, of a model with memberships and a graph."""

    labels_: Array
    memberships_: Array
    graph_: AffinityGraph
    n_clusters_: int
    evidence_: NClustersChoice | None
    candidates_: dict[str, list[Any]]
    row_agreement_: np.ndarray | None
    consensus_: float | None
    view_: str
    min_cluster_size: int | None
    max_cluster_size: int | None
    _state: FittedState
    _keep: Callable[..., None]
    _rows_by_node: Callable[[], CopiedRows]
    _subset_graph: Callable[[np.ndarray, AffinityGraph], AffinityGraph]
    _number_clusters: Callable[[], None]

    def questions(self, n_pairs: int = 5) -> np.ndarray:
        """Return pairs of rows to ask a person about: are they in the same group?

        The answers decide among coarse and fine partitions, see :meth:`answer`. Fewer questions at a time, with the
        answers in between, decide more.

        Parameters
        ----------
        n_pairs : int, default=5
            The number of pairs.

        Returns
        -------
        pairs : ndarray of shape (n_pairs, 2)
            Row numbers, the most decisive pair first. Fewer for very few rows.

        See Also
        --------
        fiedler.supervision.suggest_pairs : Pairs at the boundaries between the clusters of one partition.

        Examples
        --------
        >>> from fiedler import ManifoldClustering
        >>> from fiedler.datasets import blobs
        >>> X, y = blobs(300, n_features=4, n_clusters=3, random_state=0)
        >>> model = ManifoldClustering(random_state=0).fit(X)
        >>> model.questions(2).shape
        (2, 2)
        """
        check_is_fitted(self)
        inquiry = self._inquiry()
        return np.sort(inquiry.rows[inquiry.ask(check_int(n_pairs, "n_pairs"))], axis=1)

    def answer(self, pairs: np.ndarray | Sequence[Sequence[int]], same: np.ndarray | Sequence[bool]) -> Self:
        """Return the model with the partition that fits the answers best, also if some of them are wrong.

        Parameters
        ----------
        pairs : array of shape (n_answers, 2)
            Row numbers, as :meth:`questions` returns them; other pairs are taken, too.
        same : array of bool, shape (n_answers,)
            Whether the two rows of each pair are in the same group.

        Returns
        -------
        model : ManifoldClustering
            A fitted copy, which remembers all answers. Its ``candidates_`` are the partitions of the fit and the chosen
            one; ``consensus_``, ``row_agreement_`` and ``evidence_`` are None if that is another one than before. This
            model stays as it is.

        Notes
        -----
        One answer in seven is taken to be wrong, so that a clear choice needs several. Answers are no constraints: a
        partition may be chosen that contradicts some. For pairs that must hold, pass ``constraints`` to ``fit``.
        Outliers stay outliers. Columns of tables are described again if the rows are passed to ``explain``. Models with
        known labels or pairs, with bounds on sizes, and of rows in blocks cannot be asked.

        Examples
        --------
        >>> import numpy as np
        >>> from fiedler import ManifoldClustering
        >>> from fiedler.datasets import blobs
        >>> X, y = blobs(300, n_features=4, n_clusters=3, random_state=0)
        >>> model = ManifoldClustering(2, random_state=0).fit(X)
        >>> for _ in range(3):
        ...     pairs = model.questions(1)
        ...     model = model.answer(pairs, y[pairs[:, 0]] == y[pairs[:, 1]])
        >>> model.n_clusters_
        3
        """
        check_is_fitted(self)
        inquiry, copies, graph = self._inquiry(), self._rows_by_node(), self._attractive_graph()
        pairs, same = check_answers(pairs, same, len(copies.nodes))
        nearest = nearest_along_edges(graph, copies.nodes[inquiry.rows])
        inquiry, model = inquiry.with_answers(nearest[copies.nodes[pairs]], same), copy(self)
        model._keep(inquiry=inquiry)
        if weighted_ari(self._clusters_of(inquiry.rows), inquiry.chosen.astype(np.int64)) < 1:
            model._take_partition(inquiry.chosen[nearest], copies, graph)
        return model

    def _inquiry(self) -> Inquiry:
        """Return what is known from answers, or the candidates and their prior if there were none."""
        self._check_askable()
        if self._state.inquiry is not None:
            return self._state.inquiry
        copies, graph, rng = self._rows_by_node(), self._attractive_graph(), np.random.RandomState(0)
        nodes = random_subset(graph.n_nodes, min(1.0, MAX_SAMPLED_ROWS / graph.n_nodes), rng)
        rows = copies.first[nodes]
        found = [(self.n_clusters_, self._clusters_of(rows))]
        known = [one.labels[rows] for one in self._state.candidates if len(one.labels) == len(copies.nodes)]
        found += [(len(np.unique(labels)), labels) for labels in known]
        compared = [] if self.evidence_ is None else self.evidence_.candidates
        numbers = sorted({*compared, *default_candidates(len(nodes)), self.n_clusters_})
        numbers = [k for k in numbers if 2 <= k <= len(nodes) // 2]
        if numbers:
            subgraph = graph if len(nodes) == graph.n_nodes else self._subset_graph(nodes, graph)
            quick = partitions(subgraph, numbers, rng)
            found += [(k, labels) for k, some in zip(numbers, quick) for labels in some]
        if self.n_clusters_ > 1:
            found.append((1, np.zeros(len(rows), dtype=np.int64)))
        prior = candidate_prior(np.array([k for k, _ in found]), self.evidence_)
        weights = None if self._state.weights is None else self._state.weights[nodes]
        return Inquiry.among([labels for _, labels in found], prior, rows, weights)

    def _check_askable(self) -> None:
        """Raise an error if the partition of the model cannot be replaced."""
        is_known = not all(np.isnan(one.agreement) for one in self._state.candidates)
        reasons = {
            "was fitted in blocks": self._state.landmarks is not None,
            "was fitted with known labels or pairs": is_known,
            "has bounds on the sizes of clusters": self.min_cluster_size or self.max_cluster_size,
        }
        reason = next((reason for reason, holds in reasons.items() if holds), None)
        if reason is not None:
            problem = f"a model that {reason} has no questions"
            raise InputError(problem, "ask a model that was fitted without", code="cannot_ask")

    def _attractive_graph(self) -> AffinityGraph:
        return attractive_part(self.graph_ if self._state.graph is None else self._state.graph)

    def _clusters_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the clusters of some rows, also of outliers."""
        return to_numpy(take_rows(self.memberships_, rows)).argmax(axis=1)

    def _take_partition(self, labels: np.ndarray, copies: CopiedRows, graph: AffinityGraph) -> None:
        """Replace the partition by one of the nodes, with memberships by a walk from its labels."""
        names, labels = np.unique(labels, return_inverse=True)
        self.n_clusters_ = len(names)
        Q = walk_memberships(
            labels, len(names), graph, PartialSupervision(None, None, None), take_rows(self.memberships_, copies.first)
        )
        found = to_numpy(Q).argmax(axis=1)[copies.nodes]
        found[to_numpy(self.labels_) < 0] = -1
        self.memberships_ = copies.expand(Q, 1 / len(names))
        self.labels_ = asarray_like(found, self.memberships_, dtype=self.labels_.dtype)
        self.row_agreement_ = self.consensus_ = self.evidence_ = None
        chosen = Candidate(
            ANSWERS,
            labels[copies.nodes],
            float("nan"),
            view=self.view_,
            n_clusters=len(names),
            cut=mean_normalized_cut([graph], labels),
            modularity=modularity(graph, labels),
        )
        others = [one for one in self._state.candidates if len(one.labels) == len(found) and one.family != ANSWERS]
        self._keep(candidates=[*others, chosen], n_compared=None, profiles=None, n_added=0, fitted=None)
        self.candidates_ = candidates_table(self._state.candidates, chosen)
        self._number_clusters()
