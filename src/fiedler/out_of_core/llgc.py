"""LLGC on a Dask array: labels spread over a graph in blocks.

F = (I - αS)⁻¹ Y with S = D^-½WD^-½ is the resolvent of :mod:`.walk` between two scalings: a walk from D^-½ Y with the
probability α of every step. It ends when errors are ``tol`` times the largest entry; unlike in memory, rows so far from
all labels that F is smaller than that are not solved for again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import Array, normalize_row_sums
from ..errors import InputError, warn
from ..graph.labels import UNKNOWN
from ..supervision.llgc import LLGC, check_any_label
from .graph import OWN, BlockGraph, GraphBlocks, n_iterations, walk
from .memberships import collect_block
from .neighbor_graph import build_recipe, draw_sample
from .partition import Layout, RowBlocks, select_values, store_values
from .run import Run, describe, run_steps, token
from .store import Sliced, Workspace

SEED = 0  # LLGC has no random state


def fit(model: LLGC, X: Any, y: Any, *, constraints: Any = None) -> LLGC:
    """Spread the labels ``y``, an array or a Dask array, over the rows of a Dask array."""
    if constraints is not None:
        raise InputError("LLGC does not take constraints with Dask arrays", "leave them out", code="not_out_of_core")
    if y is None:
        raise InputError("LLGC requires y to be passed, but the target y is None", code="labels_required")
    about = describe(model, X, SEED) | {"y": token(y)}
    n_undecided = run_steps(about, lambda run: _Fit(model, run).fit(X, y))
    if n_undecided:
        warn(
            f"no label reaches {n_undecided} row(s), which stay undecided (-1)",
            "label more rows",
            code="undecided_rows",
            n_undecided=n_undecided,
            stacklevel=4,
        )
    return model


@dataclass(eq=False)
class _Fit:
    """The fit of a model, step by step."""

    model: LLGC
    run: Run

    def fit(self, X: Any, y: Any) -> int:
        """Run the steps and store the results; return the number of rows that no label reaches."""
        model, run = self.model, self.run
        alpha, tol = float(model.alpha), float(model.tol)
        rows = RowBlocks.store(run, X)
        store_values(rows, y, "y", check_labels)
        classes, counts = self._classes(rows)
        graph = build_recipe(rows, model._recipe(), SEED)
        cells = graph.cells
        run.map("labels", divide_labels, rows.blocks, layout=cells.layout, classes=classes)
        options = {"layout": cells.layout, "graph": graph.step, "size": graph.sizes[-1]}
        run.map("start", start_block, cells.n_blocks, n_classes=len(classes), **options)
        step = walk(graph, "start", alpha, "walk/", tol=tol)
        run.map("spread", scale_block, cells.n_blocks, walked=step, alpha=alpha, **options)
        mass = run.total("spread", "mass", cells.n_blocks)
        factors = None if model.normalize is None else counts / np.where(mass > 0, mass, 1)
        run.map("ends", end_block, cells.n_blocks, layout=cells.layout, factors=factors)
        names = ("distributions", "transduction")
        run.map("result", collect_block, rows.blocks, layout=cells.layout, ends="ends", names=names)
        return self._store(rows, graph, classes, alpha, tol)

    def _classes(self, rows: RowBlocks) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes that occur, and how many rows have each."""
        found: dict[Any, int] = {}
        for block in rows.blocks:
            labels, counts = np.unique(self.run.workspace.read_one("y", block, "values"), return_counts=True)
            for label, count in zip(labels.tolist(), counts.tolist()):
                found[label] = found.get(label, 0) + count
        unknown = {UNKNOWN, str(UNKNOWN)}
        classes = sorted(label for label in found if label not in unknown)
        check_any_label([bool(classes)])
        return np.array(classes), np.array([found[label] for label in classes], dtype=np.float64)

    def _store(self, rows: RowBlocks, graph: GraphBlocks, classes: np.ndarray, alpha: float, tol: float) -> int:
        model = self.model
        numbers, landmarks = draw_sample(graph.cells.rows, SEED)
        model.classes_, model.n_features_in_ = classes, rows.n_features
        model.__dict__.pop("feature_names_in_", None)
        model.n_iter_, model.converged_ = n_iterations(alpha, tol), True
        model.label_distributions_ = rows.as_dask("result", "distributions", (len(classes),), np.float64)
        codes = rows.as_dask("result", "transduction", (), np.int64)
        model.transduction_ = codes.map_blocks(_decode, classes=classes, dtype=_decode(np.zeros(0, int), classes).dtype)
        model._fit_X, model._fit_recipe = landmarks, model._recipe()
        model.graph_ = model._fit_recipe._build(landmarks)
        model._landmark_distributions = select_values(
            self.run, "landmarks", "result", ("distributions",), numbers, rows.starts
        )[0]
        return int(self.run.total("ends", "n_undecided", graph.cells.n_blocks))


def _decode(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return classes by their numbers; -1 or "-1" where there is none."""
    unknown = UNKNOWN if classes.dtype.kind in "iuf" else str(UNKNOWN)
    return np.append(classes, unknown)[codes]


def check_labels(values: np.ndarray) -> np.ndarray:
    """Return the labels of the rows of a block, numbers or strings."""
    if values.dtype == object:
        values = np.asarray(values.tolist())
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError("y contains NaN or infinity", "use -1 for unknown classes", code="not_finite", parameter="y")
    if values.ndim == 1 and values.dtype.kind in "biufUS":
        return values
    raise InputError("y must have one class for each row, a number or a string", code="wrong_shape", parameter="y")


def divide_labels(workspace: Workspace, block: int, *, layout: Layout, classes: np.ndarray) -> dict[str, Sliced]:
    """Number the labels of the rows of a block of the input, and divide them by the home of the rows."""
    values, home = workspace.read_one("y", block, "values"), workspace.read_one(layout.step, block, "home")
    places = np.minimum(np.searchsorted(classes, values), len(classes) - 1)
    codes = np.where(classes[places] == values, places, UNKNOWN).astype(np.int32)
    return {"codes": Sliced.sorted_by(codes, home, layout.n_blocks)}


def start_block(
    workspace: Workspace, block: int, *, layout: Layout, graph: str, size: int, n_classes: int
) -> dict[str, Array]:
    """Return D^-½ Y of the nodes of a block."""
    edges = BlockGraph.read(workspace, graph, block, size)
    codes = np.concatenate([workspace.read_part("labels", origin, "codes", block) for origin in layout.origins])
    Y = np.zeros((edges.n, n_classes))
    Y[codes != UNKNOWN, codes[codes != UNKNOWN]] = 1
    return edges.share(Y / _roots(edges))


def _roots(edges: BlockGraph) -> np.ndarray:
    """Return the square roots of the degrees, 1 for nodes without edges."""
    return np.sqrt(np.where(edges.degrees > 0, edges.degrees, 1))[:, None]


def scale_block(
    workspace: Workspace, block: int, *, layout: Layout, graph: str, size: int, walked: str, alpha: float
) -> dict[str, Array]:
    """Return F of the nodes of a block, and the mass of each class."""
    edges = BlockGraph.read(workspace, graph, block, size)
    joined = edges.degrees[:, None] > 0  # a node without edges keeps its row
    F = np.maximum(workspace.read_one(walked, block, OWN), 0) * np.where(joined, _roots(edges) / (1 - alpha), 1)
    return {OWN: F, "mass": F.sum(axis=0)}


def end_block(workspace: Workspace, block: int, *, layout: Layout, factors: np.ndarray | None) -> dict[str, Array]:
    """Return class probabilities and classes of the nodes of a block, divided by blocks of the input."""
    F = workspace.read_one("spread", block, OWN)
    F = normalize_row_sums(F if factors is None else F * factors)
    reached = F.sum(axis=1) > 0
    codes = np.where(reached, F.argmax(axis=1), UNKNOWN)
    divided = layout.divide_by_origin({"distributions": F, "transduction": codes}, block)
    return divided | {"n_undecided": np.array(np.count_nonzero(~reached))}
