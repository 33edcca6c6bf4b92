"""Positions of rows in two dimensions: their two features, spectral coordinates, principal components or t-SNE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, Union

import numpy as np

from .._validation import choose
from ..core.backend import to_numpy
from ..core.pca import fit_pca
from ..embedding.eigenmaps import eigenmap
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from .rows import LabeledRows
from .tsne import embed_tsne

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._typing import Array, RandomState, SupportsShape

LayoutName: TypeAlias = Literal["features", "spectral", "pca", "tsne"]
LayoutLike: TypeAlias = Union["ArrayLike", "SupportsShape", LayoutName, "Layout2D", None]

MAX_SPECTRAL_CLUSTERS = 3  # K clusters need K - 1 spectral coordinates, and two are drawn


class Layout2D(NamedTuple):
    """Points of shape (n, 2), the names of the axes, and a short description of how the points were computed."""

    points: np.ndarray
    axis_names: tuple[str, str] = ("", "")
    description: str = "as given"


def check_points(points: Array, n: int | None = None) -> np.ndarray:
    """Validate points as a finite array of shape (n, 2)."""
    array = to_numpy(points)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf" or n not in (None, len(array)):
        expected = f"({'n' if n is None else n}, 2)"
        raise InputError(
            f"layout must be an array of numbers of shape {expected}, one row per sample; got shape {array.shape}",
            code="wrong_shape",
            parameter="layout",
            shape=array.shape,
        )
    if not np.isfinite(array).all():
        raise InputError(
            "layout contains NaN or infinity",
            "remove those rows or give them coordinates",
            code="not_finite",
            parameter="layout",
        )
    return array.astype(np.float64)


def spectral_layout(graph: AffinityGraph) -> Layout2D:
    """Return the two smoothest functions on the graph besides the constant, with degree-weighted mean square one."""
    scale = float(to_numpy(graph.degrees).sum()) ** 0.5
    return _numbered("spectral coordinate", scale * to_numpy(eigenmap(graph, 2, random_state=0).vectors))


def _features(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    if rows.X is None or rows.X.shape[1] != 2:
        raise _not_available("features", "needs rows X with two features", "try layout='pca' or 'spectral'")
    dense = rows.X.toarray() if hasattr(rows.X, "toarray") else to_numpy(rows.X)
    first, second = rows.feature_names or ("feature 0", "feature 1")
    return Layout2D(check_points(dense), (first, second), "the two features")


def _spectral(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    if rows.graph is None:
        raise _not_available("spectral", "needs a model with a graph on these rows", "try layout='pca'")
    return spectral_layout(rows.graph)


def _pca(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    if rows.X is None or min(rows.X.shape) < 2:
        raise _not_available(
            "pca", "needs rows X with at least two features", "pass layout as an array of shape (n, 2)"
        )
    return _numbered("principal component", to_numpy(fit_pca(rows.X, 2, random_state=0)(rows.X)))


def _tsne(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    if rows.X is None and rows.graph is None:
        raise _not_available("tsne", "needs rows X or a model with a graph", "pass layout as an array of shape (n, 2)")
    X = rows.X if rows.X is None or hasattr(rows.X, "toarray") else to_numpy(rows.X)
    points, description = embed_tsne(X, rows.graph, random_state=random_state)
    return Layout2D(points, ("t-SNE 1", "t-SNE 2"), description)


def _numbered(name: str, points: np.ndarray) -> Layout2D:
    return Layout2D(points, (f"{name} 1", f"{name} 2"), f"{name}s")


def _not_available(layout: str, requirement: str, hint: str) -> InputError:
    return InputError(
        f"layout={layout!r} {requirement}", hint, code="layout_not_available", parameter="layout", value=layout
    )


LAYOUTS: dict[str, Callable[[LabeledRows, RandomState], Layout2D]] = {
    "features": _features,
    "spectral": _spectral,
    "pca": _pca,
    "tsne": _tsne,
}


def default_layout(rows: LabeledRows) -> LayoutName:
    """Choose two features if there are two, spectral for a graph alone or few clusters, and otherwise PCA."""
    if rows.X is None or rows.X.shape[1] == 2:
        return "spectral" if rows.X is None else "features"
    few = rows.labels is None or len(np.unique(rows.labels)) <= MAX_SPECTRAL_CLUSTERS
    return "spectral" if rows.graph is not None and few else "pca"


def resolve_layout(layout: LayoutLike, rows: LabeledRows, n: int, *, random_state: RandomState = 0) -> Layout2D:
    """Return a layout given as points or as a name of `LAYOUTS`; None is :func:`default_layout`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fiedler.plots.rows import LabeledRows
    >>> layout = resolve_layout("tsne", LabeledRows(None, X=load_iris().data), 150)
    >>> layout.points.shape, layout.description
    ((150, 2), 't-SNE of 12 nearest neighbours')
    """
    layout = default_layout(rows) if layout is None else layout
    if isinstance(layout, str):
        layout = choose(LAYOUTS, layout, option="layout")(rows, random_state)
    if not isinstance(layout, Layout2D):
        layout = Layout2D(layout)  # type: ignore[arg-type]
    return layout._replace(points=check_points(layout.points, n))
