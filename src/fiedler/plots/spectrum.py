"""The smallest eigenvalues of a graph and where they jump."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int
from ..clustering.spectral import CUTS, SpectralClustering
from ..core.backend import to_numpy
from ..core.eigen import LaplacianKind, smallest_eigenpairs, widest_gap
from ..graph.affinity import AffinityGraph
from .fitted import n_clusters as number_of
from .style import DARK, LIGHT, MAIN, MIDDLE, OTHER, SMALL, Axes, canvas, quiet, whole_numbers

FEWEST = 10  # eigenvalues, by default


class SpectrumDisplay:
    """Ascending eigenvalues; the widest gap between two of them is a band, the number of clusters a line.

    Parameters
    ----------
    values : array of shape (m,)
        Ascending.
    n_clusters : int, optional
        The number of clusters that was chosen.

    Attributes
    ----------
    gap : int
        How many values come before the widest gap.
    points_ : PathCollection
    band_ : Polygon or Rectangle
        The gap; None if there is one value only.
    chosen_ : Line2D or None
    ax_, figure_

    Examples
    --------
    >>> from fiedler.plots import SpectrumDisplay
    >>> SpectrumDisplay.from_values([0.0, 0.01, 0.02, 0.4, 0.5]).gap
    3
    """

    def __init__(self, values: Any, *, n_clusters: int | None = None) -> None:
        self.values = values
        self.n_clusters = n_clusters

    @property
    def gap(self) -> int:
        """How many values come before the widest gap."""
        return widest_gap(np.asarray(self.values))

    @classmethod
    def from_estimator(cls, model: Any, n: int | None = None, *, ax: Axes = None) -> SpectrumDisplay:
        """The spectrum of the graph that a model was fitted on.

        Parameters
        ----------
        model : fitted estimator
            With a ``graph_``, or else with ``eigenvalues_``. The graph comes first: models keep no more values than
            they use, and the gap after these is what one looks for.
        n : int, optional
            How many eigenvalues; default twice the number of clusters and one more, at least 10.
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        k, graph = number_of(model), getattr(model, "graph_", None)
        n = max(FEWEST, 2 * (k or 0) + 1) if n is None else check_int(n, "n")
        if isinstance(graph, AffinityGraph):
            kind = CUTS[model.cut].kind if isinstance(model, SpectralClustering) else "symmetric"
            values = _smallest(graph, n, kind)
        elif hasattr(model, "eigenvalues_"):
            values = to_numpy(model.eigenvalues_)[:n]
        else:
            raise ValueError(f"{type(model).__name__} has neither a graph of single edges nor eigenvalues to draw")
        return cls.from_values(values, n_clusters=k, ax=ax)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        n: int = FEWEST,
        *,
        kind: LaplacianKind = "symmetric",
        n_clusters: int | None = None,
        ax: Axes = None,
    ) -> SpectrumDisplay:
        """The smallest eigenvalues of a Laplacian of a graph or an affinity matrix.

        Parameters
        ----------
        graph : AffinityGraph, or symmetric matrix of shape (n_nodes, n_nodes)
        n : int, default=10
            How many eigenvalues.
        kind : str, default='symmetric'
            As in :meth:`AffinityGraph.laplacian`.
        n_clusters : int, optional
            The number of clusters that was chosen.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.plots import SpectrumDisplay
        >>> two_pairs = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
        >>> SpectrumDisplay.from_graph(two_pairs, 3).gap
        2
        """
        graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
        return cls.from_values(_smallest(graph, check_int(n, "n"), kind), n_clusters=n_clusters, ax=ax)

    @classmethod
    def from_values(cls, values: Any, *, n_clusters: int | None = None, ax: Axes = None) -> SpectrumDisplay:
        """Eigenvalues that are known.

        Parameters
        ----------
        values : array of shape (m,)
            Ascending.
        n_clusters : int, optional
            The number of clusters that was chosen.
        ax : matplotlib axes, optional
        """
        values = to_numpy(values)
        if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"values must be a list of finite eigenvalues; got shape {values.shape}")
        if (np.diff(values) < 0).any():
            raise ValueError("values must ascend; sort them first")
        k = None if n_clusters is None else check_int(n_clusters, "n_clusters")
        return cls(values.astype(np.float64), n_clusters=k).plot(ax)

    def plot(self, ax: Axes = None) -> SpectrumDisplay:
        """Draw the eigenvalues.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = canvas(ax)
        values = np.asarray(self.values)
        places = np.arange(1, len(values) + 1)
        self.ax_.plot(places, values, color=LIGHT, lw=1, zorder=1)
        below = np.where(places <= self.gap, MAIN, MIDDLE)
        self.points_ = self.ax_.scatter(places, values, s=24, c=below.tolist(), zorder=2)
        self.band_ = self._band(values)
        self.chosen_ = self._line(values)
        whole_numbers(self.ax_.xaxis)
        quiet(self.ax_, title=self._title(), xlabel="number", ylabel="eigenvalue")
        return self

    def _band(self, values: np.ndarray) -> Any:
        """The widest gap, from one value to the next."""
        if len(values) < 2:
            return None
        return self.ax_.axhspan(values[self.gap - 1], values[self.gap], color=MAIN, alpha=0.12, lw=0, zorder=0)

    def _line(self, values: np.ndarray) -> Any:
        """Between the eigenvalues of the chosen clusters and the others."""
        if self.n_clusters is None or self.n_clusters > len(values):
            return None
        line = self.ax_.axvline(self.n_clusters + 0.5, color=OTHER, lw=1, ls="--", zorder=0)
        self.ax_.annotate(
            f"K = {self.n_clusters}", (self.n_clusters + 0.5, 0.98), (4, 0), xycoords=self.ax_.get_xaxis_transform(),
            textcoords="offset points", va="top", fontsize=SMALL, color=DARK,
        )  # fmt: skip
        return line

    def _title(self) -> str:
        return "one eigenvalue" if len(self.values) < 2 else f"widest gap after {self.gap}"


def _smallest(graph: AffinityGraph, n: int, kind: LaplacianKind) -> np.ndarray:
    """The smallest eigenvalues, as many as there are; those below zero are rounding."""
    found = smallest_eigenpairs(graph, min(n, graph.n_nodes), kind=kind, random_state=0)
    return np.maximum(to_numpy(found.values), 0)
