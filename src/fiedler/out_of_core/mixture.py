"""GaussianMixture on a Dask array.

The components depend on the rows through additive statistics alone, see :mod:`fiedler.mixture.statistics`. In every
iteration each block computes the memberships of its rows from the components, and writes their statistics and its part
of the likelihood; the sums become the next components. From the same first memberships, the iterations are those in
memory, up to rounding.

If ``init`` names a start, it is made from a random sample of the rows, or from all if there are few. Memberships are
computed from the last components.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from .._validation import check_n_clusters, check_seed
from ..core.arrays import Array, fix_signs, one_hot, softmax
from ..core.pca import Projection, check_n_components
from ..errors import InputError, SingularCovarianceError
from ..graph.labels import UNKNOWN, check_partial_labels
from ..mixture.base import BaseMixture, memberships_from_array
from ..mixture.covariance import Gaussians, gaussians, keeps_digits
from ..mixture.em import EMResult, EMState, MixtureProblem, Step, objective_converged
from ..mixture.statistics import Statistics, centered, component_blocks, weighted_statistics
from .memberships import read_statistics, statistics_arrays, sum_statistics
from .partition import RowBlocks, select_values, store_values
from .run import Run, describe, run_steps, token
from .store import Workspace

SAMPLE_BYTES = 2**27  # of the rows from which a start is made, at most
MAX_SAMPLED_ROWS = 20_000
WEIGHTS, LABELS, INIT = "sample_weight", "y", "init"  # steps with values of the rows that are given


def fit(
    model: BaseMixture, X: Any, y: Any = None, sample_weight: Any = None, *, constraints: Any = None
) -> BaseMixture:
    """Fit a mixture to a Dask array; parameters as in :meth:`fiedler.GaussianMixture.fit`."""
    _check_supported(model, constraints)
    rng = check_seed(model.random_state)
    if model.pca is not None:
        rng.randint(2**31 - 1)  # as in memory, where it is the seed of the principal components
    seeds = rng.randint(2**31 - 1, size=model.n_init)
    given = {LABELS: _known(y), WEIGHTS: sample_weight, INIT: None if isinstance(model.init, str) else model.init}
    about = describe(model, X, None if model.random_state is None else [int(seed) for seed in seeds])
    about |= {name: token(values) for name, values in given.items()}
    result, n_found = run_steps(about, lambda run: _Fit(model, run, X, given, seeds).fit())
    model._warn_about_fit(result, n_found)
    return model


def _check_supported(model: BaseMixture, constraints: Any) -> None:
    """Refuse what needs all rows at once."""
    recipe = model._recipe()
    for parameter, is_used, hint in (
        ("constraints", constraints is not None, "pass labels as y"),
        ("init", isinstance(model.init, str) and model.init == "auto", "name a start, such as init='kmeans'"),
        ("graph", not hasattr(recipe, "build"), "pass a recipe such as KNNGraph(), for the sample of the start"),
    ):
        if is_used:
            raise InputError(
                f"{parameter} has a value that cannot be used with Dask arrays",
                hint,
                code="not_out_of_core",
                parameter=parameter,
            )


def _known(y: Any) -> Any:
    """Return labels of which some are unknown; others are ignored, as every clusterer does."""
    if y is None or hasattr(y, "dask"):
        return y
    labels = np.asarray(y)
    return labels if labels.ndim == 1 and labels.dtype.kind in "iuf" and (labels == UNKNOWN).any() else None


# ---------------------------------------------------------------------------------------------- the work on one block


@dataclass(frozen=True, eq=False)
class Settings:
    """What all blocks have in common.

    Attributes
    ----------
    k : int
        The number of clusters.
    kind : {'full', 'tied', 'diag', 'spherical'}
        The shape of the covariances.
    ridge : float
        Added to the variances.
    shrinks : bool
        Whether covariances are shrunken by the number of their rows.
    projection : Projection or None
        To the principal components.
    origin : array of shape (d,)
        From which rows are measured in the sums.
    given : tuple of str
        The steps with values of the rows that are given.
    """

    k: int
    kind: str
    ridge: float
    shrinks: bool
    projection: Projection | None
    origin: Array
    given: tuple[str, ...] = ()

    def read(self, workspace: Workspace, block: int) -> MixtureProblem:
        """Read the rows of a block, and their weights and known clusters, as a problem of their own."""
        rows = workspace.read_one("rows", block, "rows")
        weight, y = (
            workspace.read_one(name, block, "values") if name in self.given else None for name in (WEIGHTS, LABELS)
        )
        return self.problem(rows, weight, y)

    def problem(self, rows: Array, weight: Array | None, y: Array | None) -> MixtureProblem:
        """Return the problem of some rows."""
        Z = rows if self.projection is None else self.projection(rows)
        known = None if y is None else one_hot(y.astype(np.int64), self.k, Z)
        return MixtureProblem(Z, kind=self.kind, ridge=self.ridge, sample_weight=weight, known=known)

    def statistics(self, problem: MixtureProblem, resp: Array, dtype: Any) -> Statistics:
        """Compute the statistics of memberships, with sums over parts of the rows in ``dtype``."""
        weights = problem.weighted(problem.clamp(resp))
        return weighted_statistics(problem.Z, weights, kind=self.kind, origin=self.origin, dtype=dtype)

    @property
    def of_components(self) -> dict[str, Any]:
        """The options of the estimates of components."""
        return {"kind": self.kind, "ridge": self.ridge, "shrinks": self.shrinks}


def scatter_block(workspace: Workspace, block: int, *, origin: Array) -> dict[str, Array]:
    """Compute Σ (x - origin)(x - origin)' in double precision."""
    rows = workspace.read_one("rows", block, "rows")
    parts = (centered(rows[part], origin, np.float64) for part in component_blocks(rows, 1))
    return {"scatter": sum((part.T @ part for part in parts), np.zeros((len(origin), len(origin))))}


def start_block(workspace: Workspace, block: int, *, settings: Settings) -> dict[str, Array]:
    """Compute the statistics of first memberships, given as labels or as memberships."""
    problem, first = settings.read(workspace, block), workspace.read_one(INIT, block, "values")
    resp = memberships_from_array(first, settings.k, problem.Z)
    return statistics_arrays(settings.statistics(problem, resp, np.float64))


def expect_block(
    workspace: Workspace, block: int, *, settings: Settings, components: str, dtype: Any
) -> dict[str, Array]:
    """Compute memberships from the components, and their statistics."""
    problem, model = settings.read(workspace, block), read_components(workspace, components)
    joint = problem.log_joint(model)
    statistics = settings.statistics(problem, softmax(joint), dtype)
    return statistics_arrays(statistics) | {"likelihood": np.array(problem.likelihood(joint))}


def result_block(workspace: Workspace, block: int, *, settings: Settings, components: str) -> dict[str, Array]:
    """Compute the memberships and labels of the rows of a block, in their precision."""
    problem, model = settings.read(workspace, block), read_components(workspace, components)
    resp = problem.clamp(softmax(problem.log_joint(model)))
    labels = resp.argmax(axis=1)
    return {"memberships": resp, "labels": labels, "counts": np.bincount(labels, minlength=settings.k)}


def components_arrays(model: Gaussians) -> dict[str, Array]:
    """Return components as arrays by name."""
    return {name: np.asarray(value) for name, value in model._asdict().items()}


def read_components(workspace: Workspace, step: str) -> Gaussians:
    """Read the components that the client has written."""
    values = dict(zip(Gaussians._fields, workspace.read(step, 0, *Gaussians._fields)))
    return Gaussians(**values | {"kind": str(values["kind"]), "ridge": float(values["ridge"])})


# ------------------------------------------------------------------------------------------------------ all blocks


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over all rows: the log-likelihood, and the statistics of the components."""

    likelihood: float
    statistics: Statistics


@dataclass(frozen=True, eq=False)
class BlockHooks:
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

    def expect(self, model: Gaussians) -> Sums:
        """Compute the sums over all blocks, with memberships from the components.

        Those of single-precision rows are computed in double precision where too many digits would cancel.
        """
        step = f"em-{next(self.numbers):04d}"
        self.run.once(f"{step}-components", lambda: components_arrays(model))
        sums = self._sums(step, self.rows.dtype)
        if self.rows.dtype == np.float64 or keeps_digits(sums.statistics, **self.settings.of_components):
            return sums
        return self._sums(f"{step}-double", np.float64, f"{step}-components")

    def _sums(self, step: str, dtype: Any, components: str | None = None) -> Sums:
        def total() -> dict[str, Array]:
            options = {"settings": self.settings, "components": components or f"{step}-components", "dtype": dtype}
            blocks = self.rows.blocks
            self.run.map(f"{step}-blocks", expect_block, blocks, **options)
            likelihood = self.run.total(f"{step}-blocks", "likelihood", blocks)
            return statistics_arrays(sum_statistics(self.run, f"{step}-blocks", blocks)) | {"likelihood": likelihood}

        (likelihood,) = self.run.once(step, total, "likelihood")
        self.run.drop(f"{step}-blocks")
        return Sums(float(likelihood), read_statistics(self.run.workspace, step))

    def refine(self, sums: Sums, state: EMState) -> EMState:
        """Return the state with the new statistics."""
        return replace(state, resp=sums.statistics)

    def score(self, sums: Sums, state: EMState, last: Statistics) -> Step:
        """Return the likelihood; the change of the memberships is not known."""
        return Step(sums.likelihood, sums.likelihood, 0.0, math.nan)

    def finish(self, model: Gaussians, state: EMState) -> Gaussians:
        """Return the components from which the memberships were computed."""
        return model

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Test the objective."""
        return objective_converged(steps, self.total_weight, tol)


def make_settings(model: BaseMixture, rows: RowBlocks, k: int, given: tuple[str, ...] = ()) -> Settings:
    """Compute what all blocks have in common: the origin, the projection, and the ridge from the variances."""
    if rows.is_sparse:
        raise InputError("the blocks of X are sparse", "use dense blocks", code="sparse_blocks", parameter="X")
    if rows.n_rows < 2:
        raise InputError("X has only one row", "give at least two rows", code="too_few_rows")
    mean, variances = rows.moments
    if not np.any(variances > 0):
        raise InputError("all rows of X are equal, so there is nothing to cluster", "check the data", code="equal_rows")
    projection, origin = None, mean.astype(rows.dtype).astype(np.float64)
    if model.pca is not None:
        variances, projection = _principal_components(rows, origin, model.pca)
        origin = np.zeros(len(variances))
    ridge = model._relative_ridge(rows.n_rows, len(origin)) * float(np.mean(variances))
    return Settings(k, model.covariance_type, ridge, model._shrinks(), projection, origin, given)


def _principal_components(rows: RowBlocks, mean: Array, pca: int | float) -> tuple[Array, Projection]:
    """Return the leading eigenvalues of the covariance matrix and the projection to its eigenvectors."""
    rows.run.map("scatter", scatter_block, rows.blocks, origin=mean)
    values, vectors = np.linalg.eigh(rows.run.total("scatter", "scatter", rows.blocks) / rows.n_rows)
    values, vectors = values[::-1], vectors[:, ::-1]
    is_share = check_n_components(pca, len(values))
    n = np.searchsorted(np.cumsum(values), pca * values.sum()) + 1 if is_share else pca
    directions = fix_signs(vectors[:, : int(n)])
    return values[: int(n)], Projection(mean.astype(rows.dtype), directions.astype(rows.dtype))


@dataclass(eq=False)
class _Fit:
    """The fit of a mixture, step by step."""

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
        for name, values in self.given.items():
            if values is not None:
                store_values(rows, values, name, partial(CHECKS[name], n_clusters=k))
        given = tuple(name for name, values in self.given.items() if values is not None)
        settings = make_settings(model, rows, k, given)
        hooks = BlockHooks(run, rows, settings, self._total_weight(rows), count())
        result = self._best_of_starts(hooks, [int(seed) for seed in seeds])
        run.once("components", lambda: components_arrays(result.model))
        run.map("result", result_block, rows.blocks, settings=settings, components="components")
        sizes = run.total("result", "counts", rows.blocks)
        model.n_features_in_ = rows.n_features
        model.__dict__.pop("feature_names_in_", None)
        model._store_components(result, np.dtype(rows.dtype))
        model._projection, model.graph_, model._fit_X = settings.projection, None, None
        model.memberships_ = rows.as_dask("result", "memberships", (k,), rows.dtype)
        model.labels_ = rows.as_dask("result", "labels", (), np.int64)
        return result, int(np.count_nonzero(sizes))

    def _total_weight(self, rows: RowBlocks) -> float:
        if self.given[WEIGHTS] is None:
            return float(rows.n_rows)
        read = self.run.workspace.read_one
        total = sum(float(read(WEIGHTS, block, "values").sum(dtype=np.float64)) for block in rows.blocks)
        if not total > 0:
            raise InputError("all weights are zero", "leave sample_weight out", parameter=WEIGHTS)
        return total

    def _best_of_starts(self, hooks: BlockHooks, seeds: list[int]) -> EMResult[EMState]:
        runs, failures = [], []
        for number, seed in enumerate(seeds):
            for start in self._starts(hooks, number, np.random.RandomState(seed)):
                try:
                    runs.append(self.model._run(start, hooks))
                except SingularCovarianceError as error:
                    failures.append(error)
        if not runs:
            raise failures[0]
        return max(runs, key=lambda run: run.history.objective[-1])

    def _starts(self, hooks: BlockHooks, number: int, rng: np.random.RandomState) -> Iterator[Statistics]:
        """Yield the statistics of first memberships: those that are given, or those of a sample of the rows."""
        run, rows, settings, model = self.run, hooks.rows, hooks.settings, self.model
        if not isinstance(model.init, str):
            run.map("start", start_block, rows.blocks, settings=settings)
            yield sum_statistics(run, "start", rows.blocks)
            return
        numbers = self._sample(rows, settings.k, rng)
        step = f"start-{number:02d}"
        X, known = rows.select(numbers, f"{step}/rows"), None
        if LABELS in settings.given:
            (known,) = select_values(run, f"{step}/labels", LABELS, ("values",), numbers, rows.starts)
        problem = replace(settings.problem(X, None, known), graph=model._graph_for(X, None, None))
        for start in model._starts(problem, settings.k, rng):
            yield settings.statistics(problem, start, np.float64)

    def _sample(self, rows: RowBlocks, k: int, rng: np.random.RandomState) -> np.ndarray:
        """Draw rows for a start, in ascending order; some known rows are among them."""
        row_bytes = rows.dtype.itemsize * rows.n_features
        size = max(min(MAX_SAMPLED_ROWS, SAMPLE_BYTES // row_bytes), 2 * k)
        numbers = rows.draw(size, rng)
        if self.given[LABELS] is None or len(numbers) == rows.n_rows:
            return numbers
        most, known = -(-size // len(rows.sizes)), [numbers]
        for block, start in enumerate(rows.starts[:-1]):
            labels = self.run.workspace.read_one(LABELS, block, "values")
            known.append(start + np.flatnonzero(labels >= 0)[:most])
        return np.unique(np.concatenate(known))


# ------------------------------------------------------------------------------------------------- values of the rows


def check_weights(values: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the weights of the rows of a block."""
    if values.ndim == 1 and values.dtype.kind in "biuf" and np.isfinite(values).all() and (values >= 0).all():
        return values.astype(np.float64)
    raise InputError(
        "sample_weight must be finite, non-negative numbers, one per row",
        "correct it, or leave it out for equal weights",
        code="invalid_sample_weight",
        parameter="sample_weight",
    )


def check_labels(values: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the known clusters of the rows of a block, of which all or none may be known."""
    labels = check_partial_labels(np.append(values, UNKNOWN), len(values) + 1, n_clusters)
    return np.full(len(values), UNKNOWN) if labels is None else np.asarray(labels)[:-1]


def check_start(values: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return labels or memberships, which are checked when they are used."""
    return values


CHECKS = {WEIGHTS: check_weights, LABELS: check_labels, INIT: check_start}
