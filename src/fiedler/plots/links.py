"""The edges of a graph over a plane."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import check_int, check_labels
from ..core.sparse import to_scipy
from ..graph.affinity import AffinityGraph
from ..metrics.matching import on_host
from .fitted import Shown, as_rows, kept
from .layouts import Layout2D, resolve_layout
from .style import DARK, MIDDLE, OTHER, Axes, canvas, codes, colours, quiet

MANY = 20_000  # edges: more are a blot
CROWD = 1500  # edges from which each is fainter


class GraphDisplay:
    """Edges as lines, the heavier the stronger, negative ones in another colour; nodes coloured by label.

    Parameters
    ----------
    plane : array of shape (n, 2)
    edges : array of shape (m, 2)
        Pairs of nodes.
    weights : array of shape (m,)
    labels : array of shape (n,), optional
    n_edges : int, optional
        Of the whole graph, where ``edges`` are a sample of them.
    axis_names : pair of str, optional

    Attributes
    ----------
    lines_ : LineCollection
    points_ : PathCollection
    ax_, figure_

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

    def __init__(
        self,
        plane: Any,
        edges: Any,
        weights: Any,
        *,
        labels: Any = None,
        n_edges: int | None = None,
        axis_names: tuple[str, str] = ("", ""),
    ) -> None:
        self.plane = plane
        self.edges = edges
        self.weights = weights
        self.labels = labels
        self.n_edges = n_edges
        self.axis_names = axis_names

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, plane: Any = None, *, max_edges: int = MANY, ax: Axes = None, **options: Any
    ) -> GraphDisplay:
        """The graph of a fitted model, its nodes coloured by its labels where it has some.

        Parameters
        ----------
        model : fitted estimator with a ``graph_``
        X : array or CSR matrix of shape (n, d), optional
            The rows of the fit.
        plane : array of shape (n, 2), 'features', 'spectral', 'pca' or None, default=None
            As in :meth:`ClustersDisplay.from_estimator`.
        max_edges : int, default=20000
            A random sample of so many is drawn where there are more.
        ax : matplotlib axes, optional
        **options
            Of :meth:`plot`.
        """
        rows = kept(model, as_rows(X))
        if rows.graph is None:
            raise ValueError(f"{type(model).__name__} has no graph of single edges to draw")
        n = rows.graph.n_nodes
        if rows.rows is not None and rows.rows.shape[0] != n:
            raise ValueError(f"X has {rows.rows.shape[0]} rows, but the graph has {n} nodes; pass the rows of the fit")
        return cls._of(rows, resolve_layout(plane, rows, n), max_edges).plot(ax, **options)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        plane: Any = None,
        labels: Any = None,
        *,
        max_edges: int = MANY,
        ax: Axes = None,
        **options: Any,
    ) -> GraphDisplay:
        """The edges of a graph or of an affinity matrix.

        Parameters
        ----------
        graph : AffinityGraph, or symmetric matrix of shape (n, n)
        plane : array of shape (n, 2), 'spectral' or None, default=None
            None is spectral.
        labels : array of shape (n,), optional
        max_edges : int, default=20000
            A random sample of so many is drawn where there are more.
        ax : matplotlib axes, optional
        **options
            Of :meth:`plot`.
        """
        graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
        rows = Shown(labels, graph=graph)
        return cls._of(rows, resolve_layout(plane, rows, graph.n_nodes), max_edges).plot(ax, **options)

    @classmethod
    def _of(cls, rows: Shown, plane: Layout2D, max_edges: int) -> GraphDisplay:
        assert rows.graph is not None
        n = rows.graph.n_nodes
        labels = None if rows.labels is None else check_labels(on_host(rows.labels), n_samples=n)
        edges, weights = _sample(rows.graph, check_int(max_edges, "max_edges"))
        return cls(
            plane.points, edges, weights, labels=labels, n_edges=rows.graph.n_edges, axis_names=plane.names
        )  # fmt: skip

    def plot(self, ax: Axes = None, *, size: float | None = None) -> GraphDisplay:
        """Draw the edges and the nodes over them.

        Parameters
        ----------
        ax : matplotlib axes, optional
        size : float, optional
            The area of a node, in square points.
        """
        self.ax_, self.figure_ = canvas(ax)
        from matplotlib.collections import LineCollection

        plane, weights = np.asarray(self.plane), np.asarray(self.weights)
        strength = np.abs(weights) / max(float(np.abs(weights).max(initial=0)), 1e-300)
        self.lines_ = LineCollection(plane[self.edges], linewidths=0.3 + 1.2 * strength, colors=self._shades(strength))
        self.ax_.add_collection(self.lines_, autolim=False)
        size = float(np.clip(250 / len(plane) ** 0.5, 2, 30)) if size is None else size
        faces = DARK if self.labels is None else colours(codes(self.labels))
        self.points_ = self.ax_.scatter(*plane.T, s=size, c=faces, linewidths=0, zorder=2)
        x, y = self.axis_names
        quiet(self.ax_, title=self._title(), xlabel=x, ylabel=y)
        return self

    def _shades(self, strength: np.ndarray) -> np.ndarray:
        """Colour by sign and opacity by weight, (m, 4)."""
        from matplotlib.colors import to_rgb

        negative = np.asarray(self.weights) < 0
        most = float(np.clip((CROWD / max(len(strength), 1)) ** 0.5, 0.25, 0.85))
        shade = np.where(negative[:, None], to_rgb(OTHER), to_rgb(MIDDLE))
        return np.column_stack([shade, most * (0.1 + 0.9 * strength)])

    def _title(self) -> str:
        drawn, negative = len(self.weights), int((np.asarray(self.weights) < 0).sum())
        whole = drawn if self.n_edges is None else self.n_edges
        title = f"{drawn:,} of {whole:,} edges" if whole > drawn else f"{drawn:,} edges"
        return title + (f", {negative:,} negative" if negative else "")


def _sample(graph: AffinityGraph, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges (m, 2) and their weights, each once; drawn at random where there are more than ``most``."""
    upper = sp.triu(to_scipy(graph.weights), k=1, format="coo")
    edges, weights = np.column_stack([upper.row, upper.col]), upper.data
    if len(weights) > most:
        chosen = np.sort(np.random.RandomState(0).permutation(len(weights))[:most])
        edges, weights = edges[chosen], weights[chosen]
    return edges, weights
