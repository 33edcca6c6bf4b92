"""ManifoldClustering on a Dask array.

The steps are those in memory, with the same functions wherever these work on one block or on one machine:

1. Rows are written to files, and divided by cells of nearby rows (:mod:`.partition`).
2. Neighbours are searched in every block, and the self-tuned graphs are made from them (:mod:`.neighbors`,
   :mod:`.graph`).
3. Every block groups its nodes. The contracted graphs, of at most `MAX_NODES` nodes, are searched by the code that
   searches them in memory. Up to that many rows there are no groups, and the search is the same.
4. Views and methods are compared on a sample of the rows, as they are in memory for many rows.
5. The labels of groups become those of their rows, nodes move (:mod:`.graph`), and memberships follow from a walk
   (:mod:`.walk`), each with the values of other blocks at their border.

The model keeps a sample of the rows with their memberships, the *landmarks*, by which new points are placed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._validation import check_int, check_n_clusters, check_n_jobs, check_rows_differ, choose
from ..core.arrays import Array, take_rows
from ..core.fitting import is_dask_array
from ..core.parallel import MAX_NODE_BYTES, MAX_NODES
from ..errors import InputError, StorageError
from ..graph.community import MultilevelSearch, search_hierarchy
from ..graph.labels import UNKNOWN, mark_unknown
from ..graph.recipes import self_tuned
from ..manifold.candidates import (
    MAX_SEARCHES,
    RIDGE,
    ROWS,
    Candidate,
    Graphs,
    PartitionScorer,
    communities_of_search,
    has_settled,
    mixture_candidates,
    n_searches,
    reason_against_mixtures,
    select_by_cut,
    select_by_likelihood,
)
from ..manifold.choice import EFFORTS, MIN_ROWS, MIN_ROWS_PER_CLUSTER, Comparer, Effort
from ..manifold.estimator import GRAPH_SIZES, ManifoldClustering
from ..manifold.n_clusters import NClustersChoice, count_rows
from ..manifold.state import FittedState, Landmarks
from ..manifold.views import is_low_dimensional
from ..mixture.statistics import Statistics, group_statistics
from ..persistence import load, save
from .graph import CoarseGraphs, GraphBlocks, Groups, refine
from .mixture import read_statistics, statistics_arrays, sum_statistics
from .neighbors import search_method
from .partition import CellBlocks, Layout, RowBlocks, select_values
from .run import Run, draw_seed, refuse, run_steps
from .store import Task
from .walk import compute_memberships

MAX_LANDMARKS = 50_000
MAX_LANDMARK_BYTES = 2**27  # fewer, if rows are long ...
MIN_LANDMARKS = 10_000  # ... but at least so many, which are compared
MIN_CLUSTER_LANDMARKS = 100  # rows of a cluster that are landmarks, if it has so many; fewer of many clusters
COMPARISON = "comparison"


def fit(
    model: ManifoldClustering, X: Any, y: Any = None, *, sample_weight: Any = None, constraints: Any = None
) -> ManifoldClustering:
    """Cluster the rows of a Dask array; ``labels_`` and ``memberships_`` are Dask arrays with its blocks."""
    _check_options(model, y, sample_weight, constraints)
    seed = draw_seed(model.random_state)
    run_steps(model, X, seed, lambda run: _Fit(model, run, seed).fit(X))
    model._warn_and_print()
    return model


def _check_options(model: ManifoldClustering, y: Any, sample_weight: Any, constraints: Any) -> None:
    """Raise an error for options that have no block version."""
    choose(EFFORTS, model.effort, option="effort")
    check_n_jobs(model.n_jobs)
    model._check_max_clusters()
    has_labels = y is not None and (is_dask_array(y) or UNKNOWN in mark_unknown(y))
    unsupported = {
        "sample_weight": sample_weight is not None,
        "constraints": constraints is not None,
        "outliers": bool(model.outliers),
        "min_cluster_size": model.min_cluster_size is not None,
        "max_cluster_size": model.max_cluster_size is not None,
        "graph": not model._graph_is_default(),
    }
    hint = "leave it out, or pass X.compute() if the rows fit into memory"
    refuse("ManifoldClustering does not take labels {}", [("y", has_labels, hint)])
    refuse("ManifoldClustering does not take {}", [(name, given, hint) for name, given in unsupported.items()])


class Sample(NamedTuple):
    """Some of the rows, from which cells and views are made, and which become the landmarks of the model."""

    numbers: np.ndarray  # of the rows in the input, ascending
    rows: Array


class Choice(NamedTuple):
    """The chosen partition."""

    labels: str | None  # the step with the labels of the nodes; None takes those of the nearest sampled rows
    compared: str | None  # the step with the result of the comparison
    consensus: float
    graph: GraphBlocks  # of its view
    landmarks: Array  # the sample in its view
    view: Any  # the transformer to its view, None for the rows


@dataclass(eq=False)
class _Fit:
    """The fit of a model, step by step; it is called again if a block is lost, and does the same again."""

    model: ManifoldClustering
    run: Run
    seed: int | None

    def fit(self, X: Any) -> None:
        """Run the steps and store the results."""
        model = self.model
        model._state = FittedState()
        seed, *seeds = np.random.RandomState(self.run.seed(self.seed)).randint(2**31 - 1, size=7).tolist()
        rows = RowBlocks.store(self.run, X)
        if rows.n_rows < 2:
            raise InputError("X has only one row", "give at least two rows", code="too_few_rows", n_samples=1)
        size = max(MIN_LANDMARKS, rows.most_rows(MAX_LANDMARKS, MAX_LANDMARK_BYTES))
        numbers = rows.draw(size, np.random.RandomState(seed))
        sample = Sample(numbers, rows.select(numbers, "sample"))
        check_rows_differ(sample.rows)
        graph = _build_graph(rows, sample.rows, "", seeds[0])
        coarse = graph.contract(rows.most_rows(MAX_NODES, MAX_NODE_BYTES), seeds[1])
        model.evidence_ = self._count(sample.rows)
        if model.evidence_ is None:
            model.n_clusters_ = check_n_clusters(model.n_clusters, rows.n_rows, or_else="'auto'")
        else:
            model.n_clusters_ = model.evidence_.n_clusters
        effort, low_dimensional = self._effort(sample.rows, rows.n_rows)
        found, leader = self._find_candidates(coarse, effort, seeds[3])
        if effort is None:
            choice = self._choose_by_scores(coarse, found, leader, sample, seeds[4])
        else:
            comparer = Comparer(effort, model.n_clusters_, low_dimensional, seeds[5], n_jobs=model.n_jobs)
            choice = self._choose_by_comparison(comparer, coarse, found, leader, sample, seeds)
        result = compute_memberships(choice.graph, choice.labels, choice.compared, choice.consensus, model.n_clusters_)
        self._store(rows, result, sample.numbers, choice)

    def _count(self, sample: Array) -> NClustersChoice | None:
        """Choose the number of clusters by the sample."""
        model = self.model
        if not model._n_clusters_is_auto():
            return None

        def count() -> dict[str, Array]:
            choice = count_rows(sample, max_clusters=model.max_clusters, n_jobs=model.n_jobs)
            return {"record": np.array(json.dumps(asdict(choice)))}

        (record,) = self.run.once("number-of-clusters", count, "record")
        return NClustersChoice(**json.loads(str(record)))

    def _effort(self, sample: Array, n_rows: int) -> tuple[Effort | None, bool]:
        """Return how much is compared, None if nothing is, and whether the rows are low-dimensional."""
        effort, k = EFFORTS[self.model.effort], self.model.n_clusters_
        if effort is None or k == 1:
            return None, True
        low_dimensional = is_low_dimensional(sample)
        n_compared = min(n_rows, effort.n_rows(low_dimensional))
        least = MIN_ROWS if n_compared == n_rows else MIN_ROWS_PER_CLUSTER * k
        return effort if n_compared >= least else None, low_dimensional

    def _find_candidates(self, coarse: CoarseGraphs, effort: Effort | None, seed: int) -> tuple[list[Candidate], int]:
        """Search communities and mixtures on the contracted graphs; return partitions of their nodes."""
        rows, model = coarse.graph.cells.rows, self.model
        stand_in = None if rows.is_sparse else np.broadcast_to(np.float32(0), (rows.n_rows, rows.n_features))
        reason = reason_against_mixtures(stand_in, model.n_clusters_)
        model._keep(no_mixture_reason=reason)

        def search() -> dict[str, Array]:
            has_mixtures = reason is None
            graphs: Graphs = {size: coarse.connected(size) for size in coarse.graph.sizes}
            scorer = BlockScorer(graphs, model.n_clusters_, coarse=coarse, estimates_mixtures=has_mixtures)
            candidates = self._find_communities(scorer, effort, seed)
            place = candidates.index(select_by_cut(candidates))
            if has_mixtures:
                leader = candidates[place]
                leader = candidates[place] = replace(leader, icl=scorer.likelihood(leader.labels))
                # made again, since the searches may be those of an earlier run
                hierarchy = search_hierarchy(graphs[leader.n_neighbors], model.n_clusters_, np.random.RandomState(seed))
                candidates += mixture_candidates(scorer, leader, hierarchy, constraints=None, random_state=seed)
            return pack_candidates(candidates) | {"leader": np.array(place)}

        labels, records, leader = self.run.once("candidates", search, "labels", "records", "leader")
        return unpack_candidates(labels, records), int(leader)

    def _find_communities(self, scorer: BlockScorer, effort: Effort | None, seed: int) -> list[Candidate]:
        """Search communities on the contracted graphs, in a step for each search, so that interruptions cost little."""
        max_searches, found = MAX_SEARCHES if effort is None else effort.max_searches, []

        @cache
        def multilevel(place: int) -> MultilevelSearch:
            graph = scorer.graphs[names[place]]
            return MultilevelSearch.on(graph, scorer.n_clusters, np.random.RandomState([seed, place]))

        def search(place: int, number: int) -> dict[str, Array]:
            rng = np.random.RandomState([seed, place, number])
            return pack_candidates(communities_of_search(scorer, names[place], multilevel(place), number, rng))

        names = list(scorer.graphs)
        for place, name in enumerate(names):
            on_graph: list[Candidate] = []
            for number in range(min(max_searches, n_searches(scorer.graphs[name].n_nodes))):
                step = f"communities-{place}-{number}"
                on_graph += unpack_candidates(*self.run.once(step, partial(search, place, number), "labels", "records"))
                if has_settled(on_graph):
                    break
            found += on_graph
        return found

    def _choose_by_scores(
        self, coarse: CoarseGraphs, found: list[Candidate], leader: int, sample: Sample, seed: int
    ) -> Choice:
        """Choose by cut and likelihood; a mixture is not refined on the rows, as it is in memory."""
        rivals = [one for one in found if one.family == "LapGMM"]
        chosen = select_by_likelihood(found[leader], rivals)
        self.model._store_choice(found, chosen)
        return Choice(_refined(coarse, chosen, seed), None, 1.0, coarse.graph, sample.rows, None)

    def _choose_by_comparison(
        self,
        comparer: Comparer,
        coarse: CoarseGraphs,
        found: list[Candidate],
        leader: int,
        sample: Sample,
        seeds: Sequence[int],
    ) -> Choice:
        """Choose by the agreement with other methods and views, on some of the sampled rows."""
        run, graph = self.run, coarse.graph
        size = min(len(sample.numbers), comparer.effort.n_rows(comparer.low_dimensional))
        some = np.sort(np.random.RandomState(comparer.random_state).permutation(len(sample.numbers))[:size])
        groups = coarse.groups_of(graph.cells.nodes_of(sample.numbers[some]))
        view_file = run.workspace.folder / "view.safetensors"

        def compare() -> dict[str, Array]:
            on_sample = [replace(one, labels=one.labels[groups]) for one in found]
            compared = comparer.compare_sample(take_rows(sample.rows, some), on_sample, leader)
            if compared.view.transformer is not None:
                with run.workspace.writing():
                    save(compared.view.transformer, view_file)
            return pack_candidates(compared.candidates) | {
                "chosen": np.array(compared.position),
                "of_chosen": compared.chosen.labels,
                "votes": compared.votes,
                "sampled": compared.view.rows,
            }

        labels, records, chosen_place = run.once(COMPARISON, compare, "labels", "records", "chosen")
        candidates, place = unpack_candidates(labels, records), int(chosen_place)
        chosen = candidates[place]
        self.model._store_choice(candidates, chosen, size)
        if chosen.view == ROWS:
            step = _refined(coarse, found[place], seeds[4]) if place < len(found) else None
            return Choice(step, COMPARISON, chosen.consensus, graph, sample.rows, None)
        view, prefix = _load_view(view_file), f"{chosen.view.replace(' ', '-')}/"
        rows = graph.cells.rows.transform(f"{prefix}rows", partial(_embed, view_file))
        landmarks = view._embed(sample.rows)
        view_graph = _build_graph(rows, landmarks, prefix, seeds[0])
        return Choice(None, COMPARISON, chosen.consensus, view_graph, landmarks, view)

    def _store(self, rows: RowBlocks, result: str, numbers: np.ndarray, choice: Choice) -> None:
        """Store results as Dask arrays, and the landmarks."""
        model, landmarks = self.model, choice.landmarks
        rows.describe(model)
        model.encoder_ = None
        model.labels_ = rows.as_dask(result, "labels", (), np.int64)
        model.memberships_ = rows.as_dask(result, "memberships", (model.n_clusters_,), rows.dtype)
        has_votes = choice.compared is not None
        model.row_agreement_ = rows.as_dask(result, "agreement", (), np.float32) if has_votes else None
        model.outlier_score_ = None
        drawn, numbers = numbers, add_rare_clusters(rows, result, numbers, model.n_clusters_)
        if len(numbers) > len(drawn):
            landmarks = choice.graph.cells.rows.select(numbers, "landmark-rows")
        recipe = self_tuned(min(GRAPH_SIZES[-1], landmarks.shape[0] - 1))
        model.graph_ = clone(recipe).set_params(method=search_method(landmarks))._build(landmarks)
        names = ("memberships", "agreement") if has_votes else ("memberships",)
        memberships, *agreement = select_values(self.run, "landmarks", result, names, numbers, rows.starts)
        is_drawn = np.isin(numbers, drawn)
        kept = Landmarks(numbers, rows.n_rows, memberships, agreement[0] if agreement else None, is_drawn)
        model._keep(rows=landmarks, recipe=recipe, view=choice.view, landmarks=kept)


def _build_graph(rows: RowBlocks, sample: Array, prefix: str, seed: int) -> GraphBlocks:
    """Build the two default graphs of rows."""
    cells = CellBlocks.divide(rows, sample, prefix, seed)
    sizes = tuple(sorted({min(size, rows.n_rows - 1) for size in GRAPH_SIZES}))
    return GraphBlocks.build(cells, sizes, prefix)


def _refined(coarse: CoarseGraphs, chosen: Candidate, seed: int) -> str:
    """Return the step with the labels of all nodes: communities are refined, other partitions are not."""
    gamma = None if math.isnan(chosen.resolution) else chosen.resolution
    assert chosen.n_neighbors is not None
    return refine(coarse, chosen.labels, chosen.n_neighbors, gamma, seed)


def _load_view(path: Path) -> Any:
    """Load the map to the chosen view, which was saved with the comparison."""
    try:
        return load(path)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"the view in {str(path)!r} is damaged: {error}",
            "run the same fit again, which makes it again",
            code="damaged_block",
            step=COMPARISON,
            block=0,
        ) from None


def _embed(view: Path, rows: Array) -> Array:
    """Return rows in the chosen view."""
    return _load_view(view)._embed(rows)


# ------------------------------------------------------------------------------------------------- scores of candidates


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockScorer(PartitionScorer):
    """Scores partitions of groups of nodes, with sums over the rows of all blocks."""

    coarse: CoarseGraphs
    estimates_mixtures: bool  # whether mixtures can be estimated from the rows

    @property
    def rows(self) -> RowBlocks:
        """The rows in the blocks of the input."""
        return self.coarse.graph.cells.rows

    @property
    def has_rows(self) -> bool:
        """Whether mixtures can be estimated."""
        return self.estimates_mixtures

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        return self.rows.n_features

    @cached_property
    def origin(self) -> Array:
        """The mean of the rows, representable in their precision."""
        return self.rows.moments[0].astype(self.rows.dtype)

    @cached_property
    def ridge(self) -> float:
        """The ridge on covariances, in the unit of X²."""
        return RIDGE * float(self.rows.moments[1].mean())

    def icl(self, labels: np.ndarray) -> float:
        """Return NaN: only partitions that compete by their likelihood are worth a pass over all rows."""
        return math.nan

    def likelihood(self, labels: np.ndarray) -> float:
        """Return the integrated completed likelihood of a partition per row."""
        return super().icl(labels)

    @cached_property
    def _numbers(self) -> Iterator[int]:
        """The numbers of the sums, which are the same if a fit goes on."""
        return count()

    def group_statistics(self, groups: np.ndarray) -> Statistics:
        """Return the sums of the rows of all nodes of each group."""
        run, cells, step = self.rows.run, self.coarse.graph.cells, f"sums/{next(self._numbers):02d}"
        run.once(f"{step}-groups", lambda: {"groups": groups})

        def total() -> dict[str, Array]:
            options = {"layout": cells.layout, "groups": f"{step}-groups", "origin": self.origin}
            run.map(f"{step}-blocks", sum_block, cells.n_blocks, supernodes=self.coarse.groups, **options)
            return statistics_arrays(sum_statistics(run, f"{step}-blocks", range(cells.n_blocks)))

        run.once(step, total)
        run.drop(f"{step}-blocks")
        return read_statistics(run.workspace, step)


def sum_block(task: Task, *, layout: Layout, groups: str, origin: np.ndarray, supernodes: Groups) -> dict[str, Array]:
    """Sum the rows of a block by the groups of their supernodes."""
    of_supernodes = task.workspace.read_one(groups, 0, "groups")
    own = of_supernodes[supernodes.read(task)]
    rows = layout.read_rows(task)
    return statistics_arrays(group_statistics(rows, own, int(of_supernodes.max()) + 1, origin=origin))


def pack_candidates(candidates: Sequence[Candidate]) -> dict[str, Array]:
    """Return candidates as arrays by name."""
    records = [{name: value for name, value in asdict(one).items() if name != "labels"} for one in candidates]
    labels = np.stack([one.labels.astype(np.int32) for one in candidates])
    return {"labels": labels, "records": np.array(json.dumps(records))}


def unpack_candidates(labels: np.ndarray, records: np.ndarray) -> list[Candidate]:
    """Return candidates from the arrays of `pack_candidates`."""
    return [Candidate(**record, labels=row.astype(np.int64)) for record, row in zip(json.loads(str(records)), labels)]


# -------------------------------------------------------------------------------------------------------- the landmarks


def add_rare_clusters(rows: RowBlocks, result: str, numbers: np.ndarray, n_clusters: int) -> np.ndarray:
    """Add rows of the clusters of which a sample has few, so that new points can be placed in these.

    ``result`` is the step with the labels, and ``numbers`` are the sampled rows; both these and the result ascend.
    """
    if len(numbers) == rows.n_rows:
        return numbers
    run, n_wanted = rows.run, min(MIN_CLUSTER_LANDMARKS, len(numbers) // n_clusters)
    (labels,) = select_values(run, "sampled-labels", result, ("labels",), numbers, rows.starts)
    n_lacking = np.maximum(n_wanted - np.bincount(labels, minlength=n_clusters), 0)
    if not n_lacking.any():
        return numbers
    run.map("rare-clusters", find_rare, rows.blocks, result=result, is_rare=n_lacking > 0, n_wanted=n_wanted)
    parts = [run.workspace.read("rare-clusters", block, "places", "labels") for block in rows.blocks]
    places = np.concatenate([rows.starts[block] + part for block, (part, _) in zip(rows.blocks, parts)])
    of_places = np.concatenate([part for _, part in parts])
    is_new = ~np.isin(places, numbers)
    places, of_places = places[is_new], of_places[is_new]
    added = [evenly_spaced(places[of_places == c], n_lacking[c]) for c in np.flatnonzero(n_lacking)]
    return np.union1d(numbers, np.concatenate(added))


def find_rare(task: Task, *, result: str, is_rare: np.ndarray, n_wanted: int) -> dict[str, Array]:
    """Return some rows of the rare clusters, by their places in a block, and the labels of these."""
    labels = task.read_one(result, "labels")
    rows = np.flatnonzero(is_rare[labels])
    rows = rows[np.argsort(labels[rows], kind="stable")]
    groups = np.split(rows, np.flatnonzero(np.diff(labels[rows])) + 1)
    places = np.concatenate([evenly_spaced(group, n_wanted) for group in groups])
    return {"places": places, "labels": labels[places]}


def evenly_spaced(numbers: np.ndarray, size: int) -> np.ndarray:
    """Return ``size`` of the numbers, or all if there are no more.

    Examples
    --------
    >>> evenly_spaced(np.arange(10, 20), 3)
    array([10, 14, 19])
    """
    return numbers if len(numbers) <= size else numbers[np.linspace(0, len(numbers) - 1, size).astype(np.int64)]


class LandmarkModel(NamedTuple):
    """A model on its landmarks alone.

    Attributes
    ----------
    model : ManifoldClustering
        A copy whose ``labels_``, ``memberships_`` and ``graph_`` are those of the landmarks.
    rows : array or CSR matrix of shape (m, d)
        The landmarks, in the view of the model.
    numbers : ndarray of shape (m,)
        The numbers of the landmarks among all rows.
    """

    model: ManifoldClustering
    rows: Array
    numbers: np.ndarray


def on_landmarks(model: ManifoldClustering, max_rows: int | None = None) -> LandmarkModel:
    """Return a model on its landmarks alone, as plots and reports need it.

    They are those that were drawn at random, so that clusters have about their share of the rows.

    Parameters
    ----------
    model : ManifoldClustering
        Fitted to a Dask array.
    max_rows : int, optional
        The largest number of landmarks; of more, some are drawn, always the same ones.
    """
    landmarks = model._state.landmarks
    if landmarks is None:
        problem = "the model was not fitted to a Dask array, so it has no landmarks"
        raise InputError(problem, "use it as it is", code="no_landmarks")
    chosen = np.flatnonzero(landmarks.is_drawn)
    if max_rows is not None and len(chosen) > check_int(max_rows, "max_rows", minimum=2):
        chosen = np.sort(np.random.RandomState(0).permutation(chosen)[:max_rows])
    sampled, rows = copy(model), take_rows(model._state.rows, chosen)
    sampled._keep(rows=rows, landmarks=None)
    sampled.graph_ = model._state.recipe._build(rows)
    sampled.memberships_ = landmarks.memberships[chosen]
    sampled.labels_ = sampled.memberships_.argmax(axis=1)
    sampled.row_agreement_ = None if landmarks.agreement is None else landmarks.agreement[chosen]
    return LandmarkModel(sampled, rows, landmarks.numbers[chosen])
