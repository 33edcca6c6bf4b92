"""ManifoldClustering: the library's default answer. Several partitions, one choice without labels, soft memberships.

1. Self-tuned graphs of 5 and of 9 neighbours, from one search.
2. Candidates on them and the choice between them: :mod:`fiedler.clustering.candidates`.
3. Memberships: a random walk starts at row i and stops with probability 1 - γ before every step; q_ik is the
   probability that it stops in cluster k of the chosen partition,

       Q = (1-γ) (I - γ D⁻¹W)⁻¹ H,      H the one-hot labels, the known ones put right.

   A row deep inside a cluster stays there; one between two clusters is shared. New points take the walk's first step.

Memberships do not come from the Gaussians of LapGMM: in more than a few dimensions these are certain of every row,
right or wrong, while the walk's confidence is near the accuracy (docs/manifold.md has both).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_int, check_n_clusters, check_rows_differ
from ..core.backend import Array, asarray_like, namespace, one_hot, to_numpy
from ..core.multiplicative import positive_part
from ..core.progress import report_progress
from ..core.rows import normalize_row_sums, take_rows
from ..core.sparse import csr_parts, matmul
from ..graph.affinity import AffinityGraph
from ..graph.constraints import check_constraints
from ..graph.estimator import GraphEstimatorMixin, restore_on_failure
from ..graph.out_of_sample import link_degrees, replace_coincident_rows
from ..graph.pairs import add_links, attractive_part, group_means
from ..graph.recipes import KNNGraph, nested_graphs, self_tuned
from ..graph.smoothing import resolvent
from .candidates import (
    Candidate,
    PartitionScorer,
    candidates_table,
    graph_candidates,
    mixture_candidates,
    select_by_cut,
    select_by_likelihood,
    why_no_mixture,
)
from .count import count_clusters, subgraph
from .explain import format_report
from .partial_supervision import PartialSupervision

SCALES = (5, 9)  # neighbours
WALK = 0.7  # γ: a walk takes 2.3 steps on average


class ClusterResult(NamedTuple):
    """What :func:`fiedler.clustering` returns.

    Attributes
    ----------
    labels : array of shape (n,)
    memberships : array of shape (n, n_clusters)
    model : ManifoldClustering

    Examples
    --------
    >>> import fiedler
    >>> found = fiedler.cluster([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]], n_clusters=2, random_state=0)
    >>> found.memberships.shape
    (6, 2)
    >>> found.model.n_clusters_
    2
    """

    labels: Array
    memberships: Array
    model: ManifoldClustering


def cluster(
    X: Any, n_clusters: Any = "auto", *, y: Any = None, constraints: Any = None, **options: Any
) -> ClusterResult:
    """Cluster the rows of ``X`` with nothing but the data.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d), or AffinityGraph
    n_clusters : int or 'auto', default='auto'
    y, constraints
        As in :meth:`ManifoldClustering.fit`.
    **options
        As in :class:`ManifoldClustering`.

    Returns
    -------
    ClusterResult
        ``labels`` (n,), ``memberships`` (n, K) and the fitted ``model``.

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
    model = ManifoldClustering(n_clusters, **options).fit(X, y, constraints=constraints)
    return ClusterResult(model.labels_, model.memberships_, model)


class ManifoldClustering(GraphEstimatorMixin, ClusterMixin, BaseEstimator):
    """Clusters on a manifold: several kinds of partition, one choice without labels, memberships, ``predict``.

    Parameters
    ----------
    n_clusters : int or 'auto', default=8
        'auto' counts them by stability and eigengap, see :mod:`fiedler.clustering.count`; known labels set the least
        number, pairs have no part in it.
    graph : 'auto', recipe, AffinityGraph, matrix or 'precomputed', default='auto'
        'auto' is two self-tuned graphs, of 5 and of 9 neighbours; anything else is the one graph that is used.
    max_clusters : int, default=20
        The most that 'auto' considers.
    random_state : int, RandomState or None, default=None
    n_jobs : int, optional
        Threads of the searches: for neighbours, where ``graph='auto'``, and for candidates.
    verbose : bool, default=False
        Print the report after the fit; candidates are logged as they are measured.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    memberships_ : array of shape (n_samples, n_clusters)
        Rows sum to one; ``labels_`` are their largest entries.
    n_clusters_ : int
    candidates_ : dict of lists
        What was tried, with every criterion, a column a key: ``pandas.DataFrame(model.candidates_)``.
    evidence_ : NClustersChoice or None
        Of ``n_clusters='auto'``.
    graph_ : AffinityGraph
        The graph of the memberships: the denser one, with known must-links in it.
    n_features_in_ : int

    See Also
    --------
    LapGMM : the mixture that takes part in the choice.

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

    def __init__(
        self,
        n_clusters: Any = 8,
        graph: Any = "auto",
        *,
        max_clusters: int = 20,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.max_clusters = max_clusters
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> ManifoldClustering:
        """Cluster the rows of ``X``, or the nodes of a graph.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), AffinityGraph, or affinity matrix if ``graph='precomputed'``
        y : array of shape (n,), optional
            Known clusters 0..n_clusters-1 of some rows, -1 where unknown; known rows keep theirs. Ignored if it holds
            no -1, as every clusterer ignores the labels that pipelines and searches pass along (but a recipe made from
            labels, such as LabelGraph, sees them).
        constraints : PairwiseConstraints, optional
            Must-links become edges, cannot-links repel; rows whose must-links are hard share their memberships.
        """
        with report_progress(self), restore_on_failure(self), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # k-means on repeated rows: a start like others
            self._fit(X, y, constraints)
        if self.verbose:
            print(self.report())
        return self

    def fit_predict(self, X: Any, y: Any = None, *, constraints: Any = None) -> Array:
        """Cluster and give each row's cluster; parameters as in :meth:`fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    def _fit(self, X: Any, y: Any, constraints: Any) -> None:
        rng, n = check_random_state(self.random_state), _n_rows(X)
        known = PartialSupervision.of(y, check_constraints(constraints, X), n)
        known.check(n if self._counts() else check_n_clusters(self.n_clusters, n))
        steered = self._graphs(X, y, known)
        graphs = {name: attractive_part(graph) for name, graph in steered.items()}
        self.n_clusters_ = k = self._number(graphs, known, rng)
        chosen = self._choose(graphs, steered, k, known, rng)
        self._soften(chosen, list(graphs.values())[-1], known)

    # ------------------------------------------------------------------------------------------------- steps of fit

    def _graphs(self, X: Any, y: Any, known: PartialSupervision) -> dict[str, AffinityGraph]:
        """The graphs by name, sparsest first, known pairs written into them; keeps what new points need."""
        if not self._graph_is_default() or isinstance(X, AffinityGraph):
            return {"the graph": self._build_graph(X, y, known.pairs)}
        X = check_data(X, estimator=self, min_samples=2)
        check_rows_differ(X)
        sizes = sorted({min(size, X.shape[0] - 1) for size in SCALES})
        recipe = self_tuned(sizes[-1], connect="mst", n_jobs=self.n_jobs)
        self._fit_X, self._fit_recipe = X, recipe
        built = nested_graphs(recipe, X, sizes)
        if known.pairs is not None:
            built = [add_links(graph, known.pairs) for graph in built]
        return {f"{size} neighbours": graph for size, graph in zip(sizes, built)}

    def _counts(self) -> bool:
        return isinstance(self.n_clusters, str) and self.n_clusters == "auto"

    def _number(self, graphs: dict[str, AffinityGraph], known: PartialSupervision, rng: np.random.RandomState) -> int:
        """K as given, or counted; no less than the known labels name."""
        self.evidence_ = None
        if not self._counts():
            return int(self.n_clusters)
        fewest = max(2, known.n_classes)
        most = max(check_int(self.max_clusters, "max_clusters", minimum=2), fewest)
        densest = list(graphs.values())[-1]
        self.evidence_ = count_clusters(
            densest,
            range(fewest, most + 1),
            lambda rows: self._graph_on(rows, densest),
            random_state=rng,
            n_jobs=self.n_jobs,
        )
        return self.evidence_.n_clusters

    def _graph_on(self, rows: np.ndarray, graph: AffinityGraph) -> AffinityGraph:
        """The graph of some rows alone: built anew from rows where that can be done, else induced."""
        recipe = self._fit_recipe
        if self._fit_X is None or not isinstance(recipe, KNNGraph) or recipe.n_neighbors >= len(rows):
            return subgraph(graph, rows)
        return attractive_part(recipe._build(take_rows(self._fit_X, rows)))

    def _choose(
        self,
        graphs: dict[str, AffinityGraph],
        steered: dict[str, AffinityGraph],
        k: int,
        known: PartialSupervision,
        rng: np.random.RandomState,
    ) -> Candidate:
        """Both stages; keeps the table of what was tried."""
        self._without = why_no_mixture(self._fit_X, k)
        rows = self._fit_X if self._without is None else None
        yard = PartitionScorer(graphs, k, rows, known.agreement if known.n_known else None)
        starts = known.spread(list(graphs.values())[-1], k)
        tried = graph_candidates(yard, steered, starts=starts, rng=rng, n_jobs=self.n_jobs)
        chosen = select_by_cut(tried, known.n_known)
        if rows is not None:
            rivals = mixture_candidates(yard, chosen, constraints=known.pairs, random_state=rng.randint(2**31 - 1))
            tried, chosen = [*tried, *rivals], select_by_likelihood(chosen, rivals, known.n_known)
        self.candidates_ = candidates_table(tried, chosen)
        self._partitions: Sequence[Candidate] = tried
        return chosen

    def _soften(self, chosen: Candidate, graph: AffinityGraph, known: PartialSupervision) -> None:
        """Memberships by the random walk; known rows keep their cluster, hard groups share theirs."""
        home = csr_parts(graph.weights)[0] if self._fit_X is None or sp.issparse(self._fit_X) else self._fit_X
        labels = known.named(chosen.labels, self.n_clusters_)
        H = known.clamped(one_hot(labels, self.n_clusters_, home))
        for walk in (WALK, WALK / 2, WALK / 4, 0.0):  # a shorter one where a cluster would lose its last row
            Q = normalize_row_sums(positive_part(resolvent(H, graph, walk, tol=1e-6)))  # rounding apart, they do
            if known.pairs is not None and known.pairs.hard:
                Q = group_means(Q, known.pairs.groups)
            self.memberships_ = known.clamped(Q)
            self.labels_ = namespace(Q).argmax(self.memberships_, axis=1)
            if len(np.unique(to_numpy(self.labels_))) >= chosen.n_clusters:
                break
        self.graph_ = graph

    # ------------------------------------------------------------------------------------------------ after the fit

    def predict_proba(self, X: Any) -> Array:
        """The memberships of new points: the mean of their neighbours', weighted as the graph is.

        A row that was fitted has the memberships it got.
        """
        check_is_fitted(self)
        F = self.memberships_
        W, X = self._links_to(X, F)
        degrees = link_degrees(W, signed=False)
        xp = namespace(F)
        sums = asarray_like(to_numpy(degrees), F, dtype=F.dtype)[:, None]
        mean = matmul(W, F) / xp.where(sums > 0, sums, 1)
        return replace_coincident_rows(mean, F, W, to_numpy(degrees) == 0, X, self._fit_X)

    def predict(self, X: Any) -> Array:
        """The most probable cluster of each new point."""
        proba = self.predict_proba(X)
        return namespace(proba).argmax(proba, axis=1)

    def report(self, n_doubtful: int = 10) -> str:
        """Why this partition, how stable it is, and which rows are in doubt, in words.

        Parameters
        ----------
        n_doubtful : int, default=10
            How many of the closest calls to name.
        """
        check_is_fitted(self)
        chosen = self._partitions[self.candidates_["chosen"].index(True)]
        story = format_report(
            self._partitions, chosen, self._without, self.memberships_, check_int(n_doubtful, "n_doubtful", minimum=0)
        )
        return story if self.evidence_ is None else f"{self.evidence_}\n\n{story}"

    # ---------------------------------------------------------------------------------------------------- the default

    def _recipe(self) -> Any:
        """The graph of the memberships; with 'auto' the denser of the two."""
        return self_tuned(SCALES[-1], connect="mst") if self._graph_is_default() else self.graph

    def _graph_is_default(self) -> bool:
        return isinstance(self.graph, str) and self.graph == "auto"


def _n_rows(X: Any) -> int:
    return X.n_nodes if isinstance(X, AffinityGraph) else check_data(X, min_samples=2).shape[0]
