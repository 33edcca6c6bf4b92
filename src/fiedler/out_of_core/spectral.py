"""SpectralClustering on a Dask array.

The eigenvectors of the random walk D⁻¹W with the largest eigenvalues are found by Chebyshev-filtered subspace iteration
[Zhou et al. 2006] on S = D^-½WD^-½. It starts with the eigenvectors of the contracted graph, each group's value for all
of its nodes. A filter of degree `DEGREE` damps the eigenvalues between -1 and the smallest one that is kept; its steps
are one task per block, with the vectors of other blocks at their border. Then the vectors are combined to
orthonormal ones that diagonalise S (Rayleigh and Ritz), by sums of small matrices over all blocks.

The centres of k-means are found on the rows of a sample, and moved by sums over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.linalg

from .._validation import check_n_clusters
from ..clustering.spectral import RELAXATIONS, SpectralClustering
from ..core.arrays import Array
from ..core.eigen import smallest_eigenpairs
from ..core.fitting import stage
from ..core.kmeans import kmeans, nearest_center
from ..core.linear import chebyshev_factors
from ..errors import NotConvergedWarning, warn
from .graph import OWN, BlockGraph, CoarseGraphs, GraphBlocks, Groups, StoredGraph, build_recipe, draw_sample
from .partition import Layout, RowBlocks
from .run import Run, draw_seed, refuse, run_steps
from .store import Task

MAX_NODES = 50_000  # of the contracted graph
DEGREE = 8  # of the filter
N_GUARDS = 4  # further vectors, so that the wanted ones converge faster
MAX_ITERATIONS = 30
MIN_TOL = 1e-5  # of the residuals: labels do not change below, and single precision does not go further
MAX_LLOYD_ITERATIONS = 20


def fit(
    model: SpectralClustering, X: Any, y: Any = None, *, sample_weight: Any = None, constraints: Any = None
) -> SpectralClustering:
    """Cluster the rows of a Dask array; ``labels_`` and ``embedding_`` are Dask arrays with its blocks."""
    given = {"sample_weight": sample_weight, "constraints": constraints}
    unsupported = [(name, value is not None, "leave it out") for name, value in given.items()]
    refuse("SpectralClustering does not take {}", unsupported)
    has_no_walk = RELAXATIONS[model.cut].matrix != "random_walk"
    refuse(f"{{}}={model.cut!r} does not work", [("cut", has_no_walk, "use 'ncut' or 'njw'")])
    seed = draw_seed(model.random_state)
    run_steps(model, X, seed, lambda run: _Fit(model, run, seed).fit(X))
    if not model.converged_:
        problem = f"the eigenvectors did not converge: the largest residual is {model.eigen_residuals_.max():.1e}"
        warn(problem, "raise eigen_tol", category=NotConvergedWarning, stacklevel=4)
    return model


@dataclass(eq=False)
class _Fit:
    """The fit of a model, step by step."""

    model: SpectralClustering
    run: Run
    seed: int | None

    def fit(self, X: Any) -> None:
        """Run the steps and store the results."""
        model, run = self.model, self.run
        seed = run.seed(self.seed)
        rows = RowBlocks.store(run, X)
        k = check_n_clusters(model.n_clusters, rows.n_rows)
        graph = build_recipe(rows, model._recipe(), seed)
        coarse = graph.contract(MAX_NODES, seed)
        values, residuals, step = self._eigenvectors(coarse, k, seed)
        numbers, landmarks = draw_sample(graph.cells.rows, seed)
        vectors = graph.select(graph.cells.nodes_of(numbers), step, "landmarks")[:, :k]
        centers = self._centers(graph, step, vectors, k, seed)
        cells = graph.cells
        run.map("ends", label_block, cells.n_blocks, layout=cells.layout, vectors=step, centers=centers, cut=model.cut)
        result = cells.collect("ends", ("labels", "embedding"))
        rows.describe(model)
        model.labels_ = rows.as_dask(result, "labels", (), np.int64)
        model.embedding_ = rows.as_dask(result, "embedding", (k,), np.float64)
        model.cluster_centers_ = centers
        model.eigenvalues_, model.eigen_residuals_ = values, residuals
        model.converged_ = bool((residuals <= self._tol).all())
        model.n_connected_components_ = coarse.affinity(graph.sizes[-1]).components()[0]
        model._eigenvectors, model._fit_cut = vectors, model.cut
        model._keep_rows(landmarks, model._recipe())
        model.graph_ = model._fit_recipe._build(landmarks)

    @property
    def _tol(self) -> float:
        return max(float(self.model.eigen_tol), MIN_TOL)

    # ------------------------------------------------------------------------------------------------- eigenvectors

    def _eigenvectors(self, coarse: CoarseGraphs, k: int, seed: int) -> tuple[np.ndarray, np.ndarray, str]:
        """Return the smallest eigenvalues of the Laplacian, the residuals, and the step with the vectors D^-½ u."""
        run, graph = self.run, coarse.graph
        n_vectors = min(k + N_GUARDS, int(coarse.groups.starts[-1]))

        def solve() -> dict[str, Array]:  # roughly, beyond the number of components
            affinity, rng = coarse.affinity(graph.sizes[-1]), np.random.RandomState(seed)
            pairs = smallest_eigenpairs(affinity, n_vectors, kind="random_walk", tol=1e-3, random_state=rng)
            return {"vectors": np.asarray(pairs.vectors, dtype=np.float64)}

        run.once("coarse-vectors", solve)
        step = "vectors/00-start"
        run.map(step, start_block, graph.cells.n_blocks, graph=graph.largest, groups=coarse.groups)
        step, values, residuals = self._rotate(graph, step, "vectors/00")
        max_iter = MAX_ITERATIONS if self.model.eigen_max_iter is None else self.model.eigen_max_iter
        with stage("eigenvectors", max_iter, at_most=True) as tick:
            for number in range(1, max_iter + 1):
                if (residuals[:k] <= self._tol).all():
                    break
                name = f"vectors/{number:02d}"
                filtered, previous = self._filter(graph, step, name, float(min(values[-1], 1 - 1e-3))), step
                step, values, residuals = self._rotate(graph, filtered, name)
                for old in (previous, filtered):
                    run.drop(old)
                tick()
        return 1 - values[:k], residuals[:k], step

    def _filter(self, graph: GraphBlocks, step: str, name: str, cutoff: float) -> str:
        """Damp the eigenvalues between -1 and the cutoff, by a Chebyshev polynomial."""
        center, half_width = (cutoff - 1) / 2, (cutoff + 1) / 2
        scale, previous, current = half_width / (1 - center), step, step
        recurrence = chain([(scale, 0.0)], chebyshev_factors(scale))  # the first step has no vectors before it
        for degree, (factor, back) in zip(range(1, DEGREE + 1), recurrence):
            following = f"{name}-filter-{degree:02d}"
            factors = {"shift": center, "factor": factor / half_width, "back": back}
            steps = {"graph": graph.largest, "current": current, "previous": previous}
            self.run.map(following, filter_block, graph.cells.n_blocks, **steps, **factors)
            if degree > 2:
                self.run.drop(previous)
            previous, current = current, following
        self.run.drop(previous)
        return current

    def _rotate(self, graph: GraphBlocks, step: str, name: str) -> tuple[str, np.ndarray, np.ndarray]:
        """Combine vectors to orthonormal ones that diagonalise S; return their step, eigenvalues and residuals."""
        run, n_blocks = self.run, graph.cells.n_blocks
        names = ("gram", "projected", "squared")

        def diagonalise() -> dict[str, Array]:
            run.map(f"{name}-products", product_block, n_blocks, graph=graph.largest, vectors=step)
            gram, projected, squared = (run.total(f"{name}-products", what, n_blocks) for what in names)
            values, combination = scipy.linalg.eigh(projected, gram)
            return {"values": values[::-1], "combination": combination[:, ::-1], "squared": squared}

        values, combination, squared = run.once(f"{name}-basis", diagonalise, "values", "combination", "squared")
        # ‖Su - μu‖² = u'S²u - μ² for a unit vector u with u'Su = μ
        residuals = np.einsum("ij,ik,kj->j", combination, squared, combination) - values**2
        options = {"graph": graph.largest, "vectors": step, "combination": combination}
        run.map(f"{name}-rotated", rotate_block, n_blocks, **options)
        run.drop(f"{name}-products")
        return f"{name}-rotated", values, np.sqrt(np.maximum(residuals, 0))

    # ------------------------------------------------------------------------------------------------------- k-means

    def _centers(self, graph: GraphBlocks, step: str, sample: np.ndarray, k: int, seed: int) -> np.ndarray:
        """Find centres on a sample, and move them by the means of all rows until few rows change."""
        run, cut, n_blocks = self.run, self.model.cut, graph.cells.n_blocks
        embedded = RELAXATIONS[cut].scale_rows(sample)
        rng, n_init = np.random.RandomState(seed), self.model.n_init
        find = lambda: {"centers": np.asarray(kmeans(embedded, k, n_init=n_init, random_state=rng).centers)}  # noqa: E731
        (centers,), inertia = run.once("first-centers", find, "centers"), np.inf
        for number in range(MAX_LLOYD_ITERATIONS):
            name = f"centers-{number:02d}"
            run.map(name, lloyd_block, n_blocks, vectors=step, centers=centers, cut=cut)
            counts, sums, reached = (run.total(name, what, n_blocks) for what in ("counts", "sums", "inertia"))
            centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
            if reached > (1 - 1e-4) * inertia:
                break
            inertia = reached
        return centers


# ------------------------------------------------------------------------------------------------ the work on one block


def start_block(task: Task, *, graph: StoredGraph, groups: Groups) -> dict[str, Array]:
    """Give every node the values of its group. Vectors are kept as v = D^-½ u, of which the walk takes means."""
    vectors = task.workspace.read_one("coarse-vectors", 0, "vectors")
    return graph.read(task).share(vectors[groups.read(task)])


def _walked(edges: BlockGraph, values: Array) -> np.ndarray:
    """Return D⁻¹W v at the own nodes, 0 for nodes without edges."""
    inverse_degrees = np.where(edges.degrees > 0, 1 / np.where(edges.degrees > 0, edges.degrees, 1), 0.0)
    return inverse_degrees[:, None] * (edges.weights @ values)


def filter_block(
    task: Task, *, graph: StoredGraph, current: str, previous: str, shift: float, factor: float, back: float
) -> dict[str, Array]:
    """Make one step of the three-term recurrence of scaled Chebyshev polynomials."""
    edges = graph.read(task)
    values = edges.receive(task, current)
    result = factor * (_walked(edges, values) - shift * values[: edges.n])
    if back:
        result -= back * task.read_one(previous, OWN)
    return edges.share(result)


def product_block(task: Task, *, graph: StoredGraph, vectors: str) -> dict[str, Array]:
    """Return u'u, u'Su and u'S²u of the vectors u = D^½ v, summed over the nodes of a block."""
    edges = graph.read(task)
    values = edges.receive(task, vectors)
    own, walked = values[: edges.n], _walked(edges, values)
    degrees = edges.degrees[:, None]
    gram, projected, squared = (degrees * own).T @ own, (degrees * own).T @ walked, (degrees * walked).T @ walked
    return {"gram": gram, "projected": (projected + projected.T) / 2, "squared": squared}


def rotate_block(task: Task, *, graph: StoredGraph, vectors: str, combination: np.ndarray) -> dict[str, Array]:
    """Combine the vectors."""
    edges = graph.read(task)
    return edges.share(task.read_one(vectors, OWN) @ combination)


def _embedding(task: Task, vectors: str, centers: np.ndarray, cut: str) -> np.ndarray:
    return RELAXATIONS[cut].scale_rows(task.read_one(vectors, OWN)[:, : len(centers)])


def lloyd_block(task: Task, *, vectors: str, centers: np.ndarray, cut: str) -> dict[str, Array]:
    """Return the counts and sums of the rows of each centre, and the inertia."""
    rows = _embedding(task, vectors, centers, cut)
    labels, distances = nearest_center(rows, centers)
    sums = np.stack([np.bincount(labels, column, minlength=len(centers)) for column in rows.T], axis=1)
    counts = np.bincount(labels, minlength=len(centers))
    return {"counts": counts, "sums": sums, "inertia": np.array(np.sum(distances))}


def label_block(task: Task, *, layout: Layout, vectors: str, centers: np.ndarray, cut: str) -> dict[str, Array]:
    """Return labels and coordinates of the nodes of a block, divided by blocks of the input."""
    rows = _embedding(task, vectors, centers, cut)
    labels, _ = nearest_center(rows, centers)
    return layout.divide_by_origin({"labels": labels.astype(np.int64), "embedding": rows}, task.block)
