"""Mixins of estimators: `GraphEstimatorMixin` for a ``graph`` parameter, `ClustererMixin` for those that predict.

`SoftClustererMixin` is for those with memberships.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, is_clusterer
from sklearn.utils import Tags

from .._typing import LabelsLike, MatrixLike
from .._validation import check_data
from ..core.arrays import Array, convert_rows, to_numpy
from ..core.fitting import ProgressMixin, is_dask_array
from ..core.sparse import Sparse
from ..errors import InputError, warn
from .affinity import AffinityGraph
from .community import modularity
from .constraints import PairwiseConstraints, add_constraints
from .labels import as_column, known_labels
from .recipes import KNNGraph, as_affinity, build_affinity, default_recipe, is_precomputed, learns_from_constraints
from .smoothing import link_weights, nystrom

MAX_SIZES_SHOWN = 5  # sizes of components listed in a warning


class GraphEstimatorMixin(ProgressMixin):
    """Mixin for a ``graph`` parameter: None for the default recipe, a recipe, a graph, a matrix, or "precomputed".

    ``set_params(graph__n_neighbors=5)`` also works if ``graph`` is None: the default recipe is then created first.
    """

    graph: Any  # GraphLike, and names of default graphs
    graph_: Any
    _warns_if_disconnected = True  # whether a disconnected graph is worth a warning
    _fit_X: Array | None
    _fit_recipe: Any

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: Dask arrays with a value per row are left out, as in model files."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if not (name.endswith("_") and is_dask_array(value))}

    def _recipe(self) -> Any:
        """Return the graph parameter, or the default recipe if it is None."""
        return KNNGraph() if self.graph is None else self.graph

    def _graph_is_default(self) -> bool:
        return self.graph is None

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of the graph recipe are named ``graph__<name>``."""
        if self._graph_is_default() and "graph" not in params and any(name.startswith("graph__") for name in params):
            self.graph = self._recipe()
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.graph)
        return tags

    def _build_graph(
        self,
        X: MatrixLike | AffinityGraph,
        y: LabelsLike | None = None,
        constraints: PairwiseConstraints | None = None,
        *,
        validated: bool = False,
    ) -> AffinityGraph:
        """Return the graph on ``X``, or ``X`` itself if it is a graph, and warn if it is disconnected.

        Stores the rows and the recipe, which new points need. ``X`` is validated here, unless ``fit`` has
        done so (``validated``). Constraints become edges of either sign, unless the recipe has learned from them.
        """
        if isinstance(X, AffinityGraph):
            self.n_features_in_ = X.n_nodes
        elif not validated:
            X = check_data(X, estimator=self, min_samples=2)
        recipe, n = self._recipe(), X.n_nodes if isinstance(X, AffinityGraph) else X.shape[0]  # type: ignore[union-attr]
        graph, fitted_recipe = build_affinity(recipe, X, self._labels_for(recipe, y, n), constraints)
        self._keep_rows(None if graph is X or is_precomputed(recipe) else X, fitted_recipe)
        if constraints is not None and (graph is X or not learns_from_constraints(recipe)):
            graph = add_constraints(graph, constraints)
        if self._warns_if_disconnected:
            warn_if_disconnected(graph)
        return graph

    def _keep_rows(self, rows: Array | None, recipe: Any) -> None:
        """Store the training rows, and the recipe of their graph."""
        self._fit_X, self._fit_recipe = rows, recipe

    def _require_rows(self, X: Any) -> None:
        """Raise an error if ``X`` is a graph or an affinity matrix, for estimators that map rows."""
        if isinstance(X, AffinityGraph) or is_precomputed(self.graph):
            problem = f"{type(self).__name__} maps the rows of X, but X is a graph or an affinity matrix"
            raise InputError(problem, "fit on data, and pass the graph as graph=", code="rows_required", parameter="X")

    def _labels_for(self, recipe: Any, y: LabelsLike | None, n: int) -> LabelsLike | None:
        """Return what a recipe may use of ``y``: a clusterer's recipe learns from partial labels only.

        Searches and pipelines pass true labels to every estimator, and a clusterer must not use them.
        """
        if y is None or not (is_clusterer(self) and learns_from_constraints(recipe)):
            return y
        y = as_column(y)
        known, _ = known_labels(y, n)
        return None if known.all() else y

    def _check_new_points(self, X: MatrixLike) -> Array:
        """Validate new points and convert them to the array library of the training rows."""
        if self._fit_X is None:
            problem = "the model was fitted on a graph, not on rows, so new points cannot be placed"
            raise InputError(problem, "fit on rows to use predict and transform", code="no_training_rows")
        return convert_rows(check_data(X, estimator=self, reset=False), self._fit_X)

    def _links_to(self, X: MatrixLike, F: Array) -> tuple[Sparse, Array]:
        """Return the weights from new points to the nodes, whose values are the rows of ``F``, and the points."""
        X = self._check_new_points(X)
        return link_weights(F, self._fit_recipe, X, self._fit_X, self.graph_), X

    def _nystrom(self, X: MatrixLike, F: Array, values: Array, kind: str) -> Array:
        """Return the values of eigenvectors at new points."""
        X = self._check_new_points(X)
        return nystrom(F, values, kind, recipe=self._fit_recipe, X_new=X, X=self._fit_X, graph=self.graph_)


def warn_if_disconnected(graph: AffinityGraph) -> None:
    """Warn if the graph has several components, with their sizes."""
    n_components, labels = graph.components()
    if n_components == 1:
        return
    sizes = np.bincount(labels)
    shown = ", ".join(str(size) for size in sizes[:MAX_SIZES_SHOWN]) + ", ..." * (n_components > MAX_SIZES_SHOWN)
    problem = (
        f"the graph has {n_components} connected components (sizes {shown}): each "
        "has its own zero eigenvalue, and no cluster can span two of them"
    )
    warn(
        problem,
        (
            "if this is not intended, use more neighbours, or join the components with KNNGraph(connect='mst') or "
            "graph.connect(X)"
        ),
        code="disconnected_graph",
        n_components=n_components,
        stacklevel=4,
    )


class ClustererMixin(ClusterMixin):
    """Mixin for clusterers that label new rows."""

    def fit_predict(self: Any, X: MatrixLike | AffinityGraph, y: LabelsLike | None = None, **fit_params: Any) -> Array:
        """Fit and return the cluster of each row.

        Parameters
        ----------
        X, y, **fit_params
            As in ``fit``.

        Returns
        -------
        labels : array of shape (n,)
        """
        return self.fit(X, y, **fit_params).labels_

    def score(self: Any, X: MatrixLike, y: LabelsLike | None = None) -> float:
        """Return the modularity of the predicted clusters on the default graph of ``X``.

        The graph, of nine self-tuned neighbours, is the same for all models, so that they can be compared, for example
        by ``GridSearchCV(model, {"graph__n_neighbors": [5, 10, 15]})``. No labels are used.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, d)
            At least three rows.
        y : ignored

        Returns
        -------
        modularity : float
            At most 1; larger is better, 0 for clusters as connected as by chance.
        """
        rows = self._transform_rows(check_data(X, min_samples=3))
        graph = as_affinity(default_recipe(rows.shape[0]), rows, validated=True)
        return float(modularity(graph, to_numpy(self.predict(X))))

    def _transform_rows(self, X: Array) -> Array:
        """Return the rows as the model's graph uses them."""
        return X


class SoftClustererMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClustererMixin):
    """Mixin for clusterers with memberships, to which they transform rows, as k-means does to distances."""

    def transform(self: Any, X: MatrixLike) -> Array:
        """Return the memberships of new rows, as ``predict_proba`` does.

        After ``set_output(transform="pandas")`` or ``"polars"``, they are a data frame with the index of ``X``.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        memberships : array or data frame of shape (m, n_clusters)
        """
        return self.predict_proba(X)

    @property
    def _n_features_out(self: Any) -> int:
        return int(self.n_clusters_ if hasattr(self, "n_clusters_") else self.memberships_.shape[1])


def frames_like(X: Any, labels: Array, memberships: Array) -> tuple[Any, Any]:
    """Return labels as a series and memberships as a data frame where scikit-learn's configuration asks for these.

    With ``sklearn.set_config(transform_output="pandas")`` they have the index of ``X`` if this is a data frame.
    """
    library = get_config()["transform_output"]
    if library == "default":
        return labels, memberships
    module = import_module(library)
    rows, names = to_numpy(memberships), [f"cluster_{k}" for k in range(memberships.shape[1])]
    if library == "polars":
        return module.Series("cluster", to_numpy(labels)), module.DataFrame(rows, schema=names)
    index = X.index if isinstance(X, module.DataFrame) else None
    return module.Series(to_numpy(labels), index, name="cluster"), module.DataFrame(rows, index, names)


def warn_if_clusters_are_empty(n_found: int, n_clusters: int, remedy: str, *, stacklevel: int) -> None:
    """Warn if fewer clusters contain rows than were requested."""
    if n_found < n_clusters:
        problem = f"only {n_found} of the {n_clusters} clusters contain any rows"
        warn(problem, remedy, code="empty_clusters", stacklevel=stacklevel + 1, n_found=n_found, n_clusters=n_clusters)
