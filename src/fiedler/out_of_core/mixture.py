"""GaussianMixture and LapGMM on a Dask array.

The components depend on the rows through additive statistics alone, see :mod:`fiedler.mixture.statistics`. In every
iteration of GaussianMixture each block computes the memberships of its rows from the components, and writes their
statistics and its part of the likelihood; the sums become the next components. If ``init`` names a start, it is made
from a random sample of the rows, or from all if there are few. Memberships are computed from the last components.

LapGMM uses its variational solver, see :mod:`fiedler.mixture.lapgmm`. An iteration has two tasks per block. The first
computes the densities of its rows and takes one step of the memberships from the last ones Q and the product LQ; it
writes the new memberships and their statistics. The second computes the product of the new memberships, with those of
other blocks at their border, and the penalty. With λ by name, the margin of the densities is that of a sample.

From the same first memberships (and the same graph), the iterations are those in memory, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import count
from operator import add
from typing import Any

import numpy as np

from .._validation import check_n_clusters, check_seed
from ..core.arrays import Array, fix_signs, one_hot, softmax
from ..core.fitting import is_dask_array
from ..core.kmeans import kmeans, nearest_center
from ..core.parallel import MAX_NODES
from ..core.pca import Projection, check_n_components
from ..core.sparse import row_indices
from ..errors import InputError
from ..graph.community import RESOLUTION, communities
from ..graph.labels import UNKNOWN, check_partial_labels, mark_unknown
from ..mixture.base import BaseMixture, memberships_from_array
from ..mixture.covariance import Gaussians, gaussians, keeps_digits
from ..mixture.em import EMResult, EMState, Hooks, MixtureProblem, Step, median_margin, objective_converged
from ..mixture.lapgmm import LAM_GRIDS, LapGMM, evidence_bound, smoothing_step
from ..mixture.statistics import Statistics, centered, component_blocks, weighted_statistics
from .graph import OWN, BlockGraph, GraphBlocks, StoredGraph, build_recipe, draw_sample, modularity, refine
from .partition import Layout, RowBlocks, select_values, store_values
from .run import Run, draw_seed, refuse, run_steps
from .store import Task, Workspace

SAMPLE_BYTES = 2**27  # of the rows from which a start is made, at most
MAX_SAMPLED_ROWS = 20_000
WEIGHTS, LABELS, INIT = "sample_weight", "y", "init"  # steps with values of the rows that are given
LAPGMM_STARTS = ("community", "kmeans")
START = "start"  # the name of LapGMM's first memberships
MEMBERSHIPS, PRODUCTS, TOTALS = "memberships", "products", "totals"  # steps of its iterations, after their name


def fit(
    model: BaseMixture, X: Any, y: Any = None, sample_weight: Any = None, *, constraints: Any = None
) -> BaseMixture:
    """Fit a mixture to a Dask array; parameters as in :meth:`fiedler.GaussianMixture.fit`."""
    if isinstance(model, LapGMM):
        result, n_found = _fit_lapgmm(model, X, y, sample_weight, constraints)
    else:
        result, n_found = _fit_gaussian_mixture(model, X, y, sample_weight, constraints)
    model._warn_about_fit(result, n_found)
    return model


# ------------------------------------------------------------------------------------------- statistics and components

STATISTICS = ("counts", "sums", "second_moments", "origin")


def statistics_arrays(statistics: Statistics) -> dict[str, Array]:
    """Return statistics as arrays by name."""
    return {name: getattr(statistics, name) for name in STATISTICS}


def read_statistics(workspace: Workspace, step: str, block: int = 0) -> Statistics:
    """Read the statistics of a block."""
    return Statistics(*workspace.read(step, block, *STATISTICS))


def sum_statistics(run: Run, step: str, blocks: Iterable[int]) -> Statistics:
    """Add the statistics of blocks, always in the same order."""
    return reduce(add, (read_statistics(run.workspace, step, block) for block in blocks))


def components_arrays(model: Gaussians) -> dict[str, Array]:
    """Return components as arrays by name."""
    return {name: np.asarray(value) for name, value in model._asdict().items()}


def read_components(workspace: Workspace, step: str) -> Gaussians:
    """Read the components that the client has written."""
    values = dict(zip(Gaussians._fields, workspace.read(step, 0, *Gaussians._fields)))
    return Gaussians(**values | {"kind": str(values["kind"]), "ridge": float(values["ridge"])})


@dataclass(frozen=True, eq=False)
class Settings:
    """What all blocks have in common."""

    k: int
    kind: str  # the shape of the covariances
    ridge: float  # added to the variances
    shrinks: bool  # whether covariances are shrunken by the number of their rows
    projection: Projection | None  # to the principal components
    origin: Array  # (d,), from which rows are measured in the sums
    given: tuple[str, ...] = ()  # the steps with values of the rows that are given

    @classmethod
    def of(cls, model: BaseMixture, rows: RowBlocks, k: int, given: tuple[str, ...] = ()) -> Settings:
        """Compute the origin, the projection, and the ridge from the variances."""
        if rows.is_sparse:
            raise InputError("the blocks of X are sparse", "use dense blocks", code="sparse_blocks", parameter="X")
        if rows.n_rows < 2:
            raise InputError("X has only one row", "give at least two rows", code="too_few_rows")
        mean, variances = rows.moments
        if not np.any(variances > 0):
            problem = "all rows of X are equal, so there is nothing to cluster"
            raise InputError(problem, "check the data", code="equal_rows")
        projection, origin = None, mean.astype(rows.dtype).astype(np.float64)
        if model.pca is not None:
            variances, projection = _principal_components(rows, origin, model.pca)
            origin = np.zeros(len(variances))
        ridge = model._relative_ridge(rows.n_rows, len(origin)) * float(np.mean(variances))
        return cls(k, model.covariance_type, ridge, model._shrinks(), projection, origin, given)

    def read(self, task: Task) -> MixtureProblem:
        """Read the rows of a block, and their weights and known clusters, as a problem of their own."""
        rows = task.read_one("rows", "rows")
        weight, y = (task.read_one(name, "values") if name in self.given else None for name in (WEIGHTS, LABELS))
        return self.problem(rows, weight, y)

    def problem(self, rows: Array, weight: Array | None = None, y: Array | None = None) -> MixtureProblem:
        """Return the problem of some rows."""
        Z = rows if self.projection is None else self.projection(rows)
        known = None if y is None else one_hot(y.astype(np.int64), self.k, Z)
        return MixtureProblem(Z, kind=self.kind, ridge=self.ridge, sample_weight=weight, known=known)

    def statistics(self, problem: MixtureProblem, resp: Array, dtype: Any = np.float64) -> Statistics:
        """Compute the statistics of memberships, with sums over parts of the rows in ``dtype``."""
        weights = problem.weighted(problem.clamp(resp))
        return weighted_statistics(problem.Z, weights, kind=self.kind, origin=self.origin, dtype=dtype)

    @property
    def of_components(self) -> dict[str, Any]:
        """The options of the estimates of components."""
        return {"kind": self.kind, "ridge": self.ridge, "shrinks": self.shrinks}


def _principal_components(rows: RowBlocks, mean: Array, pca: int | float) -> tuple[Array, Projection]:
    """Return the leading eigenvalues of the covariance matrix and the projection to its eigenvectors."""
    rows.run.map("scatter", scatter_block, rows.blocks, origin=mean)
    values, vectors = np.linalg.eigh(rows.run.total("scatter", "scatter", rows.blocks) / rows.n_rows)
    values, vectors = values[::-1], vectors[:, ::-1]
    is_share = check_n_components(pca, len(values))
    n = int(np.searchsorted(np.cumsum(values), pca * values.sum()) + 1 if is_share else pca)
    directions = fix_signs(vectors[:, :n])
    return values[:n], Projection(mean.astype(rows.dtype), directions.astype(rows.dtype))


def scatter_block(task: Task, *, origin: Array) -> dict[str, Array]:
    """Compute Σ (x - origin)(x - origin)' in double precision."""
    rows = task.read_one("rows", "rows")
    parts = (centered(rows[part], origin, np.float64) for part in component_blocks(rows, 1))
    return {"scatter": sum((part.T @ part for part in parts), np.zeros((len(origin), len(origin))))}


def _store_result(model: BaseMixture, rows: RowBlocks, result: EMResult[Any], settings: Settings) -> None:
    """Store the components, and the memberships and labels of the step "result" as Dask arrays."""
    rows.describe(model)
    model._store_components(result, np.dtype(rows.dtype))
    model._projection, model.graph_, model._fit_X = settings.projection, None, None
    model.memberships_ = rows.as_dask("result", "memberships", (settings.k,), rows.dtype)
    model.labels_ = rows.as_dask("result", "labels", (), np.int64)


# ----------------------------------------------------------------------------------------------------- GaussianMixture


def _fit_gaussian_mixture(
    model: BaseMixture, X: Any, y: Any, sample_weight: Any, constraints: Any
) -> tuple[EMResult[EMState], int]:
    """Fit a GaussianMixture; return the best run of EM, and the number of clusters that have rows."""
    is_auto, is_built = isinstance(model.init, str) and model.init == "auto", not hasattr(model._recipe(), "build")
    unsupported = (
        ("constraints", constraints is not None, "pass labels as y"),
        ("init", is_auto, "name a start, such as init='kmeans'"),
        ("graph", is_built, "pass a recipe such as KNNGraph(), for the sample of the start"),
    )
    refuse("{} has a value that cannot be used", unsupported)
    rng = check_seed(model.random_state)
    if model.pca is not None:
        rng.randint(2**31 - 1)  # as in memory, where it is the seed of the principal components
    seeds = rng.randint(2**31 - 1, size=model.n_init)
    if y is not None and not is_dask_array(y):  # labels that are all known are ignored, as every clusterer does
        y = mark_unknown(y)
        y = y if y.ndim == 1 and y.dtype.kind in "iuf" and (y == UNKNOWN).any() else None
    given = {LABELS: y, WEIGHTS: sample_weight, INIT: None if isinstance(model.init, str) else model.init}
    known_seeds = None if model.random_state is None else [int(seed) for seed in seeds]
    return run_steps(model, X, known_seeds, lambda run: _GaussianFit(model, run, X, given, seeds).fit(), **given)


@dataclass(eq=False)
class _GaussianFit:
    """The fit of a GaussianMixture, step by step."""

    model: BaseMixture
    run: Run
    X: Any
    given: dict[str, Any]
    seeds: np.ndarray

    def fit(self) -> tuple[EMResult[EMState], int]:
        """Run EM from every start, store the best run, and return it and the number of clusters that have rows."""
        model, run = self.model, self.run
        (seeds,) = run.once("seeds", lambda: {"seeds": self.seeds}, "seeds")
        rows = RowBlocks.store(run, self.X)
        k = check_n_clusters(model.n_clusters, rows.n_rows)
        given = tuple(name for name, values in self.given.items() if values is not None)
        # labels or memberships of a start are checked when they are used
        checks: dict[str, Callable[[np.ndarray], np.ndarray]]
        checks = {WEIGHTS: check_weights, LABELS: partial(check_labels, n_clusters=k), INIT: np.asarray}
        for name in given:
            store_values(rows, self.given[name], name, checks[name])
        settings = Settings.of(model, rows, k, given)
        hooks = GaussianHooks(run, rows, settings, self._total_weight(rows), count())
        rngs = (np.random.RandomState(int(seed)) for seed in seeds)
        starts = (start for number, rng in enumerate(rngs) for start in self._starts(hooks, number, rng))
        result = max(model._run_all(starts, hooks), key=lambda result: result.history.objective[-1])
        run.once("components", lambda: components_arrays(result.model))
        run.map("result", result_block, rows.blocks, settings=settings, components="components")
        _store_result(model, rows, result, settings)
        return result, int(np.count_nonzero(run.total("result", "counts", rows.blocks)))

    def _total_weight(self, rows: RowBlocks) -> float:
        if self.given[WEIGHTS] is None:
            return float(rows.n_rows)
        weights = self.run.read_all(WEIGHTS, "values", rows.blocks)
        total = sum(float(values.sum(dtype=np.float64)) for values in weights)
        if not total > 0:
            raise InputError("all weights are zero", "leave sample_weight out", parameter=WEIGHTS)
        return total

    def _starts(self, hooks: GaussianHooks, number: int, rng: np.random.RandomState) -> Iterator[Statistics]:
        """Yield the statistics of first memberships: those that are given, or those of a sample of the rows."""
        run, rows, settings, model = self.run, hooks.rows, hooks.settings, self.model
        if not isinstance(model.init, str):
            run.map("start", given_start_block, rows.blocks, settings=settings)
            yield sum_statistics(run, "start", rows.blocks)
            return
        numbers = self._sample(rows, settings.k, rng)
        step = f"start-{number:02d}"
        X, known = rows.select(numbers, f"{step}/rows"), None
        if LABELS in settings.given:
            (known,) = select_values(run, f"{step}/labels", LABELS, ("values",), numbers, rows.starts)
        problem = replace(settings.problem(X, None, known), graph=model._graph_for(X, None, None))
        for start in model._starts(problem, settings.k, rng):
            yield settings.statistics(problem, start)

    def _sample(self, rows: RowBlocks, k: int, rng: np.random.RandomState) -> np.ndarray:
        """Draw rows for a start, in ascending order; some known rows are among them."""
        size = max(rows.most_rows(MAX_SAMPLED_ROWS, SAMPLE_BYTES), 2 * k)
        numbers = rows.draw(size, rng)
        if self.given[LABELS] is None or len(numbers) == rows.n_rows:
            return numbers
        most, labels = -(-size // len(rows.sizes)), self.run.read_all(LABELS, "values", len(rows.sizes))
        known = [start + np.flatnonzero(some >= 0)[:most] for start, some in zip(rows.starts, labels)]
        return np.unique(np.concatenate([numbers, *known]))


@dataclass(frozen=True, eq=False)
class GaussianHooks(Hooks[EMState]):
    """The steps of EM, see :class:`fiedler.mixture.em.Hooks`; the memberships are represented by their statistics."""

    run: Run
    rows: RowBlocks
    settings: Settings
    total_weight: float
    numbers: Iterator[int]  # of the iterations
    lam: float = 0.0

    def start(self, statistics: Statistics) -> EMState:
        """Return the state before the first iteration."""
        return EMState(statistics)

    def maximize(self, state: EMState) -> tuple[Gaussians, EMState]:
        """Compute the components from the sums over all blocks."""
        return gaussians(state.resp, **self.settings.of_components), state

    def expect(self, model: Gaussians) -> tuple[float, Statistics]:
        """Compute the likelihood and the statistics of all blocks, with memberships from the components.

        Those of single-precision rows are computed in double precision where too many digits would cancel.
        """
        step = f"em-{next(self.numbers):04d}"
        self.run.once(f"{step}-components", lambda: components_arrays(model))
        sums = self._sums(step, f"{step}-components", self.rows.dtype)
        if self.rows.dtype == np.float64 or keeps_digits(sums[1], **self.settings.of_components):
            return sums
        return self._sums(f"{step}-double", f"{step}-components", np.dtype(np.float64))

    def _sums(self, step: str, components: str, dtype: np.dtype) -> tuple[float, Statistics]:
        def total() -> dict[str, Array]:
            blocks, options = self.rows.blocks, {"settings": self.settings, "components": components, "dtype": dtype}
            self.run.map(f"{step}-blocks", expect_block, blocks, **options)
            likelihood = self.run.total(f"{step}-blocks", "likelihood", blocks)
            return statistics_arrays(sum_statistics(self.run, f"{step}-blocks", blocks)) | {"likelihood": likelihood}

        (likelihood,) = self.run.once(step, total, "likelihood")
        self.run.drop(f"{step}-blocks")
        return float(likelihood), read_statistics(self.run.workspace, step)

    def refine(self, sums: tuple[float, Statistics], state: EMState) -> EMState:
        """Return the state with the new statistics."""
        return replace(state, resp=sums[1])

    def score(self, sums: tuple[float, Statistics], state: EMState, last: Statistics) -> Step:
        """Return the likelihood; the change of the memberships is not known."""
        return Step(sums[0], sums[0], 0.0, math.nan)

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Test the objective."""
        return objective_converged(steps, self.total_weight, tol)


def given_start_block(task: Task, *, settings: Settings) -> dict[str, Array]:
    """Compute the statistics of first memberships, given as labels or as memberships."""
    problem, first = settings.read(task), task.read_one(INIT, "values")
    return statistics_arrays(settings.statistics(problem, memberships_from_array(first, settings.k, problem.Z)))


def expect_block(task: Task, *, settings: Settings, components: str, dtype: np.dtype) -> dict[str, Array]:
    """Compute memberships from the components, and their statistics."""
    problem, model = settings.read(task), read_components(task.workspace, components)
    joint = problem.log_joint(model)
    statistics = settings.statistics(problem, softmax(joint), dtype)
    return statistics_arrays(statistics) | {"likelihood": np.array(problem.likelihood(joint))}


def result_block(task: Task, *, settings: Settings, components: str) -> dict[str, Array]:
    """Compute the memberships and labels of the rows of a block, in their precision."""
    problem, model = settings.read(task), read_components(task.workspace, components)
    resp = problem.clamp(softmax(problem.log_joint(model)))
    labels = resp.argmax(axis=1)
    return {"memberships": resp, "labels": labels, "counts": np.bincount(labels, minlength=settings.k)}


def check_weights(values: np.ndarray) -> np.ndarray:
    """Return the weights of the rows of a block."""
    if values.ndim == 1 and values.dtype.kind in "biuf" and np.isfinite(values).all() and (values >= 0).all():
        return values.astype(np.float64)
    problem = "sample_weight must be finite, non-negative numbers, one per row"
    hint = "correct it, or leave it out for equal weights"
    raise InputError(problem, hint, code="invalid_sample_weight", parameter="sample_weight")


def check_labels(values: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the known clusters of the rows of a block, of which all or none may be known."""
    labels = check_partial_labels(np.append(mark_unknown(values), UNKNOWN), len(values) + 1, n_clusters)
    return np.full(len(values), UNKNOWN) if labels is None else np.asarray(labels)[:-1]


# -------------------------------------------------------------------------------------------------------------- LapGMM


def _fit_lapgmm(model: LapGMM, X: Any, y: Any, sample_weight: Any, constraints: Any) -> tuple[EMResult[Any], int]:
    """Fit LapGMM; return the run of EM, and the number of clusters that have rows."""
    is_named = isinstance(model.init, str)
    unsupported = (
        ("y", y is not None and (is_dask_array(y) or UNKNOWN in mark_unknown(y)), "leave it out"),
        ("sample_weight", sample_weight is not None, "leave it out"),
        ("constraints", constraints is not None, "leave them out"),
        ("solver", model.solver != "variational", "use solver='variational'"),
        ("operator", not isinstance(model.operator, str) or model.operator != "laplacian", "use operator='laplacian'"),
        ("graph", getattr(model._recipe(), "metric", "euclidean") != "euclidean", "use metric='euclidean'"),
        ("n_smooth", model.n_smooth != 1, "use n_smooth=1"),
        ("n_init", model.n_init != 1, "use n_init=1"),
        ("init", is_named and model.init not in LAPGMM_STARTS, f"use one of {', '.join(LAPGMM_STARTS)}, or labels"),
    )
    refuse("{} has a value that LapGMM cannot use", unsupported)
    seed, init = draw_seed(model.random_state), None if is_named else model.init
    return run_steps(model, X, seed, lambda run: _LapGMMFit(model, run, seed).fit(X, init), init=init)


@dataclass(eq=False)
class _LapGMMFit:
    """The fit of LapGMM, step by step."""

    model: LapGMM
    run: Run
    seed: int | None

    def fit(self, X: Any, init: Any) -> tuple[EMResult[Any], int]:
        """Run EM, store the result, and return it and the number of clusters that have rows."""
        model, run = self.model, self.run
        seed = run.seed(self.seed)
        rows = RowBlocks.store(run, X)
        settings = Settings.of(model, rows, check_n_clusters(model.n_clusters, rows.n_rows))
        graph = build_recipe(rows, model._recipe(), seed)
        hooks = LapGMMHooks(graph, settings, 0.0, count())
        _, sample = draw_sample(graph.cells.rows, seed)
        self._start(hooks, sample, init, seed)
        result = self._run_em(hooks, sample)
        memberships = f"{result.state.resp}/{MEMBERSHIPS}"
        run.map("ends", end_block, graph.cells.n_blocks, layout=graph.cells.layout, memberships=memberships)
        graph.cells.collect("ends", ("labels", "memberships"))
        _store_result(model, rows, result, settings)
        model.lam_ = result.lam
        return result, hooks.quality(result)[0]

    def _start(self, hooks: LapGMMHooks, sample: Array, init: Any, seed: int) -> None:
        """Write first memberships in the order of the nodes."""
        graph, settings, cells = hooks.graph, hooks.settings, hooks.graph.cells
        rng = np.random.RandomState(seed)
        options: dict[str, Any] = {"layout": cells.layout, "settings": settings}
        if init is not None:
            store_values(cells.rows, init, INIT, np.asarray)
            cells.divide_values("init-parts", INIT)
            options["values"] = "init-parts"
        elif self.model.init == "kmeans":
            coordinates = sample if settings.projection is None else settings.projection(sample)
            find = lambda: {"centers": np.asarray(kmeans(coordinates, settings.k, n_init=10, random_state=rng).centers)}  # noqa: E731
            (options["centers"],) = self.run.once("centers", find, "centers")
        else:
            options["labels"] = self._communities(graph, settings.k, rng, seed)
        self.run.map(f"{START}/{MEMBERSHIPS}", start_block, cells.n_blocks, graph=graph.largest, **options)

    def _communities(self, graph: GraphBlocks, k: int, rng: np.random.RandomState, seed: int) -> str:
        """Search communities of the contracted graph; return the step with the refined labels of the nodes."""
        coarse = graph.contract(MAX_NODES, seed)

        def search() -> dict[str, Array]:
            best = communities(coarse.affinity(graph.sizes[-1]), k, random_state=rng)
            return {"labels": np.asarray(best.labels), "gamma": np.array(best.resolution)}

        labels, gamma = self.run.once("communities", search, "labels", "gamma")
        return refine(coarse, labels, graph.sizes[-1], float(gamma), seed)

    def _run_em(self, hooks: LapGMMHooks, sample: Array) -> EMResult[Any]:
        """Run EM with λ as given, or searched for as in memory."""
        model = self.model
        if model._searches_lam():
            drop = lambda result: hooks.drop(str(result.state.resp))  # noqa: E731
            return model._search_lam(START, hooks, self._lam_grid(hooks, sample), quality=hooks.quality, discard=drop)
        return BaseMixture._run(model, START, replace(hooks, lam=float(model.lam)))

    def _lam_grid(self, hooks: LapGMMHooks, sample: Array) -> list[float]:
        """Return multiples of the λ at which neighbours weigh as much as densities."""
        components, _ = hooks.maximize(hooks.start(START))
        margin = median_margin(hooks.settings.problem(sample).log_joint(components), None)
        degree = float(hooks.read_total(START, "volumes").sum()) / hooks.graph.cells.rows.n_rows
        scale = margin / (2 * degree) if degree > 0 else 0.0
        return [factor * scale for factor in LAM_GRIDS[str(self.model.lam)]]


@dataclass(frozen=True, eq=False)
class LapGMMHooks(Hooks[EMState]):
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
        return self.graph.cells.run

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
        cells, last = self.graph.cells, str(state.resp)
        options = {"layout": cells.layout, "graph": self.graph.largest, "settings": self.settings, "lam": self.lam}
        options |= {"components": f"{name}/components", "last": last}
        self.run.map(f"{name}/{MEMBERSHIPS}", step_block, cells.n_blocks, **options)
        self._add_up(name)
        return replace(state, resp=name)

    def _add_up(self, name: str) -> None:
        """Compute the products of memberships with L, and all sums over the blocks."""
        n_blocks, run = self.graph.cells.n_blocks, self.run
        memberships, products = f"{name}/{MEMBERSHIPS}", f"{name}/{PRODUCTS}"
        run.map(products, product_block, n_blocks, graph=self.graph.largest, memberships=memberships)

        def total() -> dict[str, Array]:
            sums = {what: run.total(memberships, what, n_blocks) for what in ("bound", "change")}
            names = ("penalty", "crossing", "volumes", "counts of labels")
            sums |= {what: run.total(products, what, n_blocks) for what in names}
            return statistics_arrays(sum_statistics(run, memberships, range(n_blocks))) | sums

        run.once(f"{name}/{TOTALS}", total)

    def read_total(self, name: str, what: str) -> Any:
        """Return a sum over all blocks."""
        return self.run.workspace.read_one(f"{name}/{TOTALS}", 0, what)

    def score(self, name: str, state: EMState, last: str) -> Step:
        """Compute J and its two terms, and drop the memberships before the last ones."""
        n_rows = self.graph.cells.rows.n_rows
        likelihood, penalty = float(self.read_total(name, "bound")), self.lam * float(self.read_total(name, "penalty"))
        if last != START:
            self.drop(last)
        return Step(likelihood - penalty, likelihood, penalty, float(self.read_total(name, "change")) / n_rows)

    def drop(self, name: str) -> None:
        """Delete the blocks of an iteration, but not its sums."""
        for step in (MEMBERSHIPS, PRODUCTS):
            self.run.drop(f"{name}/{step}")

    def quality(self, result: EMResult[Any]) -> tuple[int, float]:
        """Return the number of clusters in use and the modularity of the partition."""
        read = partial(self.read_total, str(result.state.resp))
        n_used = int(np.count_nonzero(read("counts of labels")))
        return n_used, modularity(float(read("crossing")), read("volumes"), RESOLUTION)


def start_block(
    task: Task,
    *,
    layout: Layout,
    graph: StoredGraph,
    settings: Settings,
    values: str | None = None,
    centers: np.ndarray | None = None,
    labels: str | None = None,
) -> dict[str, Array]:
    """Return first memberships: those that are given, of the nearest centre, or of the communities."""
    edges, rows = graph.read(task), layout.read_rows(task)
    if not edges.n:
        return _without_rows(edges, rows, settings)
    problem = settings.problem(rows)
    if values is not None:
        resp = memberships_from_array(layout.read_values(task, values), settings.k, problem.Z)
    elif centers is not None:
        resp = one_hot(nearest_center(problem.Z, centers)[0], settings.k, problem.Z)
    else:
        assert labels is not None
        resp = one_hot(task.read_one(labels, OWN).astype(np.int64), settings.k, problem.Z)
    sums = {"bound": np.array(0.0), "change": np.array(0.0)}  # there were no components before
    return edges.share(resp) | statistics_arrays(settings.statistics(problem, resp)) | sums


def _without_rows(edges: BlockGraph, rows: Array, settings: Settings) -> dict[str, Array]:
    """Return the results of a block without rows: sums of zero, which are those of a row of weight zero."""
    problem = settings.problem(np.zeros((1, rows.shape[1]), dtype=rows.dtype))
    weightless = settings.statistics(problem, np.zeros((1, settings.k), dtype=rows.dtype))
    sums = {"bound": np.array(0.0), "change": np.array(0.0)}
    return edges.share(np.zeros((0, settings.k), dtype=rows.dtype)) | statistics_arrays(weightless) | sums


def step_block(
    task: Task, *, layout: Layout, graph: StoredGraph, settings: Settings, components: str, last: str, lam: float
) -> dict[str, Array]:
    """Take one step of the memberships of a block, and compute their statistics and their part of J."""
    edges, rows = graph.read(task), layout.read_rows(task)
    if not edges.n:
        return _without_rows(edges, rows, settings)
    problem = settings.problem(rows)
    joint = problem.log_joint(read_components(task.workspace, components))
    resp = task.read_one(f"{last}/{MEMBERSHIPS}", OWN)
    gradient = lam * task.read_one(f"{last}/{PRODUCTS}", OWN)
    bound = (2 * lam * edges.degrees[:, None]).astype(resp.dtype)
    moved = smoothing_step(joint, resp, gradient.astype(resp.dtype), bound)
    sums = {"bound": evidence_bound(moved, joint), "change": np.abs(moved - resp).sum(axis=1)}
    totals = {name: np.array(values.sum(dtype=np.float64)) for name, values in sums.items()}
    return edges.share(moved) | statistics_arrays(settings.statistics(problem, moved)) | totals


def product_block(task: Task, *, graph: StoredGraph, memberships: str) -> dict[str, Array]:
    """Compute LQ of the nodes of a block, the penalty, and what the modularity of the partition needs."""
    edges = graph.read(task)
    values, degrees = edges.receive(task, memberships), edges.degrees
    own = values[: edges.n]
    product = degrees[:, None] * own - edges.weights @ values
    labels = values.argmax(axis=1)
    leaving = labels[row_indices(edges.weights)] != labels[edges.weights.indices]
    k = values.shape[1]
    return {
        OWN: product.astype(own.dtype),
        "penalty": np.array(np.sum(own * product, dtype=np.float64)),
        "crossing": np.array(edges.weights.data[leaving].sum(dtype=np.float64)),
        "volumes": np.bincount(labels[: edges.n], degrees, minlength=k),
        "counts of labels": np.bincount(labels[: edges.n], minlength=k),
    }


def end_block(task: Task, *, layout: Layout, memberships: str) -> dict[str, Array]:
    """Return labels and memberships of the nodes of a block, divided by blocks of the input."""
    resp = task.read_one(memberships, OWN)
    return layout.divide_by_origin({"labels": resp.argmax(axis=1).astype(np.int64), "memberships": resp}, task.block)
