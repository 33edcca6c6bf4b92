"""ManifoldClustering: partitions of several views, one chosen without labels, and soft memberships.

1. Graphs: self-tuned nearest-neighbour graphs of 5 and of 9 neighbours, from one search.
2. Candidates: partitions of these graphs, see :mod:`fiedler.manifold.candidates`, and those of other methods and
   views of the rows, see :mod:`fiedler.manifold.views`.
3. Choice: the partition on which methods and views agree most, see :mod:`fiedler.manifold.choice`. With
   ``effort="fast"``, or on a graph alone, where there are no views, it is made by cut and likelihood.
4. Memberships: by a random walk on the graph of the chosen view, over its labels and the votes of the others, see
   :mod:`fiedler.manifold.memberships`. New points take the first step of the walk, in the chosen view.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._typing import Array, GraphLike, LabelsLike, MatrixLike, RandomState, SupportsShape
from .._validation import (
    check_data,
    check_fraction,
    check_int,
    check_n_clusters,
    check_n_jobs,
    check_rows_differ,
    check_seed,
    choose,
    suggest_parameters,
)
from ..core.arrays import (
    asarray_like,
    convert_rows,
    namespace,
    order_by_first_row,
    renumber,
    take_clusters,
    take_rows,
    to_numpy,
)
from ..core.fitting import dispatch_blocks, fit_method, print_line
from ..core.sparse import Sparse, csr_parts, is_sparse, matmul, scale_rows_columns
from ..errors import InputError, ignore_warnings, warn
from ..graph.affinity import AffinityGraph, refuse_affinity_as_rows, rows_or_graph
from ..graph.constraints import ConstraintsLike, add_constraints, attractive_part, check_constraints
from ..graph.estimator import GraphEstimatorMixin, SoftClustererMixin, frames_like, warn_if_clusters_are_empty
from ..graph.labels import UNKNOWN
from ..graph.neighbors import Edges
from ..graph.recipes import DEFAULT_NEIGHBORS, KNNGraph, check_graph_name, is_precomputed, nested_graphs, self_tuned
from ..graph.sizes import SizeBounds, check_size_bounds
from ..graph.smoothing import link_degrees, link_weights, replace_coincident_rows
from ..graph.weights import (
    UNPLACED,
    CopiedRows,
    check_sample_weight,
    empty_rows,
    expand_graph,
    ordered_copies,
    relative_weights,
    warn_of_empty_rows,
    weigh_graph,
)
from ..table import TableEncoder
from ..table.columns import Column, is_dense_frame
from ..table.encoder import EncodedTable
from ..table.numbers import warn_about_scales
from ..table.profiles import profile_rows, profile_table
from .candidates import (
    MAX_SEARCHES,
    ROWS,
    Candidate,
    Graphs,
    PartitionScorer,
    candidates_table,
    graph_candidates,
    mixture_candidates,
    reason_against_mixtures,
    refine_mixture,
    select_by_cut,
    select_by_likelihood,
)
from .choice import EFFORTS, MIN_ROWS, MIN_ROWS_PER_CLUSTER, Comparer, Effort
from .explain import ExplainMixin
from .levels import LevelsMixin
from .memberships import PartialSupervision, outlier_scores, select_outliers, walk_memberships
from .n_clusters import NClustersChoice, RowDensity, count_clusters, has_few_values, one_for_each, subgraph
from .questions import QuestionsMixin
from .report_text import format_report
from .state import FittedState
from .update import SPARSE_NEIGHBORS, UpdateMixin
from .views import INDICATORS, View, are_documents, is_low_dimensional

GRAPH_SIZES = (SPARSE_NEIGHBORS, DEFAULT_NEIGHBORS)  # neighbours in the two default graphs
OUTLIER = -1  # the label of rows that belong to no cluster


class ClusterResult(NamedTuple):
    """The result of :func:`fiedler.cluster`.

    Attributes
    ----------
    labels : array of shape (n,)
        The cluster of each row.
    memberships : array of shape (n, n_clusters)
        The probability of each cluster for each row.
    model : ManifoldClustering
        The fitted model.

    Examples
    --------
    >>> import fiedler
    >>> result = fiedler.cluster([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]], n_clusters=2, random_state=0)
    >>> result.memberships.shape
    (6, 2)
    >>> result.model.n_clusters_
    2
    """

    labels: Array
    memberships: Array
    model: ManifoldClustering


class _Request(NamedTuple):
    """What a partition must observe."""

    supervision: PartialSupervision
    bounds: SizeBounds | None  # on the sizes of clusters
    outlier_share: float  # of the rows, which get no cluster


@suggest_parameters
def cluster(
    X: MatrixLike | AffinityGraph,
    n_clusters: int | Literal["auto"] = "auto",
    graph: GraphLike | Literal["auto"] = "auto",
    *,
    y: LabelsLike | None = None,
    sample_weight: SupportsShape | Sequence[float] | None = None,
    constraints: ConstraintsLike = None,
    max_clusters: int | None = None,
    min_cluster_size: int | None = None,
    max_cluster_size: int | None = None,
    effort: Literal["fast", "default", "thorough"] = "default",
    outliers: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> ClusterResult:
    """Cluster the rows of ``X``.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d), data frame, AffinityGraph, or graph of another library
        The rows, or a graph on them. A data frame of pandas, polars or pyarrow may have columns of any kind and missing
        values, see :class:`fiedler.table.TableEncoder`. Graphs of networkx and igraph, and the graph or the rows of an
        AnnData object, are taken as well.
    n_clusters : int or 'auto', default='auto'
        The number of clusters; 'auto' chooses it.
    graph, max_clusters, min_cluster_size, max_cluster_size, effort, outliers, random_state, n_jobs, verbose
        As in :class:`ManifoldClustering`.
    y, sample_weight, constraints
        As in :meth:`ManifoldClustering.fit`.

    Returns
    -------
    ClusterResult
        ``labels`` of shape (n,), ``memberships`` of shape (n, n_clusters) and the fitted ``model``. With
        ``sklearn.set_config(transform_output="pandas")`` or ``"polars"``, the first two are a series and a data frame,
        with the index of ``X`` if it has one.

    Examples
    --------
    >>> import fiedler
    >>> from fiedler.datasets import two_moons
    >>> X, y = two_moons(n_samples=300, noise=0.05, random_state=0)
    >>> labels, memberships, model = fiedler.cluster(X, n_clusters=2, random_state=0)
    >>> memberships.shape
    (300, 2)
    >>> fiedler.metrics.clustering_accuracy(y, labels)
    1.0
    """
    given, X = X, rows_or_graph(X)
    if isinstance(graph, str) and graph == "auto":
        refuse_affinity_as_rows(X)
    model = ManifoldClustering(
        n_clusters,
        graph,
        max_clusters=max_clusters,
        min_cluster_size=min_cluster_size,
        max_cluster_size=max_cluster_size,
        effort=effort,
        outliers=outliers,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    ).fit(X, y, sample_weight=sample_weight, constraints=constraints)
    return ClusterResult(*frames_like(given, model.labels_, model.memberships_), model)


class ManifoldClustering(
    QuestionsMixin, LevelsMixin, ExplainMixin, UpdateMixin, GraphEstimatorMixin, SoftClustererMixin, BaseEstimator
):
    """Clustering on a manifold: partitions of several views, one chosen without labels, soft memberships, ``predict``.

    Parameters
    ----------
    n_clusters : int or 'auto', default='auto'
        The number of clusters. 'auto' chooses it by gaps, stability and valleys of the density, or one if the rows have
        no more structure than a single cloud, see :func:`fiedler.choose_n_clusters`; with given labels it is at least
        the number of their classes. It does not depend on ``random_state``.
    graph : 'auto', recipe, AffinityGraph, matrix or 'precomputed', default='auto'
        'auto' stands for two self-tuned graphs, of 5 and of 9 neighbours; any other graph is used alone.
    max_clusters : int or None, default=None
        The largest number of clusters that 'auto' may choose; None for as many as the number of rows permits, up to
        150, and 300 where gaps separate the clusters.
    min_cluster_size, max_cluster_size : int or None, default=None
        The smallest and the largest number of rows of a cluster, by weight. Partitions are brought within these bounds
        by moving rows near their boundaries before they are compared, see :mod:`fiedler.graph.sizes`; 'auto' considers
        the numbers of clusters that the bounds permit. Not together with ``outliers`` or hard must-links.
    effort : {'fast', 'default', 'thorough'}, default='default'
        How much is compared, with ``graph='auto'``. 'fast' searches communities on two graphs, and mixtures. 'default'
        compares them with other methods and with other views of the rows, whitened or, for documents and embeddings,
        by :class:`LPI`, unless the methods agree already, and 'thorough' in any case. Of more than 5,000 (20,000) rows,
        or twice as many documents or embeddings, a sample is compared; with labels or pairs, nothing is then.
    outliers : float or None, default=None
        The share of the rows, those with the highest ``outlier_score_``, that belong to no cluster and get the label
        -1; None labels all rows. Rows whose label is given keep it.
    random_state : int, RandomState or None, default=None
        Random seed or generator.
    n_jobs : int, optional
        The number of threads that search neighbours (with ``graph='auto'``) and candidates.
    verbose : bool, default=False
        Whether to print progress on standard error during the fit, and the report after it. Candidates are logged as
        they are scored.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row, the largest entry of its memberships; -1 for outliers, if ``outliers`` is given, and
        for sparse rows without entries, as of texts without a known term. With bounds on sizes, the assignment of the
        largest memberships within them.
    memberships_ : array of shape (n_samples, n_clusters)
        The probability of each cluster for each row; rows sum to one. Those of sparse rows without entries are equal.
    n_clusters_ : int
        The number of clusters.
    candidates_ : dict of lists
        The candidate partitions with all scores, one column per key: ``pandas.DataFrame(model.candidates_)``. Scores
        are those of a sample where a sample was compared.
    consensus_ : float or None
        The mean agreement (adjusted Rand index) of the chosen partition with the other methods and views: 1 if all
        agree. None if there was no comparison.
    row_agreement_ : ndarray of shape (n_samples,) or None
        The share of methods and views that agree on the cluster of each row; for rows outside the sample, if a sample
        was compared, that of the nearest sampled row.
    encoder_ : TableEncoder or None
        Turns the rows of a data frame into numbers, if there was one.
    outlier_score_ : ndarray of shape (n_samples,) or None
        How much farther the neighbours of each row are than those of the rows of its cluster: the logarithm of the
        ratio of their distances, about 0 for most rows. None if the neighbours are not known, with a given graph.
    view_ : str
        The view of the rows in which the chosen partition was found, and in which new points are placed.
    evidence_ : NClustersChoice or None
        The evidence for the number of clusters, with ``n_clusters='auto'``.
    levels_ : dict of lists or None
        The nested partitions into 2, 3, ... clusters, one column per key, computed when it is first read:
        ``n_clusters``; ``stability``, NaN unless 'auto' compared the number, and whether it is a ``persistent`` one;
        ``p_value`` of the split, which cluster of the level before is ``split``, and ``into`` which two of this level.
        None for a fit in blocks. See :meth:`at`.
    graph_ : AffinityGraph
        The graph of the memberships: the denser one, with given must-links as edges. The edges of equal rows are
        divided among them.
    n_features_in_ : int
        The number of features, or of the columns of a table.

    See Also
    --------
    LapGMM : The mixture that takes part in the choice.
    choose_n_clusters : The number of clusters for any estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from fiedler import ManifoldClustering
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ManifoldClustering(n_clusters=10, random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_) > 0.85
    True
    >>> model.predict_proba(X[:3]).shape
    (3, 10)
    """

    encoder_: TableEncoder | None = None
    memberships_: Array
    labels_: Array
    row_agreement_: np.ndarray | None
    outlier_score_: np.ndarray | None
    _state: FittedState

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = "auto",
        graph: GraphLike | Literal["auto"] = "auto",
        *,
        max_clusters: int | None = None,
        min_cluster_size: int | None = None,
        max_cluster_size: int | None = None,
        effort: Literal["fast", "default", "thorough"] = "default",
        outliers: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.max_clusters = max_clusters
        self.min_cluster_size = min_cluster_size
        self.max_cluster_size = max_cluster_size
        self.effort = effort
        self.outliers = outliers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_method
    def fit(
        self,
        X: MatrixLike | AffinityGraph,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
        constraints: ConstraintsLike = None,
    ) -> Self:
        """Cluster the rows of ``X``, or the nodes of a graph.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), data frame, AffinityGraph, or affinity matrix
            The rows; the matrix if ``graph='precomputed'``. The columns of a data frame, which may be of any kind and
            lack values, are brought to a common scale first, see :class:`~fiedler.table.TableEncoder`; an array is
            taken as it is.
        y : array of shape (n,), optional
            Clusters 0..n_clusters-1 of some rows, -1, NaN or None where unknown; labelled rows keep their cluster.
            Ignored if all are known, as every clusterer ignores the true labels that pipelines and searches pass (but a
            recipe made from labels, such as LabelGraph, uses them).
        sample_weight : array of shape (n,), optional
            Positive weights: a row of weight 3 stands for three equal rows. Only their ratios matter. With
            ``graph='auto'`` and without labels and pairs, equal rows are clustered as one row with the sum of their
            weights, so that copies are not each other's nearest neighbours. Of sparse rows, near-copies are, too: texts
            of one template, with a cosine of 0.6 or more.
        constraints : PairwiseConstraints, optional
            Must-links become edges, cannot-links repel; rows whose must-links are hard share their memberships.

        Returns
        -------
        self
        """
        with ignore_warnings(ConvergenceWarning):  # k-means on repeated rows is one start among others
            self._fit(X, y, sample_weight, constraints)
        if self._graph_is_default():
            warn_of_empty_rows(X, stacklevel=2)
        self._warn_and_print()
        return self

    def _warn_and_print(self) -> None:
        """Warn about an uncertain number of clusters, and print the report if the model is verbose."""
        if self.evidence_ is not None and not self.evidence_.is_stable:
            problem = self.evidence_.sentence.rstrip(".")
            hint = "look at report(), and give n_clusters if you know it"
            warn(problem, hint, code="unstable_n_clusters", n_clusters=self.n_clusters_)
        if self.evidence_ is not None and self.evidence_.is_capped and self.n_clusters_ == self.max_clusters:
            problem = f"max_clusters={self.max_clusters} is the largest number of clusters, and it was chosen"
            warn(problem, "give a larger one, or None", code="max_clusters_reached", n_clusters=self.n_clusters_)
        if self._state.landmarks is None:
            n_found = len(np.unique(to_numpy(self.labels_)[to_numpy(self.labels_) >= 0]))
            warn_if_clusters_are_empty(n_found, self.n_clusters_, "use fewer clusters or fewer outliers", stacklevel=2)
        if self.verbose:
            print_line(self.report())

    def _fit(self, X: Any, y: Any, sample_weight: Any, constraints: ConstraintsLike) -> None:
        rng = check_seed(self.random_state)
        self._state = FittedState()
        check_n_jobs(self.n_jobs)
        choose(EFFORTS, self.effort, option="effort")
        self._check_max_clusters()
        share = 0.0 if self.outliers is None else check_fraction(self.outliers, "outliers")
        if share and (isinstance(X, AffinityGraph) or not self._graph_is_default()):
            problem = "outliers are scored by the distances to nearest neighbours, but a graph is given"
            hint = "use graph='auto', or outliers=None"
            raise InputError(problem, hint, code="outliers_need_rows", parameter="outliers")
        if isinstance(self.graph, str):
            check_graph_name(self.graph, names=("auto", "precomputed"))
        X, table = self._read_rows(X)
        n_samples = X.n_nodes if isinstance(X, AffinityGraph) else X.shape[0]
        supervision = PartialSupervision.from_fit_arguments(y, check_constraints(constraints, X), n_samples)
        supervision.check_n_clusters(
            n_samples if self._n_clusters_is_auto() else check_n_clusters(self.n_clusters, n_samples, or_else="'auto'")
        )
        weights = check_sample_weight(sample_weight, n_samples)
        bounds = self._check_sizes(weights, n_samples, supervision)
        request, copies = _Request(supervision, bounds, share), None
        indicators = None if table is None else table.indicators  # without which rows of other words may be equal
        if not (supervision.n_known or isinstance(X, AffinityGraph)) and self._graph_is_default():
            copies = self._find_copies(X if indicators is None else indicators, weights)
        if copies is None:
            self._fit_rows(X, y, weights, request, rng, indicators)
            self._leave_out_empty(X, supervision)
        else:
            merged = copies.total(weights) if weights is not None or copies.exist else None
            if bounds is not None:
                request = request._replace(bounds=bounds._replace(weights=copies.total(weights)))
            self._keep(copies=copies if copies.exist else None)
            first = None if indicators is None else indicators[copies.first]
            self._fit_rows(take_rows(X, copies.first), y, merged, request, rng, first)
            self._restore_rows(copies, X)
        if supervision.labels is None:
            self._number_clusters()
        self._store_profiles(X, None if table is None else table.plan, weights)

    # ------------------------------------------------------------------------------------------------- steps of fit

    def _read_rows(self, X: Any) -> tuple[Any, EncodedTable | None]:
        """Return validated rows, or a graph, and the table of a data frame that they come from."""
        table = X if isinstance(X, EncodedTable) else None
        if is_dense_frame(X) and not is_precomputed(self.graph):
            encoder = TableEncoder()
            table = encoder.fit_columns(X, encoder.read(X))
        self.encoder_ = None if table is None else table.encoder
        if table is not None:
            X = check_data(table.rows, min_samples=2)
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = table.encoder.n_features_in_
            self.feature_names_in_ = table.encoder.feature_names_in_
        elif not isinstance(X, AffinityGraph):
            is_array, X = isinstance(X, np.ndarray), check_data(X, estimator=self, min_samples=2)
            if is_array and self._graph_is_default():
                warn_about_scales(X)
        return X, table

    def _keep(self, **changes: Any) -> None:
        """Replace fields of the fitted state."""
        self._state = replace(self._state, **changes)

    def _keep_rows(self, rows: Array | None, recipe: Any) -> None:
        self._keep(rows=rows, recipe=recipe)

    @property
    def _fit_X(self) -> Any:  # type: ignore[override]
        return self._state.rows

    @property
    def _fit_recipe(self) -> Any:
        return self._state.recipe

    def _check_sizes(
        self, weights: np.ndarray | None, n_samples: int, supervision: PartialSupervision
    ) -> SizeBounds | None:
        """Return the bounds on sizes, and raise an error if they are impossible."""
        bounds = check_size_bounds(self.min_cluster_size, self.max_cluster_size, weights, n_samples)
        if bounds is None:
            return None
        is_hard = supervision.given is not None and supervision.given.hard
        if self.outliers or is_hard:
            raise InputError(
                f"bounds on the sizes of clusters cannot be kept with {'hard must-links' if is_hard else 'outliers'}",
                f"use {'soft ones' if is_hard else 'outliers=None'}, or leave out the bounds",
                code="incompatible_parameters",
                parameter="constraints" if is_hard else "outliers",
            )
        if not self._n_clusters_is_auto():
            bounds.check_n_clusters(int(self.n_clusters))
        return bounds

    def _find_copies(self, X: Array, weights: np.ndarray | None) -> CopiedRows | None:
        """Return the different rows, which are clustered with the sums of their weights.

        All of them are, if fewer differ than there are clusters, if too few differ to be counted without many copies of
        each, or if copies of a row fill more than one cluster.
        """

        def accept(copies: CopiedRows) -> bool:
            n_different, is_auto = len(copies.first), self._n_clusters_is_auto()
            is_counted = is_auto and has_few_values(copies) and self.min_cluster_size is None
            is_counted = is_counted and (self.max_clusters or MIN_ROWS) >= n_different
            enough = n_different >= (MIN_ROWS if is_auto else int(self.n_clusters)) or (is_counted and n_different > 1)
            return enough and not (self.max_cluster_size and copies.total(weights).max() > self.max_cluster_size)

        are_texts = are_documents if self.encoder_ is None else sp.issparse
        copies, templates = ordered_copies(X, accept, are_texts, self.n_jobs)
        self._keep(templates=templates)
        needed = 2 if self._n_clusters_is_auto() else int(self.n_clusters)
        if copies is not None and len(copies.first) < needed:
            problem = f"only {len(copies.first)} of {X.shape[0]} rows have any entry, too few for {needed} clusters"
            hint = "use longer texts or fewer clusters"
            raise InputError(problem, hint, code="too_few_documents", n_documents=X.shape[0])
        return copies

    def _restore_rows(self, copies: CopiedRows, X: Array) -> None:
        """Bring results into the order of the rows, and give all copies of a row the same ones."""
        if self._state.n_compared in (None, len(copies.first)):  # all of them, not a sample
            candidates = [replace(one, labels=one.labels[copies.nodes]) for one in self._state.candidates]
            self._keep(candidates=candidates, n_compared=None if self._state.n_compared is None else X.shape[0])
        if copies.exist:
            self._expand_copies(copies)
            return
        self.graph_ = self.graph_.reorder(copies.nodes)
        self._take_results(copies)
        self._keep(rows=X if self.view_ == ROWS else take_rows(self._state.rows, copies.nodes))
        if self._state.weights is not None:
            self._keep(weights=self._state.weights[copies.nodes])

    def _expand_copies(self, copies: CopiedRows) -> None:
        """Give all copies of a row its results; new points are still placed among the different rows."""
        self._keep(copies=copies, graph=self.graph_)
        self.graph_ = expand_graph(self.graph_, copies.nodes)
        self._take_results(copies)

    def _leave_out_empty(self, X: Any, supervision: PartialSupervision) -> None:
        """Take rows without entries out of their clusters, except those with a known label."""
        if sp.issparse(X) and self._graph_is_default() and (is_empty := empty_rows(X)).any():
            if supervision.labels is not None:
                is_empty &= supervision.labels == UNKNOWN
            every_row = np.arange(X.shape[0])
            self._take_results(CopiedRows(every_row, np.where(is_empty, UNPLACED, every_row)))

    def _take_results(self, copies: CopiedRows) -> None:
        """Give each row the results of its node; a row that is left out is in no cluster, and may be in any."""
        self.memberships_ = copies.expand(self.memberships_, 1 / self.memberships_.shape[1])
        self.labels_ = copies.expand(self.labels_, OUTLIER)
        if self.row_agreement_ is not None:
            self.row_agreement_ = copies.expand(self.row_agreement_, 0.0)
        if self.outlier_score_ is not None:
            self.outlier_score_ = copies.expand(self.outlier_score_, np.nan)

    def _number_clusters(self) -> None:
        """Number the clusters in the order of their first rows."""
        order = order_by_first_row(self.labels_, self.n_clusters_)
        self.labels_ = renumber(self.labels_, order)
        self.memberships_ = take_clusters(self.memberships_, order, axis=1)
        chosen = self.candidates_["chosen"].index(True)
        candidates = list(self._state.candidates)
        candidates[chosen] = replace(candidates[chosen], labels=renumber(candidates[chosen].labels, order))
        self._keep(candidates=candidates)

    def _fit_rows(
        self,
        X: Any,
        y: Any,
        weights: np.ndarray | None,
        request: _Request,
        rng: np.random.RandomState,
        indicators: np.ndarray | None,
    ) -> None:
        """Cluster validated rows, or nodes of a graph, with weights, and label a share of them outliers."""
        supervision, share = request.supervision, request.outlier_share
        self._keep(weights=None if weights is None else relative_weights(weights))
        search_graphs, edges = self._build_graphs(X, y, supervision)
        search_graphs = {size: weigh_graph(graph, self._state.weights) for size, graph in search_graphs.items()}
        graphs = {size: attractive_part(graph) for size, graph in search_graphs.items()}
        self.evidence_ = self._count(graphs, edges, request) if self._n_clusters_is_auto() else None
        self.n_clusters_ = int(self.n_clusters) if self.evidence_ is None else self.evidence_.n_clusters
        effort, low_dimensional = self._effort(supervision.n_known)
        max_searches = MAX_SEARCHES if effort is None else effort.max_searches
        scorer, candidates, leader = self._find_candidates(graphs, search_graphs, request, max_searches, rng)
        graph, seed = list(graphs.values())[-1], int(rng.randint(2**31 - 1))
        if effort is None:
            chosen = self._choose_by_scores(scorer, candidates, leader, supervision, seed)
            self._store_choice(candidates, chosen)
            self._set_memberships(chosen.labels, None, graph, request)
            self._score_outliers(edges, share, supervision)
            return
        assert edges is not None
        search_graph = list(search_graphs.values())[-1]
        rows = View(ROWS, None, self._state.rows, edges, graph, search_graph, self._state.weights, indicators)
        comparer = Comparer(
            effort, self.n_clusters_, low_dimensional, seed, supervision.pairs, supervision.n_known, self.n_jobs
        )
        comparison = comparer.compare(rows, scorer, candidates, candidates.index(leader))
        self._store_choice(comparison.candidates, comparison.chosen, comparison.n_compared)
        self._keep(rows=comparison.view.rows, view=comparison.view.transformer)
        self._set_memberships(comparison.labels, comparison.votes, comparison.view.graph, request)
        self._score_outliers(comparison.view.edges, share, supervision)

    def _build_graphs(self, X: Any, y: Any, supervision: PartialSupervision) -> tuple[Graphs, Edges | None]:
        """Build the graphs, the sparsest first, with given pairs; store what new points need.

        The second result are the nearest neighbours from which the default graphs are built.
        """
        if not self._graph_is_default() or isinstance(X, AffinityGraph):
            return {None: self._build_graph(X, y, supervision.pairs, validated=True)}, None
        check_rows_differ(X)
        sizes = sorted({min(size, X.shape[0] - 1) for size in GRAPH_SIZES})
        recipe = self_tuned(sizes[-1], connect="mst", n_jobs=self.n_jobs)
        self._keep_rows(X, recipe)
        edges, graphs = nested_graphs(recipe, X, sizes)
        if supervision.pairs is not None:
            graphs = [add_constraints(graph, supervision.pairs) for graph in graphs]
        return dict(zip(sizes, graphs)), edges

    def _check_max_clusters(self) -> None:
        """Check the largest number of clusters, which a given number must not exceed."""
        if self.max_clusters is None:
            return
        most = check_int(self.max_clusters, "max_clusters", minimum=2)
        if isinstance(self.n_clusters, Integral) and self.n_clusters > most:
            problem = f"n_clusters={self.n_clusters} is more than max_clusters={most}"
            raise InputError(
                problem, "leave out max_clusters", code="incompatible_parameters", parameter="max_clusters"
            )

    def _n_clusters_is_auto(self) -> bool:
        return isinstance(self.n_clusters, str) and self.n_clusters == "auto"

    def _count(self, graphs: Graphs, edges: Edges | None, request: _Request) -> NClustersChoice:
        """Choose the number of clusters within the bounds, at least the number of classes in given labels."""
        supervision, bounds, _ = request
        densest = list(graphs.values())[-1]
        if self._state.copies is not None and densest.n_nodes < MIN_ROWS:
            return one_for_each(densest.n_nodes)
        min_clusters, max_clusters = max(2, supervision.n_classes), self.max_clusters
        may_be_one = self._graph_is_default() and supervision.n_classes < 2 and supervision.given is None
        if bounds is not None:
            fewest, most = bounds.n_clusters()
            min_clusters, may_be_one = max(min_clusters, fewest), may_be_one and fewest == 1
            if most < min_clusters:
                bounds.check_n_clusters(1 if supervision.n_classes < 2 else supervision.n_classes)
                return NClustersChoice(1, "the only number of clusters of these sizes", [1])
            max_clusters = most if max_clusters is None else min(max_clusters, most)
        if max_clusters is not None and max_clusters < min_clusters:
            problem = f"the known labels or the sizes of clusters require {min_clusters} clusters or more"
            hint = f"leave out max_clusters={self.max_clusters}, or allow as many"
            raise InputError(problem, hint, code="incompatible_parameters", parameter="max_clusters")
        return count_clusters(
            densest,
            None,
            lambda rows: self._subset_graph(rows, densest),
            min_clusters=min_clusters,
            max_clusters=max_clusters,
            random_state=np.random.RandomState(0),
            n_jobs=self.n_jobs,
            rows=self._state.rows if self._graph_is_default() else None,
            may_be_one=may_be_one,
            density=None if edges is None else RowDensity.of(edges),
            weights=self._state.weights,
        )

    def _subset_graph(self, rows: np.ndarray, graph: AffinityGraph) -> AffinityGraph:
        """Return the graph of some rows alone: built anew where possible, else induced."""
        recipe = self._state.recipe
        if self._state.rows is None or not isinstance(recipe, KNNGraph) or recipe.n_neighbors >= len(rows):
            return subgraph(graph, rows)
        weights = None if self._state.weights is None else self._state.weights[rows]
        return weigh_graph(attractive_part(recipe._build(take_rows(self._state.rows, rows))), weights)

    def _find_candidates(
        self, graphs: Graphs, search_graphs: Graphs, request: _Request, max_searches: int, rng: np.random.RandomState
    ) -> tuple[PartitionScorer, list[Candidate], Candidate]:
        """Return the scorer, communities and mixtures, and the communities that lead."""
        supervision, bounds, _ = request
        n_clusters, n_known = self.n_clusters_, supervision.n_known
        reason = reason_against_mixtures(self._state.rows, n_clusters)
        self._keep(no_mixture_reason=reason)
        X = self._state.rows if reason is None else None
        agreement = supervision.agreement if n_known else None
        scorer = PartitionScorer(graphs, n_clusters, X, agreement, self._state.weights, bounds)
        starts = supervision.spread(list(graphs.values())[-1], n_clusters)
        candidates, searches = graph_candidates(
            scorer, search_graphs, starts=starts, max_searches=max_searches, rng=rng, n_jobs=self.n_jobs
        )
        leader = select_by_cut(candidates, n_known)
        if X is not None:
            seed, hierarchy = int(rng.randint(2**31 - 1)), searches[leader.n_neighbors].hierarchy
            candidates += mixture_candidates(
                scorer, leader, hierarchy, constraints=supervision.pairs, random_state=seed
            )
        return scorer, candidates, leader

    def _choose_by_scores(
        self,
        scorer: PartitionScorer,
        candidates: list[Candidate],
        leader: Candidate,
        supervision: PartialSupervision,
        seed: int,
    ) -> Candidate:
        """Choose by cut and likelihood; a mixture that is chosen is refined on the rows, and replaced in the list."""
        rivals = [one for one in candidates if one.family == "LapGMM"]
        chosen = select_by_likelihood(leader, rivals, supervision.n_known)
        if chosen is leader:
            return leader
        refined = refine_mixture(scorer, chosen, constraints=supervision.pairs, random_state=seed)
        if select_by_likelihood(leader, [refined], supervision.n_known) is not refined:
            return chosen
        candidates[candidates.index(chosen)] = refined
        return refined

    def _effort(self, n_known: int) -> tuple[Effort | None, bool]:
        """Return how much is compared, None if nothing is, and whether the rows are low-dimensional.

        Nothing is compared with ``effort='fast'``, on a graph alone, for one cluster, for few rows, also per cluster of
        a sample, and where known labels or pairs refer to more rows than a sample has.
        """
        effort, X = EFFORTS[self.effort], self._state.rows
        if effort is None or not self._graph_is_default() or X is None or self.n_clusters_ == 1:
            return None, True
        low_dimensional = is_low_dimensional(X)
        n_compared = effort.n_rows(low_dimensional)
        is_sampled = X.shape[0] > n_compared
        too_few = X.shape[0] < MIN_ROWS or (is_sampled and n_compared < MIN_ROWS_PER_CLUSTER * self.n_clusters_)
        return None if too_few or (is_sampled and n_known) else effort, low_dimensional

    def _store_choice(self, candidates: list[Candidate], chosen: Candidate, n_compared: int | None = None) -> None:
        """Store the table of candidates and how far they agree."""
        self.candidates_ = candidates_table(candidates, chosen)
        self._keep(candidates=candidates, n_compared=n_compared)
        self.view_, self.consensus_ = chosen.view, None if n_compared is None else chosen.consensus

    def _set_memberships(
        self, labels: np.ndarray, votes: np.ndarray | None, graph: AffinityGraph, request: _Request
    ) -> None:
        """Compute memberships and labels; the clusters are numbered as the known labels are."""
        supervision, bounds, _ = request
        reference = (
            csr_parts(graph.weights)[0]
            if self._state.rows is None or sp.issparse(self._state.rows)
            else self._state.rows
        )
        numbering = supervision.numbering(labels, self.n_clusters_)
        options: dict[str, Any] = {}
        if votes is not None:
            votes = votes[:, np.argsort(numbering)]
            options = {"votes": votes, "consensus": self.consensus_}
        Q = walk_memberships(numbering[labels], self.n_clusters_, graph, supervision, reference, **options)
        self.memberships_, self.labels_ = Q, namespace(Q).argmax(Q, axis=1)
        if bounds is not None:
            fixed = None if supervision.labels is None else supervision.labels != UNKNOWN
            assigned = bounds.assign(to_numpy(Q), fixed)
            self.labels_ = asarray_like(assigned, Q, dtype=self.labels_.dtype)
        self.row_agreement_ = None if votes is None else votes[np.arange(len(labels)), to_numpy(self.labels_)]
        self.graph_ = graph

    def _score_outliers(self, edges: Edges | None, share: float, supervision: PartialSupervision) -> None:
        """Compute outlier scores from the neighbours in the chosen view, and label a share of the rows -1."""
        self.outlier_score_ = None if edges is None else outlier_scores(edges)
        if not share or self.outlier_score_ is None:
            return
        labels = to_numpy(self.labels_).copy()
        known = np.zeros(len(labels), dtype=bool) if supervision.labels is None else supervision.labels != UNKNOWN
        labels[select_outliers(self.outlier_score_, share, known, self._state.weights)] = OUTLIER
        self.labels_ = asarray_like(labels, self.memberships_, dtype=self.labels_.dtype)

    def _store_profiles(self, X: Any, columns: Sequence[Column] | None, weights: np.ndarray | None) -> None:
        """Store the columns by cluster where they cannot be computed from the rows that the model keeps."""
        labels = to_numpy(self.labels_)
        if columns is not None:
            self._keep(profiles=profile_table(columns, labels, self.n_clusters_, weights=weights))
        elif self._state.view is not None or self._state.templates is not None:
            rows = X if sp.issparse(X) else to_numpy(X)
            names = getattr(self, "feature_names_in_", None)
            self._keep(profiles=profile_rows(rows, labels, self.n_clusters_, names, weights))

    # ------------------------------------------------------------------------------------------------ after the fit

    def fit_transform(self, X: MatrixLike | AffinityGraph, y: LabelsLike | None = None, **fit_params: Any) -> Array:
        """Cluster the rows of ``X`` and return their memberships; parameters as in :meth:`fit`."""
        return self.fit(X, y, **fit_params).memberships_

    @dispatch_blocks
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the memberships of new points: the mean of their neighbours', weighted as in the graph.

        A point that equals a training row, or is a near-copy of one that stands for such rows, has that row's
        memberships. A sparse row without entries, as of a text without a known term, has equal ones, with a warning.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, d), or data frame
            Columns of a data frame are found by name; missing values, and with a warning missing columns, are estimated
            if the model was fitted to a data frame.

        Returns
        -------
        memberships : array of shape (m, n_clusters)
        """
        check_is_fitted(self)
        return self._mean_memberships(
            X, self.memberships_ if self._state.landmarks is None else self._state.landmarks.memberships
        )

    def _mean_memberships(self, X: MatrixLike, F: Array) -> Array:
        """Return the means over the neighbours of new points of the memberships F of the rows that the model keeps."""
        F = F if self._state.copies is None else take_rows(F, self._state.copies.first)
        given = X
        W, X = self._links_to(given, F)
        degrees = link_degrees(W, signed=False)
        xp = namespace(F)
        sums = asarray_like(to_numpy(degrees), F, dtype=F.dtype)[:, None]
        mean = matmul(W, F) / xp.where(sums > 0, sums, 1)
        mean = replace_coincident_rows(mean, F, W, to_numpy(degrees) == 0, X, self._state.rows)
        if self._state.templates is not None:
            nodes = self._state.templates.find(check_data(given, estimator=self, reset=False))
            mean = xp.where(asarray_like(nodes != UNPLACED, F, dtype=xp.bool)[:, None], take_rows(F, nodes), mean)
        if sp.issparse(given) and (is_empty := empty_rows(given)).any():
            warn_of_empty_rows(given, stacklevel=4)
            mean = xp.where(asarray_like(is_empty, F, dtype=xp.bool)[:, None], 1 / F.shape[1], mean)
        return mean

    @dispatch_blocks
    def predict(self, X: MatrixLike) -> Array:
        """Return the most probable cluster of each new point; -1 for sparse rows without entries.

        Parameters
        ----------
        X : as in :meth:`predict_proba`

        Returns
        -------
        labels : array of shape (m,)
        """
        check_is_fitted(self)
        if self._state.fitted is not None:
            labels = self._predict_at_level(X)
        else:
            proba = self.predict_proba(X)
            labels = namespace(proba).argmax(proba, axis=1)
        if sp.issparse(X):
            labels[empty_rows(X)] = OUTLIER
        return labels

    def report(self, n_uncertain: int = 10) -> str:
        """Describe why this partition was chosen, how stable it is, and which rows are uncertain.

        Parameters
        ----------
        n_uncertain : int, default=10
            The number of uncertain rows to list.

        Returns
        -------
        report : str
        """
        check_is_fitted(self)
        n_uncertain = check_int(n_uncertain, "n_uncertain", minimum=0)
        chosen = self._state.candidates[self.candidates_["chosen"].index(True)]
        landmarks = self._state.landmarks
        if landmarks is None:
            Q, labels, agreement = self.memberships_, self.labels_, getattr(self, "row_agreement_", None)
        else:
            landmarks = landmarks.drawn()
            Q, labels, agreement = landmarks.memberships, landmarks.memberships.argmax(axis=1), landmarks.agreement
        report = format_report(
            self._state.candidates,
            chosen,
            self._state.no_mixture_reason,
            Q,
            n_uncertain,
            labels=labels,
            n_compared=self._state.n_compared,
            row_agreement=agreement,
            sample=None if landmarks is None else (landmarks.numbers, landmarks.n_rows),
            n_added=self._state.n_added,
        )
        is_updated = self._state.fitted is None and getattr(self.evidence_, "n_clusters", None) != self.n_clusters_
        heads = [self._level_sentence(), None if self.evidence_ is None or is_updated else self.evidence_.sentence]
        heads += [] if self._state.templates is None else [self._state.templates.sentence]
        return "\n\n".join([*filter(None, heads), report])

    def score(self, X: MatrixLike, y: LabelsLike | None = None) -> float:
        """Return the modularity of the predicted clusters on the default graph of ``X``; see `LapGMM.score`."""
        if self.encoder_ is None:
            return super().score(X, y)
        rows, without = self._encode(X), copy(self)
        without.encoder_, without.n_features_in_ = None, rows.shape[1]
        without.__dict__.pop("feature_names_in_", None)
        return without.score(rows)

    def _links_to(self, X: MatrixLike, F: Array) -> tuple[Sparse, Array]:
        """Return the weights from new points to the different rows, by their weights, and the points."""
        X, graph = self._check_new_points(X), self.graph_ if self._state.graph is None else self._state.graph
        W = link_weights(F, self._state.recipe, X, self._state.rows, graph)
        if self._state.weights is None:
            return W, X
        data = csr_parts(W)[0] if is_sparse(W) else W
        root = asarray_like(np.sqrt(self._state.weights), data, dtype=data.dtype)
        return scale_rows_columns(W, right=root) if is_sparse(W) else W * root, X

    def _check_new_points(self, X: MatrixLike) -> Array:
        """Validate new points, encode or complete those of a table, and transform them to the chosen view."""
        if self._state.rows is None or (self.encoder_ is None and self._state.view is None):
            return super()._check_new_points(X)
        if self.encoder_ is not None:
            X = convert_rows(check_data(self._encode(X)), self._state.rows)
        else:
            X = check_data(X, estimator=self, reset=False)
        return X if self._state.view is None else self._state.view._embed(X)

    def _encode(self, X: Any) -> np.ndarray:
        """Return the rows of a table as the encoder of the fit makes them for the chosen view."""
        assert self.encoder_ is not None
        return self.encoder_.indicators(X) if self.view_ == INDICATORS else self.encoder_.transform(X)

    def _recipe(self) -> Any:
        """Return the recipe of the graph of the memberships; with 'auto' the denser of the two."""
        return self_tuned(GRAPH_SIZES[-1], connect="mst") if self._graph_is_default() else self.graph

    def _graph_is_default(self) -> bool:
        return isinstance(self.graph, str) and self.graph == "auto"
