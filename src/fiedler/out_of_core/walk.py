"""Random walks on a graph in blocks: the memberships of ManifoldClustering, and labels that LLGC spreads.

A walk that starts at P and stops with the probability 1-γ before every step ends at F = (1-γ) P + γ D⁻¹W F. The
eigenvalues of γ D⁻¹W are real and between -γ and γ, so Chebyshev's semi-iteration

    F_{t+1} = ω_{t+1} ((1-γ) P + γ D⁻¹W F_t - F_{t-1}) + F_{t-1},
    ω_1 = 1,      ω_2 = 2 / (2 - γ²),      ω_{t+1} = 1 / (1 - γ² ω_t / 4),

[Golub & Varga 1961] reduces the error by the factor γ / (1 + √(1-γ²)) in every step, 0.41 for γ = 0.7, without sums
over all blocks. One step is one task per block.

Memberships are the ends of walks from the labels H of a partition and, where methods and views were compared, the votes
V of the nearest sampled row, by the rule of :mod:`fiedler.manifold.memberships`.

LLGC's F = (I - αS)⁻¹ Y with S = D^-½WD^-½ is such a walk between two scalings: from D^-½ Y with the probability α of
every step. It ends when errors are ``tol`` times the largest entry; unlike in memory, rows so far from all labels that
F is smaller than that are not solved for again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.arrays import Array, normalize_row_sums, one_hot, positive_part
from ..core.fitting import stage
from ..errors import InputError, warn
from ..graph.labels import UNKNOWN, mark_unknown
from ..graph.voronoi import nearest_centers
from ..manifold.memberships import WALKS
from ..supervision.llgc import LLGC, check_any_label
from .graph import OWN, GraphBlocks, StoredGraph, build_recipe, draw_sample
from .partition import Layout, RowBlocks, select_values, store_values
from .run import Run, refuse, run_steps
from .store import Task

TOLERANCE = 1e-5  # by which errors are reduced
START, CERTAIN_START = "start", "certain-start"  # the steps from which walks start: with votes, and without
SEED = 0  # LLGC has no random state


def walk(graph: GraphBlocks, start: str, gamma: float, prefix: str, *, tol: float = TOLERANCE) -> str:
    """Return the step with F of walks from P, which the step ``start`` has written; errors are reduced by ``tol``."""
    if gamma == 0:
        return start
    run, n_steps = graph.cells.run, n_iterations(gamma, tol)
    previous, current, omega = start, start, 1.0
    with stage("walking", n_steps) as tick:
        for number in range(1, n_steps + 1):
            following = f"{prefix}walk-{number:03d}"
            options = {"graph": graph.largest, "gamma": gamma, "omega": omega}
            steps = {"start": start, "current": current, "previous": previous}
            run.map(following, step_block, graph.cells.n_blocks, **options, **steps)
            if previous not in (start, current):
                run.drop(previous)
            previous, current = current, following
            omega = 2 / (2 - gamma**2) if number == 1 else 1 / (1 - gamma**2 * omega / 4)
            tick()
    if previous != start:
        run.drop(previous)
    return current


def n_iterations(gamma: float, tol: float = TOLERANCE) -> int:
    """Return the number of iterations that reduce errors by a factor.

    Examples
    --------
    >>> n_iterations(0.7)
    14
    """
    rate = gamma / (1 + math.sqrt(1 - gamma**2))
    return math.ceil(math.log(tol / 2) / math.log(rate))


def step_block(
    task: Task, *, graph: StoredGraph, gamma: float, omega: float, start: str, current: str, previous: str
) -> dict[str, Array]:
    """Make one step of the iteration on the nodes of a block."""
    rows = graph.read(task)
    P = task.read_one(start, OWN)
    before = task.read_one(previous, OWN)
    degrees = rows.degrees.astype(P.dtype)
    walked = rows.weights @ rows.receive(task, current)
    walked *= (gamma / np.where(degrees > 0, degrees, 1))[:, None]
    walked += np.where(degrees > 0, 1 - gamma, 1.0).astype(P.dtype)[:, None] * P  # a node without edges keeps its row
    if omega != 1.0:
        walked = omega * (walked - before) + before
    return rows.share(walked.astype(P.dtype, copy=False))


# --------------------------------------------------------------------------------------- memberships of a partition


def compute_memberships(
    graph: GraphBlocks, labels: str | None, compared: str | None, consensus: float, n_clusters: int
) -> str:
    """Compute the memberships of all rows; return the step that has them in the blocks of the input.

    Its arrays are ``memberships``, ``labels`` and, after a comparison, ``agreement``. ``labels`` is the step with the
    labels of the nodes; None takes those of the nearest sampled rows. ``compared`` is the step with the result of the
    comparison, and ``consensus`` the weight of the labels against the votes.
    """
    cells, run, has_votes = graph.cells, graph.cells.run, compared is not None
    options = {"graph": graph.largest, "n_clusters": n_clusters}
    given = {"labels": labels, "compared": compared, "consensus": float(consensus)}
    run.map(START, start_block, cells.n_blocks, layout=cells.layout, **given, **options)
    n_found = np.count_nonzero(run.total(START, "counts", cells.n_blocks))
    for gamma, with_votes in WALKS:
        start, ends = START, f"walk-{gamma:g}/ends"
        if has_votes and not with_votes:
            start = CERTAIN_START
            run.map(start, certain_block, cells.n_blocks, **options)
        walked = walk(graph, start, gamma, f"walk-{gamma:g}/")
        run.map(ends, end_block, cells.n_blocks, layout=cells.layout, walked=walked, has_votes=has_votes)
        if np.count_nonzero(run.total(ends, "counts", cells.n_blocks)) >= n_found:
            break
    return cells.collect(ends, ("memberships", "labels", *(["agreement"] if has_votes else [])))


def start_block(
    task: Task,
    *,
    layout: Layout,
    graph: StoredGraph,
    labels: str | None,
    compared: str | None,
    consensus: float,
    n_clusters: int,
) -> dict[str, Array]:
    """Return s H + (1-s) V of the nodes of a block."""
    edges = graph.read(task)
    like = np.zeros(0, dtype=edges.weights.dtype)
    own = None if labels is None else task.read_one(labels, OWN).astype(np.int64)
    if compared is None:
        assert own is not None
        return edges.share(one_hot(own, n_clusters, like)) | _counts(own, n_clusters)
    sampled, votes, chosen = task.workspace.read(compared, 0, "sampled", "votes", "of_chosen")
    rows = layout.read_rows(task)
    nearest = nearest_centers(rows, sampled) if rows.shape[0] else np.zeros(0, dtype=np.int64)
    own = chosen[nearest].astype(np.int64) if own is None else own
    shares = consensus * one_hot(own, n_clusters, like) + (1 - consensus) * votes[nearest]
    kept = {"votes": votes[nearest], "labels": own}
    return edges.share(shares.astype(like.dtype)) | kept | _counts(own, n_clusters)


def certain_block(task: Task, *, graph: StoredGraph, n_clusters: int) -> dict[str, Array]:
    """Return H of the nodes of a block."""
    edges, labels = graph.read(task), task.read_one(START, "labels")
    return edges.share(one_hot(labels, n_clusters, np.zeros(0, dtype=edges.weights.dtype)))


def _counts(labels: np.ndarray, n_clusters: int) -> dict[str, Array]:
    return {"counts": np.bincount(labels, minlength=n_clusters)}


def end_block(task: Task, *, layout: Layout, walked: str, has_votes: bool) -> dict[str, Array]:
    """Return memberships, labels and agreement of the nodes of a block, divided by blocks of the input."""
    Q = normalize_row_sums(positive_part(task.read_one(walked, OWN)))
    labels = Q.argmax(axis=1)
    values = {"memberships": Q, "labels": labels.astype(np.int64)}
    if has_votes:
        values["agreement"] = task.read_one(START, "votes")[np.arange(len(labels)), labels]
    return layout.divide_by_origin(values, task.block) | _counts(labels, Q.shape[1])


# ------------------------------------------------------------------------------------------------------ LLGC in blocks


def fit(model: LLGC, X: Any, y: Any, *, constraints: Any = None) -> LLGC:
    """Spread the labels ``y``, an array or a Dask array, over the rows of a Dask array."""
    refuse("LLGC does not take {}", [("constraints", constraints is not None, "leave them out")])
    if y is None:
        raise InputError("LLGC requires y to be passed, but the target y is None", code="labels_required")
    n_undecided = run_steps(model, X, SEED, lambda run: _spread_labels(model, run, X, y), y=y)
    if n_undecided:
        problem = f"no label reaches {n_undecided} row(s), which stay undecided (-1)"
        warn(problem, "label more rows", code="undecided_rows", n_undecided=n_undecided, stacklevel=4)
    return model


def _spread_labels(model: LLGC, run: Run, X: Any, y: Any) -> int:
    """Run the steps and store the results; return the number of rows that no label reaches."""
    alpha, tol = float(model.alpha), float(model.tol)
    rows = RowBlocks.store(run, X)
    store_values(rows, y, "y", check_labels)
    classes, counts = _count_classes(rows)
    graph = build_recipe(rows, model._recipe(), SEED)
    cells = graph.cells
    cells.divide_values("labels", "y")
    run.map(START, labels_block, cells.n_blocks, layout=cells.layout, graph=graph.largest, classes=classes)
    walked = walk(graph, START, alpha, "walk/", tol=tol)
    run.map("spread", scale_block, cells.n_blocks, graph=graph.largest, walked=walked, alpha=alpha)
    mass = run.total("spread", "mass", cells.n_blocks)
    factors = None if model.normalize is None else counts / np.where(mass > 0, mass, 1)
    run.map("ends", classes_block, cells.n_blocks, layout=cells.layout, factors=factors)
    result = cells.collect("ends", ("distributions", "transduction"))

    rows.describe(model)
    numbers, landmarks = draw_sample(cells.rows, SEED)
    model.classes_, model.n_iter_, model.converged_ = classes, n_iterations(alpha, tol), True
    model.label_distributions_ = rows.as_dask(result, "distributions", (len(classes),), np.float64)
    codes = rows.as_dask(result, "transduction", (), np.int64)
    model.transduction_ = codes.map_blocks(_decode, classes=classes, dtype=_decode(np.zeros(0, int), classes).dtype)
    model._keep_rows(landmarks, model._recipe())
    model.graph_ = model._fit_recipe._build(landmarks)
    of_landmarks = select_values(run, "landmarks", result, ("distributions",), numbers, rows.starts)
    model._landmark_distributions = of_landmarks[0]
    return int(run.total("ends", "n_undecided", cells.n_blocks))


def _count_classes(rows: RowBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that occur, and how many rows have each."""
    totals: dict[Any, int] = {}
    for values in rows.run.read_all("y", "values", rows.blocks):
        labels, counts = np.unique(values, return_counts=True)
        for label, count in zip(labels.tolist(), counts.tolist()):
            totals[label] = totals.get(label, 0) + count
    classes = sorted(label for label in totals if label not in {UNKNOWN, str(UNKNOWN)})
    check_any_label([bool(classes)])
    return np.array(classes), np.array([totals[label] for label in classes], dtype=np.float64)


def _decode(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return classes by their numbers; -1 or "-1" where there is none."""
    unknown = UNKNOWN if classes.dtype.kind in "iuf" else str(UNKNOWN)
    return np.append(classes, unknown)[codes]


def check_labels(values: np.ndarray) -> np.ndarray:
    """Return the labels of the rows of a block, numbers or strings."""
    values = mark_unknown(values)
    if values.dtype == object:
        values = np.asarray(values.tolist())
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError("y contains infinity", "use -1 for unknown classes", code="not_finite", parameter="y")
    if values.ndim == 1 and values.dtype.kind in "biufUS":
        return values
    raise InputError("y must have one class for each row, a number or a string", code="wrong_shape", parameter="y")


def labels_block(task: Task, *, layout: Layout, graph: StoredGraph, classes: np.ndarray) -> dict[str, Array]:
    """Return D^-½ Y of the nodes of a block."""
    edges, labels = graph.read(task), layout.read_values(task, "labels")
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    known = classes[places] == labels
    Y = np.zeros((edges.n, len(classes)))
    Y[known, places[known]] = 1
    return edges.share(Y / _roots(edges.degrees))


def _roots(degrees: np.ndarray) -> np.ndarray:
    """Return the square roots of the degrees, 1 for nodes without edges."""
    return np.sqrt(np.where(degrees > 0, degrees, 1))[:, None]


def scale_block(task: Task, *, graph: StoredGraph, walked: str, alpha: float) -> dict[str, Array]:
    """Return F of the nodes of a block, and the mass of each class."""
    degrees = graph.read(task).degrees
    scales = np.where(degrees[:, None] > 0, _roots(degrees) / (1 - alpha), 1)  # a node without edges keeps its row
    F = np.maximum(task.read_one(walked, OWN), 0) * scales
    return {OWN: F, "mass": F.sum(axis=0)}


def classes_block(task: Task, *, layout: Layout, factors: np.ndarray | None) -> dict[str, Array]:
    """Return class probabilities and classes of the nodes of a block, divided by blocks of the input."""
    F = task.read_one("spread", OWN)
    F = normalize_row_sums(F if factors is None else F * factors)
    reached = F.sum(axis=1) > 0
    codes = np.where(reached, F.argmax(axis=1), UNKNOWN)
    divided = layout.divide_by_origin({"distributions": F, "transduction": codes}, task.block)
    return divided | {"n_undecided": np.array(np.count_nonzero(~reached))}
