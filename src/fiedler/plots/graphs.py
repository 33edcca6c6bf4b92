"""Plots of a graph: its edges, and its smallest Laplacian eigenvalues with their widest gap."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int, check_labels
from ..clustering.spectral import RELAXATIONS, SpectralClustering
from ..core.arrays import to_numpy
from ..core.eigen import LaplacianKind, smallest_eigenpairs, widest_gap
from ..core.sparse import to_scipy
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..metrics.scores import labels_to_numpy
from . import style
from .layouts import Layout2D, resolve_layout
from .style import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import LabelsLike, MatrixLike
    from .layouts import LayoutLike

MAX_EDGES = 20_000  # more edges merge into a blot
FADING_EDGES = 1500  # with more edges than this each is fainter
MIN_EIGENVALUES = 10  # drawn by default


@dataclass(eq=False, repr=False)
class GraphDisplay(Display):
    """Edges as lines, stronger for larger weights and in another colour for negative ones; nodes coloured by label.

    Parameters
    ----------
    layout : array of shape (n, 2); coordinates of the nodes
    edges : array of shape (m, 2); pairs of nodes
    weights : array of shape (m,); the weights of the edges
    labels : array of shape (n,), optional; the labels of the nodes
    n_edges : int, optional; the number of edges of the graph, if ``edges`` is a sample of them
    axis_names : pair of str, optional; labels of the axes

    Attributes
    ----------
    lines_ : LineCollection; the edges
    points_ : PathCollection; the nodes
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from fiedler import KNNGraph
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.plots import GraphDisplay
    >>> X, y = two_moons(n_samples=100, noise=0.05, random_state=0)
    >>> graph = KNNGraph(5).build(X)
    >>> display = GraphDisplay.from_graph(graph, X, labels=y)
    >>> len(display.edges) == graph.n_edges
    True
    """

    layout: np.ndarray
    edges: np.ndarray
    weights: np.ndarray
    _: KW_ONLY
    labels: np.ndarray | None = None
    n_edges: int | None = None
    axis_names: tuple[str, str] = ("", "")

    @classmethod
    def from_estimator(
        cls,
        model: BaseEstimator,
        X: MatrixLike | AffinityGraph | None = None,
        layout: LayoutLike = None,
        *,
        max_edges: int = MAX_EDGES,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the graph of a fitted model, with the nodes coloured by its labels if it has labels.

        Parameters
        ----------
        model : fitted estimator with a ``graph_``
        X : array or CSR matrix of shape (n, d), optional; the training rows
        layout : array of shape (n, 2), 'features', 'spectral', 'pca', 'tsne' or None, default=None
            As in :meth:`ClustersDisplay.from_estimator`.
        max_edges : int, default=20000
            If there are more edges, a random sample of this size is drawn.
        ax : matplotlib axes, optional
        **options : parameters of :meth:`plot`
        """
        rows = style.training_rows(model, style.as_rows(X))
        if rows.graph is None:
            raise style.nothing_to_draw(model, "has no graph whose edges can be drawn", code="no_graph")
        n = rows.graph.n_nodes
        if rows.X is not None and rows.X.shape[0] != n:
            raise style.different_rows(rows.X.shape[0], f"the graph has {n} nodes", n)
        return cls._from_layout(rows, resolve_layout(layout, rows, n), max_edges).plot(ax, **options)

    @classmethod
    def from_graph(
        cls,
        graph: AffinityGraph | MatrixLike,
        layout: LayoutLike = None,
        labels: LabelsLike | None = None,
        *,
        max_edges: int = MAX_EDGES,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the edges of a graph or an affinity matrix.

        Parameters
        ----------
        graph : AffinityGraph, or symmetric matrix of shape (n, n)
        layout : array of shape (n, 2), 'spectral', 'tsne' or None, default=None
            Coordinates of the nodes, or how to compute them; None is 'spectral'.
        labels : array of shape (n,), optional; the labels of the nodes
        max_edges, ax
            As in :meth:`from_estimator`.
        **options : parameters of :meth:`plot`
        """
        graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
        n = graph.n_nodes
        labels = None if labels is None else check_labels(labels_to_numpy(labels), n_samples=n)
        rows = style.LabeledRows(labels, graph=graph)
        return cls._from_layout(rows, resolve_layout(layout, rows, n), max_edges).plot(ax, **options)

    @classmethod
    def _from_layout(cls, rows: style.LabeledRows, layout: Layout2D, max_edges: int) -> Self:
        assert rows.graph is not None
        edges, weights = _sample_edges(rows.graph, check_int(max_edges, "max_edges"))
        return cls(
            layout.points, edges, weights, labels=rows.labels, n_edges=rows.graph.n_edges, axis_names=layout.axis_names
        )

    def plot(self, ax: Axes | None = None, *, size: float | None = None) -> Self:
        """Draw the edges and the nodes over them.

        Parameters
        ----------
        ax : matplotlib axes, optional
        size : float, optional; the area of a node, in square points
        """
        self._open(ax)
        from matplotlib.collections import LineCollection
        from matplotlib.colors import to_rgb

        points, weights = np.asarray(self.layout), np.asarray(self.weights)
        strength = np.abs(weights) / max(float(np.abs(weights).max(initial=0)), 1e-300)
        max_opacity = float(np.clip((FADING_EDGES / max(len(strength), 1)) ** 0.5, 0.25, 0.85))
        rgb = np.where(weights[:, None] < 0, to_rgb(style.SECONDARY), to_rgb(style.MIDDLE))
        edge_colors = np.column_stack([rgb, max_opacity * (0.1 + 0.9 * strength)])
        self.lines_ = LineCollection(list(points[self.edges]), linewidths=0.3 + 1.2 * strength, colors=edge_colors)
        self.ax_.add_collection(self.lines_, autolim=False)
        size = float(np.clip(250 / len(points) ** 0.5, 2, 30)) if size is None else size
        node_colors = style.DARK if self.labels is None else style.palette_rgb(style.color_codes(self.labels))
        x, y = points.T
        self.points_ = self.ax_.scatter(x, y, s=size, c=node_colors, linewidths=0, zorder=2)
        style.style_axes(self.ax_, self._title(), *self.axis_names)
        return self

    def _title(self) -> str:
        weights = np.asarray(self.weights)
        n_drawn, n_negative = len(weights), int((weights < 0).sum())
        n_edges = n_drawn if self.n_edges is None else self.n_edges
        title = f"{n_drawn:,} of {n_edges:,} edges" if n_edges > n_drawn else f"{n_drawn:,} edges"
        return title + (f", {n_negative:,} negative" if n_negative else "")


def _sample_edges(graph: AffinityGraph, max_edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Return every edge once, shape (m, 2), and the weights; a random sample if there are more than ``max_edges``."""
    upper = sp.triu(to_scipy(graph.weights), k=1, format="coo")
    edges, weights = np.column_stack([upper.row, upper.col]), upper.data
    if len(weights) > max_edges:
        chosen = np.sort(np.random.RandomState(0).permutation(len(weights))[:max_edges])
        edges, weights = edges[chosen], weights[chosen]
    return edges, weights


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
    """Eigenvalues in ascending order, with a band at the widest gap and a line at the number of clusters.

    Parameters
    ----------
    values : array of shape (m,); eigenvalues in ascending order
    n_clusters : int, optional; the chosen number of clusters

    Attributes
    ----------
    gap : int; the number of values before the widest gap
    points_ : PathCollection; the eigenvalues
    band_ : Polygon or Rectangle
        The gap; None if there is only one value.
    chosen_ : Line2D or None; the line at the number of clusters
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from fiedler.plots import SpectrumDisplay
    >>> SpectrumDisplay.from_values([0.0, 0.01, 0.02, 0.4, 0.5]).gap
    3
    """

    values: np.ndarray
    _: KW_ONLY
    n_clusters: int | None = None

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
        k, graph = style.n_clusters_of(model), getattr(model, "graph_", None)
        n = max(MIN_EIGENVALUES, 2 * (k or 0) + 1) if n is None else check_int(n, "n")
        if isinstance(graph, AffinityGraph):
            matrix = RELAXATIONS[model._fit_cut].matrix if isinstance(model, SpectralClustering) else "symmetric"
            values = _smallest_eigenvalues(graph, n, "symmetric" if matrix == "association" else matrix)
        elif hasattr(model, "eigenvalues_"):
            values = to_numpy(model.eigenvalues_)[:n]
        else:
            lacks = "has neither a graph with edges nor eigenvalues to draw"
            raise style.nothing_to_draw(model, lacks, code="no_graph")
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
        n : int, default=10; the number of eigenvalues
        kind : str, default='symmetric'; the Laplacian, as in :meth:`AffinityGraph.laplacian`
        n_clusters : int, optional; the chosen number of clusters
        ax : matplotlib axes, optional

        Examples
        --------
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
        values, n_clusters
            As in the class.
        ax : matplotlib axes, optional
        """
        array = to_numpy(values)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            problem = f"values must be a list of finite eigenvalues; got shape {array.shape}"
            raise InputError(problem, code="invalid_eigenvalues", parameter="values", shape=array.shape)
        if (np.diff(array) < 0).any():
            problem = "values must be in ascending order"
            raise InputError(problem, "sort them first", code="not_ascending", parameter="values")
        k = None if n_clusters is None else check_int(n_clusters, "n_clusters")
        return cls(array.astype(np.float64), n_clusters=k).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the eigenvalues.

        Parameters
        ----------
        ax : matplotlib axes, optional; new ones by default
        """
        self._open(ax)
        values = np.asarray(self.values)
        ranks = np.arange(1, len(values) + 1)
        self.ax_.plot(ranks, values, color=style.LIGHT, lw=1, zorder=1)
        colors = np.where(ranks <= self.gap, style.PRIMARY, style.MIDDLE)
        self.points_ = self.ax_.scatter(ranks, values, s=24, c=colors.tolist(), zorder=2)
        self.band_: Any = None
        self.chosen_: Any = None
        if len(values) > 1:
            low, high = values[self.gap - 1 : self.gap + 1]
            self.band_ = self.ax_.axhspan(low, high, color=style.PRIMARY, alpha=0.12, lw=0, zorder=0)
        if self.n_clusters is not None and self.n_clusters <= len(values):
            end = self.n_clusters + 0.5
            self.chosen_ = self.ax_.axvline(end, color=style.SECONDARY, lw=1, ls="--", zorder=0)
            self.ax_.annotate(
                f"K = {self.n_clusters}", (end, 0.98), (4, 0), xycoords=self.ax_.get_xaxis_transform(),
                textcoords="offset points", va="top", fontsize=style.SMALL_SIZE, color=style.DARK,
            )  # fmt: skip
        style.use_integer_ticks(self.ax_.xaxis)
        title = "one eigenvalue" if len(values) < 2 else f"widest gap after {self.gap}"
        style.style_axes(self.ax_, title=title, xlabel="number", ylabel="eigenvalue")
        return self


def _smallest_eigenvalues(graph: AffinityGraph, n: int, kind: LaplacianKind) -> np.ndarray:
    """Return the ``n`` smallest eigenvalues, or all if there are fewer; those below zero are rounding errors."""
    pairs = smallest_eigenpairs(graph, min(n, graph.n_nodes), kind=kind, random_state=0)
    return np.maximum(to_numpy(pairs.values), 0)
