"""What every estimator with a ``graph`` parameter shares."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone, is_clusterer
from sklearn.utils import Tags

from .._validation import check_data
from ..core.backend import Array, convert_like
from ..core.progress import ProgressMixin
from .affinity import AffinityGraph
from .labels import as_column, known_labels
from .out_of_sample import link_weights, nystrom
from .pairs import add_links
from .recipes import KNNGraph, as_affinity, is_pairwise, learns_from_pairs


class GraphEstimatorMixin(ProgressMixin):
    """A ``graph`` parameter: None for the default recipe, a recipe, a graph, a matrix, or "precomputed".

    ``set_params(graph__n_neighbors=5)`` works from the default as well: it makes the recipe first.
    """

    graph: Any
    graph_: Any
    _minds_components = True  # whether a graph that falls apart is worth a warning
    _fit_X: Array | None
    _fit_recipe: Any

    def _recipe(self) -> Any:
        """The graph parameter with its default filled in."""
        return KNNGraph() if self.graph is None else self.graph

    def _graph_is_default(self) -> bool:
        return self.graph is None

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the graph recipe as ``graph__<name>``."""
        if self._graph_is_default() and "graph" not in params and any(name.startswith("graph__") for name in params):
            self.graph = self._recipe()
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self.graph)
        return tags

    @contextmanager
    def _restore_on_failure(self) -> Iterator[None]:
        """A fit that fails leaves the model as it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _build_graph(self, X: Any, y: Any = None, constraints: Any = None) -> AffinityGraph:
        """The graph on ``X``, or ``X`` itself if it is one; keeps what new points need, warns if it falls apart.

        Pairs become edges of either sign, unless the recipe has learnt from them already.
        """
        self._fit_recipe, self._fit_X = self._recipe(), None
        if isinstance(X, AffinityGraph):
            graph = X
            self.n_features_in_ = X.n_nodes
        else:
            X = check_data(X, estimator=self, min_samples=2)
            graph = as_affinity(self._fit_recipe, X, self._labels_for(self._fit_recipe, y), constraints)
            self._fit_X = None if is_pairwise(self._fit_recipe) else X
        if hasattr(self._fit_recipe, "build"):
            self._fit_recipe = clone(self._fit_recipe)  # a later set_params is for the next fit
        if constraints is not None and (graph is X or not learns_from_pairs(self._fit_recipe)):
            graph = add_links(graph, constraints)
        if self._minds_components:
            warn_if_disconnected(graph)
        return graph

    def _labels_for(self, recipe: Any, y: Any) -> Any:
        """What a recipe may see of ``y``: a clusterer's learns from partial labels only.

        Searches and pipelines hand true labels to every estimator, and a clusterer must not look at them.
        """
        if y is None or not (is_clusterer(self) and learns_from_pairs(recipe)):
            return y
        known, _ = known_labels(as_column(y), len(y))
        return None if known.all() else y

    def _check_new_points(self, X: Any) -> Array:
        """New points, brought to where the training rows are."""
        if self._fit_X is None:
            raise ValueError("the model was fitted on a graph, not on points, so new points have no place; fit on data")
        return convert_like(check_data(X, estimator=self, reset=False), self._fit_X)

    def _links_to(self, X: Any, F: Array) -> tuple[Any, Array]:
        """The weights from new points to the nodes, beside ``F``, a row a node; and the points."""
        X = self._check_new_points(X)
        return link_weights(F, self._fit_recipe, X, self._fit_X, self.graph_), X

    def _nystrom(self, X: Any, F: Array, values: Array, kind: str) -> Array:
        """Eigenvectors at new points."""
        X = self._check_new_points(X)
        return nystrom(F, values, kind, recipe=self._fit_recipe, X_new=X, X=self._fit_X, graph=self.graph_)


def warn_if_disconnected(graph: AffinityGraph) -> None:
    """Say that the graph has several components, and what to do about it."""
    n_components, labels = graph.components()
    if n_components == 1:
        return
    sizes = np.bincount(labels)
    shown = ", ".join(str(size) for size in sizes[:5]) + (", ..." if n_components > 5 else "")
    warnings.warn(
        f"the graph has {n_components} connected components (sizes {shown}): each carries its own zero eigenvalue, and "
        "clusters cannot reach across. If that is not meant, use more neighbours, or join the components with "
        "KNNGraph(connect='mst') or graph.connect(X)",
        UserWarning,
        stacklevel=4,
    )
