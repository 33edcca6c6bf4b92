"""ManifoldClustering on a Dask array.

The steps are those in memory, with the same functions wherever these work on one block or on one machine:

1. Rows are written to files, and divided by cells of nearby rows (:mod:`.rows`, :mod:`.cells`).
2. Neighbours are searched in every block, and the self-tuned graphs are made from them (:mod:`.neighbors`,
   :mod:`.graph`).
3. Every block groups its nodes. The contracted graphs, of at most `MAX_NODES` nodes, are searched by the code that
   searches them in memory. Up to that many rows there are no groups, and the search is the same.
4. Views and methods are compared on a sample of the rows, as they are in memory for many rows.
5. The labels of groups become those of their rows, nodes move (:mod:`.moves`), and memberships follow from a walk
   (:mod:`.memberships`), each with the values of other blocks at their border.

The model keeps a sample of the rows with their memberships, the *landmarks*, by which new points are placed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._validation import check_int, check_n_clusters, check_n_jobs, check_rows_differ, choose
from ..core.arrays import Array, take_rows
from ..core.fitting import is_dask_array, report_progress, restore_on_failure
from ..core.parallel import MAX_NODE_BYTES, MAX_NODES
from ..errors import InputError, StorageError
from ..graph.community import MultilevelSearch, search_hierarchy
from ..graph.labels import UNKNOWN
from ..graph.recipes import self_tuned
from ..manifold.candidates import (
    MAX_SEARCHES,
    ROWS,
    Candidate,
    Graphs,
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
from ..manifold.n_clusters import NClustersChoice, count_clusters
from ..manifold.state import FittedState, Landmarks
from ..manifold.views import is_low_dimensional
from ..persistence import load, save
from .graph import CoarseGraphs, GraphBlocks, refine
from .memberships import BlockScorer, add_rare_clusters, compute_memberships, pack_candidates, unpack_candidates
from .neighbors import search_method
from .partition import CellBlocks, RowBlocks, select_values
from .run import Run, describe, draw_seed, run_steps
from .store import Workspace

MAX_LANDMARKS = 50_000
MAX_LANDMARK_BYTES = 2**27  # fewer, if rows are long ...
MIN_LANDMARKS = 10_000  # ... but at least so many, which are compared
COMPARISON = "comparison"


def fit(
    model: ManifoldClustering, X: Any, y: Any = None, *, sample_weight: Any = None, constraints: Any = None
) -> ManifoldClustering:
    """Cluster the rows of a Dask array; ``labels_`` and ``memberships_`` are Dask arrays with its blocks."""
    _check_options(model, y, sample_weight, constraints)
    seed = draw_seed(model.random_state)
    with report_progress(model), restore_on_failure(model):
        run_steps(describe(model, X, seed), lambda run: _Fit(model, run, seed).fit(X))
    model._warn_and_print()
    return model


def _check_options(model: ManifoldClustering, y: Any, sample_weight: Any, constraints: Any) -> None:
    """Raise an error for options that have no block version."""
    choose(EFFORTS, model.effort, option="effort")
    check_n_jobs(model.n_jobs)
    unsupported = {
        "labels y": y is not None and (is_dask_array(y) or UNKNOWN in np.asarray(y)),
        "sample_weight": sample_weight is not None,
        "constraints": constraints is not None,
        "outliers": bool(model.outliers),
        "min_cluster_size": model.min_cluster_size is not None,
        "max_cluster_size": model.max_cluster_size is not None,
        "graph": not model._graph_is_default(),
    }
    for name, is_given in unsupported.items():
        if is_given:
            raise InputError(
                f"ManifoldClustering does not take {name} with Dask arrays",
                "leave it out, or pass X.compute() if the rows fit into memory",
                code="not_out_of_core",
                parameter=name.split()[-1],
            )


class Sample(NamedTuple):
    """Some of the rows, from which cells and views are made, and which become the landmarks of the model.

    Attributes
    ----------
    numbers : ndarray of shape (m,)
        The numbers of the rows in the input, ascending.
    rows : array or CSR matrix of shape (m, d)
    """

    numbers: np.ndarray
    rows: Array


class Choice(NamedTuple):
    """The chosen partition.

    Attributes
    ----------
    labels : str or None
        The step with the labels of the nodes; None takes those of the nearest sampled rows.
    compared : str or None
        The step with the result of the comparison.
    consensus : float
    graph : GraphBlocks
        The graph of its view.
    landmarks : array
        The sample in its view.
    view : Whitening, LPI or None
    """

    labels: str | None
    compared: str | None
    consensus: float
    graph: GraphBlocks
    landmarks: Array
    view: Any


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
        _check_rows(rows)
        sample = self._draw_sample(rows, seed)
        check_rows_differ(sample.rows)
        graph = _build_graph(rows, sample.rows, "", seeds[0])
        coarse = graph.contract(_max_nodes(rows), "", seeds[1])
        model.evidence_ = self._count(sample.rows, seeds[2])
        model.n_clusters_ = _n_clusters(model, rows.n_rows)
        effort, low_dimensional = self._effort(sample.rows, rows.n_rows)
        found, leader = self._find_candidates(coarse, effort, seeds[3])
        if effort is None:
            choice = self._choose_by_scores(coarse, found, leader, sample, seeds[4])
        else:
            comparer = Comparer(effort, model.n_clusters_, low_dimensional, seeds[5], n_jobs=model.n_jobs)
            choice = self._choose_by_comparison(comparer, coarse, found, leader, sample, seeds)
        result = compute_memberships(choice.graph, choice.labels, choice.compared, choice.consensus, model.n_clusters_)
        self._store(rows, result, sample.numbers, choice)

    # ------------------------------------------------------------------------------------------------------ the search

    def _draw_sample(self, rows: RowBlocks, seed: int) -> Sample:
        row_bytes = rows.dtype.itemsize * rows.n_features
        size = MAX_LANDMARKS if rows.is_sparse else min(MAX_LANDMARKS, MAX_LANDMARK_BYTES // row_bytes)
        numbers = rows.draw(max(MIN_LANDMARKS, size), np.random.RandomState(seed))
        return Sample(numbers, rows.select(numbers, "sample"))

    def _count(self, sample: Array, seed: int) -> NClustersChoice | None:
        """Choose the number of clusters by the sample."""
        model = self.model
        if not model._n_clusters_is_auto():
            return None
        recipe = self_tuned(min(GRAPH_SIZES[-1], sample.shape[0] - 1), connect="mst", n_jobs=model.n_jobs)

        def count() -> dict[str, Array]:
            choice = count_clusters(
                recipe._build(sample),
                range(2, check_int(model.max_clusters, "max_clusters", minimum=2) + 1),
                lambda some: recipe._build(take_rows(sample, some)),
                random_state=np.random.RandomState(seed),
                n_jobs=model.n_jobs,
                rows=sample,
            )
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
        enough = n_compared >= (MIN_ROWS if n_compared == n_rows else MIN_ROWS_PER_CLUSTER * k)
        return effort if enough else None, low_dimensional

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

    # ------------------------------------------------------------------------------------------------------ the choice

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
        view_file = run.workspace.folder / "view.npz"

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
        run.map(f"{prefix}rows", transform_block, graph.cells.rows.blocks, rows=graph.cells.rows.step, view=view_file)
        rows, landmarks = graph.cells.rows.transformed(f"{prefix}rows"), view._embed(sample.rows)
        view_graph = _build_graph(rows, landmarks, prefix, seeds[0])
        return Choice(None, COMPARISON, chosen.consensus, view_graph, landmarks, view)

    # ------------------------------------------------------------------------------------------------------ the result

    def _store(self, rows: RowBlocks, result: str, numbers: np.ndarray, choice: Choice) -> None:
        """Store results as Dask arrays, and the landmarks."""
        model, landmarks = self.model, choice.landmarks
        model.n_features_in_ = rows.n_features
        model.__dict__.pop("feature_names_in_", None)
        model.encoder_ = None
        model.labels_ = rows.as_dask(result, "labels", (), np.int64)
        model.memberships_ = rows.as_dask(result, "memberships", (model.n_clusters_,), rows.dtype)
        has_votes = choice.compared is not None
        model.row_agreement_ = rows.as_dask(result, "agreement", (), np.float32) if has_votes else None
        model.outlier_score_ = None
        drawn, numbers = numbers, add_rare_clusters(rows, result, numbers, model.n_clusters_)
        if len(numbers) > len(drawn):
            landmarks = choice.graph.cells.rows.select(numbers, "landmark-rows")
        model._fit_X = landmarks
        model._fit_recipe = self_tuned(min(GRAPH_SIZES[-1], landmarks.shape[0] - 1))
        model.graph_ = clone(model._fit_recipe).set_params(method=search_method(landmarks))._build(landmarks)
        names = ("memberships", "agreement") if has_votes else ("memberships",)
        memberships, *agreement = select_values(self.run, "landmarks", result, names, numbers, rows.starts)
        is_drawn = np.isin(numbers, drawn)
        kept = Landmarks(numbers, rows.n_rows, memberships, agreement[0] if agreement else None, is_drawn)
        model._keep(view=choice.view, landmarks=kept)


def _n_clusters(model: ManifoldClustering, n_rows: int) -> int:
    if model.evidence_ is not None:
        return model.evidence_.n_clusters
    return check_n_clusters(model.n_clusters, n_rows, or_else="'auto'")


def _check_rows(rows: RowBlocks) -> None:
    if rows.n_rows < 2:
        raise InputError("X has only one row", "give at least two rows", code="too_few_rows", n_samples=rows.n_rows)


def _max_nodes(rows: RowBlocks) -> int:
    """Return the number of nodes, about, of the graphs that are searched on one machine."""
    return MAX_NODES if rows.is_sparse else min(MAX_NODES, MAX_NODE_BYTES // (rows.dtype.itemsize * rows.n_features))


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


def transform_block(workspace: Workspace, block: int, *, rows: str, view: Path) -> dict[str, Array]:
    """Transform the rows of a block of the input to another view."""
    transformed = _load_view(view)._embed(workspace.read_one(rows, block, "rows"))
    return {"rows": sp.csr_array(transformed) if sp.issparse(transformed) else np.asarray(transformed)}
