"""LapGMM on a Dask array, by its variational solver, see :mod:`fiedler.mixture.lapgmm`.

An iteration has two tasks per block. The first computes the densities of its rows and takes one step of the memberships
from the last ones Q and the product LQ; it writes the new memberships and their statistics, the sums of which are the
next components. The second computes the product of the new memberships, with those of other blocks at their border, and
the penalty. From the same first memberships, the iterations are those in memory with the same graph.

With λ by name, the margin of the densities is that of a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from .._validation import check_n_clusters, check_nonnegative
from ..core.arrays import Array, one_hot
from ..core.fitting import is_dask_array
from ..core.kmeans import kmeans, nearest_center
from ..core.parallel import MAX_NODES
from ..errors import InputError
from ..graph.community import RESOLUTION, communities
from ..graph.labels import UNKNOWN
from ..mixture.base import memberships_from_array
from ..mixture.covariance import Gaussians, gaussians
from ..mixture.em import EMResult, EMState, Step, median_margin, memberships_converged, run_em
from ..mixture.lapgmm import LAM_GRIDS, LapGMM, evidence_bound, smoothing_step
from .graph import OWN, BlockGraph, CoarseGraphs, GraphBlocks, modularity, refine
from .memberships import collect_block, read_statistics, statistics_arrays, sum_statistics
from .mixture import Settings, components_arrays, make_settings, read_components
from .neighbor_graph import build_recipe, draw_sample
from .partition import Layout, RowBlocks, store_values
from .run import Run, describe, draw_seed, run_steps, token
from .store import Sliced, Workspace

STARTS = ("community", "kmeans")
START = "start"  # the name of the first memberships


def fit(model: LapGMM, X: Any, y: Any = None, sample_weight: Any = None, *, constraints: Any = None) -> LapGMM:
    """Fit LapGMM to a Dask array."""
    _check_supported(model, y, sample_weight, constraints)
    seed = draw_seed(model.random_state)
    init = None if isinstance(model.init, str) else model.init
    about = describe(model, X, seed) | {"init": token(init)}
    result, n_found = run_steps(about, lambda run: _Fit(model, run, seed).fit(X, init))
    model._warn_about_fit(result, n_found)
    return model


def _check_supported(model: LapGMM, y: Any, sample_weight: Any, constraints: Any) -> None:
    """Raise an error for options that have no block version."""
    for name, is_supported, hint in (
        ("y", y is None or not (is_dask_array(y) or UNKNOWN in np.asarray(y)), "leave it out"),
        ("sample_weight", sample_weight is None, "leave it out"),
        ("constraints", constraints is None, "leave them out"),
        ("solver", model.solver == "variational", "use solver='variational'"),
        ("operator", isinstance(model.operator, str) and model.operator == "laplacian", "use operator='laplacian'"),
        ("graph", getattr(model._recipe(), "metric", "euclidean") == "euclidean", "use metric='euclidean'"),
        ("n_smooth", model.n_smooth == 1, "use n_smooth=1"),
        ("n_init", model.n_init == 1, "use n_init=1"),
        ("init", not isinstance(model.init, str) or model.init in STARTS, f"use one of {', '.join(STARTS)}, or labels"),
    ):
        if not is_supported:
            raise InputError(
                f"{name} has a value that LapGMM cannot use with Dask arrays",
                hint,
                code="not_out_of_core",
                parameter=name,
            )


MEMBERSHIPS, PRODUCTS, TOTALS = "memberships", "products", "totals"  # steps of an iteration, after its name


@dataclass(frozen=True, eq=False)
class BlockHooks:
    """The steps of EM, see :class:`fiedler.mixture.em.Hooks`; memberships are in files.

    The memberships of an iteration are represented by its name: its steps are their blocks, the products with L, and
    the sums over all blocks, which remain when the blocks of earlier iterations are dropped.
    """

    graph: GraphBlocks
    settings: Settings
    lam: float
    numbers: Iterator[int]  # of the iterations

    @property
    def run(self) -> Run:
        """The fit."""
        return self.graph.cells.rows.run

    @property
    def _blocks(self) -> dict[str, Any]:
        return {"graph": self.graph.step, "size": self.graph.sizes[-1]}

    def start(self, name: str) -> EMState:
        """Return the state before the first iteration, whose memberships are there."""
        self._add_up(name)
        return EMState(name)

    def maximize(self, state: EMState) -> tuple[Gaussians, EMState]:
        """Compute the components from the sums over all blocks."""
        statistics = read_statistics(self.run.workspace, f"{state.resp}/{TOTALS}")
        return gaussians(statistics, **self.settings.of_components), state

    def expect(self, model: Gaussians) -> str:
        """Write the components, from which every block computes the densities; return the name of the iteration."""
        name = f"em/{next(self.numbers):04d}"
        self.run.once(f"{name}/components", lambda: components_arrays(model))
        return name

    def refine(self, name: str, state: EMState) -> EMState:
        """Take a step of the memberships in every block."""
        self.run.map(
            f"{name}/{MEMBERSHIPS}",
            step_block,
            self.graph.cells.n_blocks,
            layout=self.graph.cells.layout,
            settings=self.settings,
            components=f"{name}/components",
            last=str(state.resp),
            lam=self.lam,
            **self._blocks,
        )
        self._add_up(name)
        return replace(state, resp=name)

    def _add_up(self, name: str) -> None:
        """Compute the products of memberships with L, and all sums over the blocks."""
        n_blocks, run = self.graph.cells.n_blocks, self.run
        run.map(f"{name}/{PRODUCTS}", product_block, n_blocks, memberships=f"{name}/{MEMBERSHIPS}", **self._blocks)

        def total() -> dict[str, Array]:
            sums = {what: run.total(f"{name}/{MEMBERSHIPS}", what, n_blocks) for what in ("bound", "change")}
            names = ("penalty", "crossing", "volumes", "counts of labels")
            sums |= {what: run.total(f"{name}/{PRODUCTS}", what, n_blocks) for what in names}
            return statistics_arrays(sum_statistics(run, f"{name}/{MEMBERSHIPS}", range(n_blocks))) | sums

        run.once(f"{name}/{TOTALS}", total)

    def _total(self, name: str, what: str) -> Any:
        return self.run.workspace.read_one(f"{name}/{TOTALS}", 0, what)

    def score(self, name: str, state: EMState, last: str) -> Step:
        """Compute J and its two terms, and drop the memberships before the last ones."""
        n_rows = self.graph.cells.rows.n_rows
        likelihood, penalty = float(self._total(name, "bound")), self.lam * float(self._total(name, "penalty"))
        if last != START:
            self.drop(last)
        return Step(likelihood - penalty, likelihood, penalty, float(self._total(name, "change")) / n_rows)

    def drop(self, name: str) -> None:
        """Delete the blocks of an iteration, but not its sums."""
        for step in (MEMBERSHIPS, PRODUCTS):
            self.run.drop(f"{name}/{step}")

    def finish(self, model: Gaussians, state: EMState) -> Gaussians:
        """Return the components from which the memberships were computed."""
        return model

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Test the memberships."""
        return memberships_converged(steps, tol)

    def quality(self, name: str) -> tuple[int, float]:
        """Return the number of clusters in use and the modularity of the partition."""
        volumes, crossing = self._total(name, "volumes"), float(self._total(name, "crossing"))
        return int(np.count_nonzero(self._total(name, "counts of labels"))), modularity(crossing, volumes, RESOLUTION)


@dataclass(eq=False)
class _Fit:
    """The fit of a model, step by step."""

    model: LapGMM
    run: Run
    seed: int | None

    def fit(self, X: Any, init: Any) -> tuple[EMResult[Any], int]:
        """Run EM, store the result, and return it and the number of clusters that have rows."""
        model, run = self.model, self.run
        seed = run.seed(self.seed)
        rows = RowBlocks.store(run, X)
        k = check_n_clusters(model.n_clusters, rows.n_rows)
        settings = make_settings(model, rows, k)
        graph = build_recipe(rows, model._recipe(), seed)
        hooks = BlockHooks(graph, settings, 0.0, count())
        _, sample = draw_sample(graph.cells.rows, seed)
        start = self._start(hooks, sample, k, init, seed)
        result = self._run_em(hooks, start, sample)
        cells = graph.cells
        step = f"{result.state.resp}/{MEMBERSHIPS}"
        run.map("ends", end_block, cells.n_blocks, layout=cells.layout, memberships=step)
        names = ("labels", "memberships")
        run.map("result", collect_block, rows.blocks, layout=cells.layout, ends="ends", names=names)
        self._store(rows, result, settings, k)
        return result, hooks.quality(result.state.resp)[0]

    def _store(self, rows: RowBlocks, result: EMResult[Any], settings: Settings, k: int) -> None:
        model = self.model
        model.n_features_in_ = rows.n_features
        model.__dict__.pop("feature_names_in_", None)
        model._store_components(result, np.dtype(rows.dtype))
        model.lam_ = result.lam
        model._projection, model.graph_, model._fit_X = settings.projection, None, None
        model.memberships_ = rows.as_dask("result", "memberships", (k,), rows.dtype)
        model.labels_ = rows.as_dask("result", "labels", (), np.int64)

    def _start(self, hooks: BlockHooks, sample: Array, k: int, init: Any, seed: int) -> str:
        """Write first memberships in the order of the nodes; return their step."""
        graph, model, cells = hooks.graph, self.model, hooks.graph.cells
        rng = np.random.RandomState(seed)
        options: dict[str, Any] = {"layout": cells.layout, "settings": hooks.settings}
        if init is not None:
            store_values(cells.rows, init, "init", np.asarray)
            self.run.map("init-parts", divide_values, cells.rows.blocks, layout=cells.layout, values="init")
            options["values"] = "init-parts"
        elif model.init == "kmeans":
            coordinates = sample if hooks.settings.projection is None else hooks.settings.projection(sample)
            find = lambda: {"centers": np.asarray(kmeans(coordinates, k, n_init=10, random_state=rng).centers)}  # noqa: E731
            (options["centers"],) = self.run.once("centers", find, "centers")
        else:
            options["labels"] = self._communities(graph, k, rng, seed)
        step = f"{START}/{MEMBERSHIPS}"
        self.run.map(step, start_block, cells.n_blocks, graph=graph.step, size=graph.sizes[-1], **options)
        return START

    def _communities(self, graph: GraphBlocks, k: int, rng: np.random.RandomState, seed: int) -> str:
        """Search communities of the contracted graph; return the step with the refined labels of the nodes."""
        coarse: CoarseGraphs = graph.contract(MAX_NODES, "", seed)

        def search() -> dict[str, Array]:
            found = communities(coarse.affinity(graph.sizes[-1]), k, random_state=rng)
            return {"labels": np.asarray(found.labels), "gamma": np.array(found.resolution)}

        labels, gamma = self.run.once("communities", search, "labels", "gamma")
        return refine(coarse, labels, graph.sizes[-1], float(gamma), seed)

    def _run_em(self, hooks: BlockHooks, start: str, sample: Array) -> EMResult[Any]:
        """Run EM with λ as given, or searched for as in memory."""
        model = self.model
        if model._searches_lam():
            name = lambda result: str(result.state.resp)  # noqa: E731
            return model._search_lam(
                start,
                hooks,
                self._lam_grid(hooks, start, sample),
                quality=lambda result: hooks.quality(name(result)),
                discard=lambda result: hooks.drop(name(result)),
            )
        hooks = replace(hooks, lam=check_nonnegative(model.lam, "lam", or_else="'auto' or 'natural'"))
        return replace(run_em(hooks.start(start), hooks, **model._limits()), lam=hooks.lam)

    def _lam_grid(self, hooks: BlockHooks, start: str, sample: Array) -> list[float]:
        """Return multiples of the λ at which neighbours weigh as much as densities."""
        components, _ = hooks.maximize(hooks.start(start))
        margin = median_margin(hooks.settings.problem(sample, None, None).log_joint(components), None)
        cells = hooks.graph.cells
        degree = float(self.run.workspace.read_one(f"{START}/{TOTALS}", 0, "volumes").sum()) / cells.rows.n_rows
        scale = margin / (2 * degree) if degree > 0 else 0.0
        return [factor * scale for factor in LAM_GRIDS[str(self.model.lam)]]


# ---------------------------------------------------------------------------------------------- the work on one block


def divide_values(workspace: Workspace, block: int, *, layout: Layout, values: str) -> dict[str, Sliced]:
    """Divide given values of the rows of a block of the input by the home of the rows."""
    given, home = workspace.read_one(values, block, "values"), workspace.read_one(layout.step, block, "home")
    return {"values": Sliced.sorted_by(given, home, layout.n_blocks)}


def start_block(
    workspace: Workspace,
    block: int,
    *,
    layout: Layout,
    graph: str,
    size: int,
    settings: Settings,
    values: str | None = None,
    centers: np.ndarray | None = None,
    labels: str | None = None,
) -> dict[str, Array]:
    """Return first memberships: those that are given, of the nearest centre, or of the communities."""
    edges = BlockGraph.read(workspace, graph, block, size)
    rows = layout.read_rows(workspace, block)
    if not edges.n:
        return _without_rows(edges, rows, settings)
    problem = settings.problem(rows, None, None)
    if values is not None:
        given = np.concatenate([workspace.read_part(values, origin, "values", block) for origin in layout.origins])
        resp = memberships_from_array(given, settings.k, problem.Z)
    elif centers is not None:
        resp = one_hot(nearest_center(problem.Z, centers)[0], settings.k, problem.Z)
    else:
        assert labels is not None
        resp = one_hot(workspace.read_one(labels, block, OWN).astype(np.int64), settings.k, problem.Z)
    sums = {"bound": np.array(0.0), "change": np.array(0.0)}  # there were no components before
    return edges.share(resp) | statistics_arrays(settings.statistics(problem, resp, np.float64)) | sums


def _without_rows(edges: BlockGraph, rows: Array, settings: Settings) -> dict[str, Array]:
    """Return the results of a block without rows: sums of zero, which are those of a row of weight zero."""
    problem = settings.problem(np.zeros((1, rows.shape[1]), dtype=rows.dtype), None, None)
    weightless = settings.statistics(problem, np.zeros((1, settings.k), dtype=rows.dtype), np.float64)
    sums = {"bound": np.array(0.0), "change": np.array(0.0)}
    return edges.share(np.zeros((0, settings.k), dtype=rows.dtype)) | statistics_arrays(weightless) | sums


def step_block(
    workspace: Workspace,
    block: int,
    *,
    layout: Layout,
    graph: str,
    size: int,
    settings: Settings,
    components: str,
    last: str,
    lam: float,
) -> dict[str, Array]:
    """Take one step of the memberships of a block, and compute their statistics and their part of J."""
    edges = BlockGraph.read(workspace, graph, block, size)
    rows = layout.read_rows(workspace, block)
    if not edges.n:
        return _without_rows(edges, rows, settings)
    problem = settings.problem(rows, None, None)
    joint = problem.log_joint(read_components(workspace, components))
    resp = workspace.read_one(f"{last}/{MEMBERSHIPS}", block, OWN)
    gradient = lam * workspace.read_one(f"{last}/{PRODUCTS}", block, OWN)
    bound = (2 * lam * edges.degrees[:, None]).astype(resp.dtype)
    moved = smoothing_step(joint, resp, gradient.astype(resp.dtype), bound)
    sums = {"bound": evidence_bound(moved, joint), "change": np.abs(moved - resp).sum(axis=1)}
    totals = {name: np.array(values.sum(dtype=np.float64)) for name, values in sums.items()}
    return edges.share(moved) | statistics_arrays(settings.statistics(problem, moved, np.float64)) | totals


def product_block(workspace: Workspace, block: int, *, graph: str, size: int, memberships: str) -> dict[str, Array]:
    """Compute LQ of the nodes of a block, the penalty, and what the modularity of the partition needs."""
    edges = BlockGraph.read(workspace, graph, block, size)
    values, degrees = edges.receive(workspace, memberships), edges.degrees
    own = values[: edges.n]
    product = degrees[:, None] * own - edges.weights @ values
    labels = values.argmax(axis=1)
    rows = np.repeat(np.arange(edges.n), np.diff(edges.weights.indptr))
    leaving = labels[rows] != labels[edges.weights.indices]
    k = values.shape[1]
    return {
        OWN: product.astype(own.dtype),
        "penalty": np.array(np.sum(own * product, dtype=np.float64)),
        "crossing": np.array(edges.weights.data[leaving].sum(dtype=np.float64)),
        "volumes": np.bincount(labels[: edges.n], degrees, minlength=k),
        "counts of labels": np.bincount(labels[: edges.n], minlength=k),
    }


def end_block(workspace: Workspace, block: int, *, layout: Layout, memberships: str) -> dict[str, Array]:
    """Return labels and memberships of the nodes of a block, divided by blocks of the input."""
    resp = workspace.read_one(memberships, block, OWN)
    return layout.divide_by_origin({"labels": resp.argmax(axis=1).astype(np.int64), "memberships": resp}, block)
