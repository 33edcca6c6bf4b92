"""The smallest Laplacian eigenvalues of a graph and their widest gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int
from ..clustering.spectral import RELAXATIONS, SpectralClustering
from ..core.backend import to_numpy
from ..core.eigen import LaplacianKind, smallest_eigenpairs
from ..core.spectrum import widest_gap
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from .rows import n_clusters_of
from .style import (
    DARK,
    LIGHT,
    MIDDLE,
    PRIMARY,
    SECONDARY,
    SMALL_SIZE,
    get_axes,
    style_axes,
    use_integer_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import MatrixLike

MIN_EIGENVALUES = 10  # drawn by default


class SpectrumDisplay:
    """Eigenvalues in ascending order, with a band at the widest gap and a line at the number of clusters.

    Parameters
    ----------
    values : array of shape (m,)
        Eigenvalues in ascending order.
    n_clusters : int, optional
        The chosen number of clusters.

    Attributes
    ----------
    gap : int
        The number of values before the widest gap.
    points_ : PathCollection
        The eigenvalues.
    band_ : Polygon or Rectangle
        The gap; None if there is only one value.
    chosen_ : Line2D or None
        The line at the number of clusters.
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from fiedler.plots import SpectrumDisplay
    >>> SpectrumDisplay.from_values([0.0, 0.01, 0.02, 0.4, 0.5]).gap
    3
    """

    def __init__(self, values: np.ndarray, *, n_clusters: int | None = None) -> None:
        self.values = values
        self.n_clusters = n_clusters

    @property
    def gap(self) -> int:
        """The number of values before the widest gap."""
        return widest_gap(np.asarray(self.values))

    @classmethod
    def from_estimator(cls, model: BaseEstimator, n: int | None = None, *, ax: Axes | None = None) -> Self:
        """Draw the spectrum of the graph that a model was fitted on.

        Parameters
        ----------
        model : fitted estimator
            With a ``graph_``, or otherwise with ``eigenvalues_``. The graph comes first, because models store only the
            eigenvalues that they use, without those after the gap. The Laplacian is the one that the model uses, and
            the symmetric one if it uses none.
        n : int, optional
            The number of eigenvalues; by default twice the number of clusters plus one, at least 10.
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        k, graph = n_clusters_of(model), getattr(model, "graph_", None)
        n = max(MIN_EIGENVALUES, 2 * (k or 0) + 1) if n is None else check_int(n, "n")
        if isinstance(graph, AffinityGraph):
            matrix = RELAXATIONS[model._fit_cut].matrix if isinstance(model, SpectralClustering) else "symmetric"
            values = _smallest_eigenvalues(graph, n, "symmetric" if matrix == "association" else matrix)
        elif hasattr(model, "eigenvalues_"):
            values = to_numpy(model.eigenvalues_)[:n]
        else:
            name = type(model).__name__
            raise InputError(
                f"{name} has neither a graph with edges nor eigenvalues to draw", code="no_graph", estimator=name
            )
        return cls.from_values(values, n_clusters=k, ax=ax)

    @classmethod
    def from_graph(
        cls,
        graph: AffinityGraph | MatrixLike,
        n: int = MIN_EIGENVALUES,
        *,
        kind: LaplacianKind = "symmetric",
        n_clusters: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the smallest Laplacian eigenvalues of a graph or an affinity matrix.

        Parameters
        ----------
        graph : AffinityGraph, or symmetric matrix of shape (n_nodes, n_nodes)
        n : int, default=10
            The number of eigenvalues.
        kind : str, default='symmetric'
            The Laplacian, as in :meth:`AffinityGraph.laplacian`.
        n_clusters : int, optional
            The chosen number of clusters.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.plots import SpectrumDisplay
        >>> two_pairs = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
        >>> SpectrumDisplay.from_graph(two_pairs, 3).gap
        2
        """
        graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
        return cls.from_values(_smallest_eigenvalues(graph, check_int(n, "n"), kind), n_clusters=n_clusters, ax=ax)

    @classmethod
    def from_values(cls, values: ArrayLike, *, n_clusters: int | None = None, ax: Axes | None = None) -> Self:
        """Draw given eigenvalues.

        Parameters
        ----------
        values : array of shape (m,)
            Ascending.
        n_clusters : int, optional
            The chosen number of clusters.
        ax : matplotlib axes, optional
        """
        array = to_numpy(values)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise InputError(
                f"values must be a list of finite eigenvalues; got shape {array.shape}",
                code="invalid_eigenvalues",
                parameter="values",
                shape=array.shape,
            )
        if (np.diff(array) < 0).any():
            raise InputError(
                "values must be in ascending order", "sort them first", code="not_ascending", parameter="values"
            )
        k = None if n_clusters is None else check_int(n_clusters, "n_clusters")
        return cls(array.astype(np.float64), n_clusters=k).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the eigenvalues.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = get_axes(ax)
        values = np.asarray(self.values)
        ranks = np.arange(1, len(values) + 1)
        self.ax_.plot(ranks, values, color=LIGHT, lw=1, zorder=1)
        colors = np.where(ranks <= self.gap, PRIMARY, MIDDLE)
        self.points_ = self.ax_.scatter(ranks, values, s=24, c=colors.tolist(), zorder=2)
        self.band_ = self._draw_gap(values)
        self.chosen_ = self._draw_n_clusters(values)
        use_integer_ticks(self.ax_.xaxis)
        title = "one eigenvalue" if len(values) < 2 else f"widest gap after {self.gap}"
        style_axes(self.ax_, title=title, xlabel="number", ylabel="eigenvalue")
        return self

    def _draw_gap(self, values: np.ndarray) -> Any:
        """Shade the widest gap, from one value to the next."""
        if len(values) < 2:
            return None
        return self.ax_.axhspan(values[self.gap - 1], values[self.gap], color=PRIMARY, alpha=0.12, lw=0, zorder=0)

    def _draw_n_clusters(self, values: np.ndarray) -> Any:
        """Draw a line after as many eigenvalues as there are clusters."""
        if self.n_clusters is None or self.n_clusters > len(values):
            return None
        line = self.ax_.axvline(self.n_clusters + 0.5, color=SECONDARY, lw=1, ls="--", zorder=0)
        self.ax_.annotate(
            f"K = {self.n_clusters}", (self.n_clusters + 0.5, 0.98), (4, 0), xycoords=self.ax_.get_xaxis_transform(),
            textcoords="offset points", va="top", fontsize=SMALL_SIZE, color=DARK,
        )  # fmt: skip
        return line


def _smallest_eigenvalues(graph: AffinityGraph, n: int, kind: LaplacianKind) -> np.ndarray:
    """Return the ``n`` smallest eigenvalues, or all if there are fewer; those below zero are rounding errors."""
    pairs = smallest_eigenpairs(graph, min(n, graph.n_nodes), kind=kind, random_state=0)
    return np.maximum(to_numpy(pairs.values), 0)
