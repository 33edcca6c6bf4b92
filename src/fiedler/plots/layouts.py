"""Where rows lie in two dimensions: given coordinates, their two features, spectral coordinates or principal ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._validation import choose
from ..core.backend import to_numpy
from ..core.pca import fit_pca
from ..embedding.eigenmaps import eigenmap
from ..graph.affinity import AffinityGraph
from .fitted import Shown

TOLD_APART = 3  # clusters: K of them need K - 1 spectral coordinates


class Layout2D(NamedTuple):
    """Points (n, 2), what the axes are called, and in a few words how the points were found."""

    points: np.ndarray
    names: tuple[str, str] = ("", "")
    how: str = "as given"


def check_layout(plane: Any, n: int | None = None) -> np.ndarray:
    """Finite coordinates, two a row."""
    points = to_numpy(plane)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "iuf" or n not in (None, len(points)):
        wanted = f"({'n' if n is None else n}, 2)"
        raise ValueError(f"plane must be numbers of shape {wanted}, two a row; got shape {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("plane holds NaN or infinity; remove those rows or give them a place")
    return points.astype(np.float64)


def spectral(graph: AffinityGraph) -> Layout2D:
    """The two smoothest functions on the graph beside the constant, at mean square one by degrees."""
    height = float(to_numpy(graph.degrees).sum()) ** 0.5
    return _numbered("spectral coordinate", height * to_numpy(eigenmap(graph, 2, random_state=0).vectors))


def _of_graph(rows: Shown) -> Layout2D:
    if rows.graph is None:
        raise ValueError("plane='spectral' needs a model with a graph on these rows; try plane='pca'")
    return spectral(rows.graph)


def _of_features(rows: Shown) -> Layout2D:
    if rows.rows is None or rows.rows.shape[1] != 2:
        raise ValueError("plane='features' needs rows X of two features; try plane='pca' or 'spectral'")
    dense = rows.rows.toarray() if hasattr(rows.rows, "toarray") else to_numpy(rows.rows)
    first, second = rows.feature_names or ("feature 0", "feature 1")
    return Layout2D(check_layout(dense), (first, second), "the two features")


def _of_components(rows: Shown) -> Layout2D:
    if rows.rows is None or min(rows.rows.shape) < 2:
        raise ValueError("plane='pca' needs rows X of at least two features; give plane as an array of shape (n, 2)")
    return _numbered("principal component", to_numpy(fit_pca(rows.rows, 2, random_state=0)(rows.rows)))


def _numbered(name: str, points: np.ndarray) -> Layout2D:
    return Layout2D(points, (f"{name} 1", f"{name} 2"), f"{name}s")


LAYOUTS = {"features": _of_features, "spectral": _of_graph, "pca": _of_components}


def _suitable(rows: Shown) -> str:
    """Features if they are two; spectral for a bare graph and few clusters; components for the rest."""
    if rows.rows is None or rows.rows.shape[1] == 2:
        return "spectral" if rows.rows is None else "features"
    few = rows.labels is not None and len(np.unique(rows.labels)) <= TOLD_APART
    return "spectral" if rows.graph is not None and (few or rows.labels is None) else "pca"


def resolve_layout(plane: Any, rows: Shown, n: int) -> Layout2D:
    """Coordinates as given, by a name of `LAYOUTS`, or (None) by the one that suits."""
    plane = _suitable(rows) if plane is None else plane
    if isinstance(plane, str):
        plane = choose(LAYOUTS, plane, option="plane")(rows)
    plane = plane if isinstance(plane, Layout2D) else Layout2D(plane)
    return Layout2D(check_layout(plane.points, n), plane.names, plane.how)
