"""Whitening: a linear map after which rows scatter equally in all directions, overall or only near each other.

    y = (Λ + ρ λ_max I)^(-1/2) V'z,      z = P'(x - x̄),      P the leading principal components,

with S = VΛV' the scatter matrix of the coordinates z and λ_max its largest eigenvalue. S is one of

    rows      Σ_i z_i z_i' / n                                            of all rows
    cells     Σ_i (z_i - c_i)(z_i - c_i)' / n                             around the centre c_i of the k-means cell of
                                                                          i, the mean of several runs of k-means
    edges     ½ Σ_ij w_ij (z_i - z_j)(z_i - z_j)' / Σ_i d_i  =  Z'LZ / Σ_i d_i         along the edges of a graph

Directions in which even neighbours differ, such as illumination or noise, then count less than those in which only far
rows differ. Z'LZ is the matrix that LPI minimises [lpi, Eq. 1]: LPI keeps the few directions in which it is small
relative to Z'DZ, whitening keeps all of them and rescales them.

The ridge ρ keeps directions without any scatter from being blown up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._typing import GraphLike, LabelsLike, MatrixLike, RandomState
from .._validation import Check, check_bool, check_data, check_nonnegative, check_seed, integer, one_of
from ..core.arrays import (
    Array,
    asarray_like,
    convert_like,
    convert_rows,
    eps,
    mean_row,
    namespace,
    normalize_rows,
    row_norms,
    sq_row_norms,
)
from ..core.fitting import fit_method
from ..core.kmeans import kmeans
from ..core.pca import Projection, fit_pca
from ..core.sparse import matmul
from ..errors import InputError
from ..graph.estimator import GraphEstimatorMixin
from ..graph.recipes import DEFAULT_NEIGHBORS, as_affinity, default_recipe, self_tuned

MIN_ROWS_PER_CELL = 3  # on average
N_CELL_RUNS = 5  # runs of k-means, over which the scatter is averaged: that of one run depends on its start


class _Rows(NamedTuple):
    """What a scatter matrix is computed from: rows x, their coordinates z in double precision, and options."""

    X: Array
    Z: Array
    n_cells: int
    graph: Any
    random_state: np.random.RandomState


def _scatter_of_rows(rows: _Rows) -> Array:
    """Compute Σ_i z_i z_i' / n; the coordinates have mean zero."""
    return rows.Z.T @ rows.Z / rows.Z.shape[0]


def _scatter_in_cells(rows: _Rows) -> Array:
    """Compute Σ_i (z_i - c_i)(z_i - c_i)' / n, the mean of several runs of k-means."""
    n, n_cells = rows.Z.shape[0], max(1, min(rows.n_cells, rows.Z.shape[0] // MIN_ROWS_PER_CELL))
    total = 0.0
    for _ in range(N_CELL_RUNS):
        cells = kmeans(rows.Z, n_cells, n_init=1, random_state=rows.random_state)
        offsets = rows.Z - namespace(rows.Z).take(cells.centers, cells.labels, axis=0)
        total = total + offsets.T @ offsets
    return total / (N_CELL_RUNS * n)


def _scatter_along_edges(rows: _Rows) -> Array:
    """Compute Z'(D - W)Z / Σ_i d_i."""
    graph = as_affinity(rows.graph, rows.X, validated=True)
    if graph.has_negative_weights:
        problem = "whitening by edges needs non-negative weights, but the graph has negative ones"
        hint = "use weights that are not negative, such as KNNGraph(weight='heat')"
        raise InputError(problem, hint, code="negative_weights", parameter="graph")
    xp, Z = namespace(rows.Z), rows.Z
    degrees = convert_like(graph.degrees, Z)
    if float(xp.sum(degrees)) <= 0:
        raise InputError("the graph has no edges", "use more neighbours", code="no_edges", parameter="graph")
    smooth = convert_like(matmul(graph.weights, convert_like(Z, graph.degrees)), Z)
    return Z.T @ (degrees[:, None] * Z - smooth) / xp.sum(degrees)


SCATTERS: dict[str, Callable[[_Rows], Array]] = {
    "rows": _scatter_of_rows,
    "cells": _scatter_in_cells,
    "edges": _scatter_along_edges,
}


def _principal_components(X: Array, max_components: int, random_state: int) -> Projection:
    """Return the projection to the leading principal components; to the columns if there are few."""
    if X.shape[1] > max_components:
        most = min(X.shape) - (1 if sp.issparse(X) else 0)
        return fit_pca(X, max(1, min(max_components, most)), random_state=random_state)
    mean = mean_row(X)
    return Projection(mean, asarray_like(np.eye(X.shape[1]), mean, dtype=mean.dtype))


def whitening_factors(S: Array, ridge: float) -> Array:
    """Compute V (Λ + ρ λ_max I)^(-1/2) of a positive semidefinite matrix S = VΛV', whose λ_max is positive."""
    xp = namespace(S)
    values, vectors = xp.linalg.eigh(0.5 * (S + S.T))
    values = xp.where(values > 0, values, 0) + ridge * xp.max(values)
    return vectors / xp.sqrt(values)


class Whitening(GraphEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Whitening of rows by their scatter: of all rows, inside small cells, or along the edges of a graph.

    Parameters
    ----------
    by : {'rows', 'cells', 'edges'}, default='rows'
        The scatter that becomes equal in all directions: that of all rows; that inside the cells of k-means; or that
        along the edges of the neighbour graph, X'LX, the matrix of :class:`LPI`.
    max_components : int, default=50
        The largest number of principal components that are kept. If there are at most as many columns, all are.
    ridge : float, default=0.01
        Added to all variances, relative to the largest: directions with less than a tenth of the largest standard
        deviation are hardly rescaled. Standardise columns of different units first.
    n_cells : int, default=30
        The number of cells; at most a third of the number of rows. About three times the number of clusters is a good
        choice.
    graph : recipe, AffinityGraph or matrix, default=None
        The graph for ``by='edges'``; None is the self-tuned graph of nine neighbours.
    random_state : int, RandomState or None, default=None
        Random seed or generator of k-means.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The mean row.
    components_ : array of shape (n_components, n_features)
        The map; its rows belong to the directions of least scatter first.
    n_features_in_ : int
        The number of features.

    See Also
    --------
    LPI : Keeps the directions in which X'LX is small.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import Whitening
    >>> X = np.random.RandomState(0).normal(size=(500, 2)) * [1.0, 100.0]
    >>> Whitening(ridge=0.0).fit_transform(X).std(axis=0).round(2)
    array([1., 1.])
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "by": one_of(SCATTERS),
        "max_components": integer(),
        "ridge": check_nonnegative,
        "n_cells": integer(),
        "random_state": check_seed,
    }

    def __init__(
        self,
        by: Literal["rows", "cells", "edges"] = "rows",
        *,
        max_components: int = 50,
        ridge: float = 0.01,
        n_cells: int = 30,
        graph: GraphLike = None,
        random_state: RandomState = None,
    ) -> None:
        self.by = by
        self.max_components = max_components
        self.ridge = ridge
        self.n_cells = n_cells
        self.graph = graph
        self.random_state = random_state

    @fit_method
    def fit(self, X: MatrixLike, y: LabelsLike | None = None) -> Self:
        """Compute the map.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            The rows.
        y : ignored

        Returns
        -------
        self
        """
        self._require_rows(X)
        rows: Array = check_data(X, estimator=self, min_samples=2)
        if self.graph is not None and self.by != "edges":
            problem = f"a graph is given, but by={self.by!r} does not use it"
            raise InputError(problem, "use by='edges', or graph=None", code="unused_graph", parameter="graph")
        rng = check_seed(self.random_state)
        projection = _principal_components(rows, self.max_components, int(rng.randint(2**31 - 1)))
        coordinates = projection(rows)
        Z = namespace(coordinates).astype(coordinates, namespace(coordinates).float64)
        recipe = default_recipe(rows.shape[0]) if self.graph is None else self.graph
        S = SCATTERS[self.by](_Rows(rows, Z, self.n_cells, recipe, rng))
        rounding = eps(coordinates) ** 2 * float(namespace(Z).max(sq_row_norms(rows)))
        if not float(namespace(S).linalg.trace(S)) > rounding:
            problem = f"the rows have no scatter by {self.by!r}, so there is no direction to rescale"
            raise InputError(problem, "check the data, or use by='rows'", code="equal_rows", parameter="by")
        factors = whitening_factors(S, max(float(self.ridge), eps(coordinates)))
        self.mean_ = projection.mean
        self.components_ = (projection.components @ namespace(Z).astype(factors, projection.components.dtype)).T
        self._fit_X = None  # transform does not need the training rows
        return self

    def _recipe(self) -> Any:
        """Return the graph parameter, or the recipe of the default graph."""
        return self_tuned(DEFAULT_NEIGHBORS) if self.graph is None else self.graph

    def transform(self, X: MatrixLike) -> Array:
        """Return the whitened rows."""
        return self._embed(X)

    def _embed(self, X: MatrixLike) -> Array:
        """Return the whitened rows as `transform` does, but always as an array, never as a data frame."""
        check_is_fitted(self)
        rows = check_data(X, estimator=self, reset=False)
        return Projection(self.mean_, self.components_.T)(
            rows if sp.issparse(rows) else convert_rows(rows, self.components_)
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


# Directions of rows: y = (x - x̄) / ‖x - x̄‖, so that only the angle between centred rows counts.

ROUNDING_ERRORS = 8  # of the rows, within which a row equals the mean


class Directions(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Centred rows at unit length.

    Embeddings of texts and images often differ in length for reasons that do not matter, and share a common direction,
    their mean. With both removed, Euclidean neighbours are those of the highest cosine between centred rows.

    Parameters
    ----------
    center : bool, default=True
        Whether to subtract the mean. Sparse rows must not be centred, since they would no longer be sparse.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The mean row; zeros without centring.
    n_features_in_ : int
        The number of features.

    See Also
    --------
    sklearn.preprocessing.Normalizer : Scales rows to unit length without centring.

    Examples
    --------
    >>> from fiedler import Directions
    >>> Directions().fit_transform([[1.0, 1.0], [5.0, 1.0], [3.0, 4.0]]).round(2)
    array([[-0.89, -0.45],
           [ 0.89, -0.45],
           [ 0.  ,  1.  ]])
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {"center": check_bool}

    def __init__(self, *, center: bool = True) -> None:
        self.center = center

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = isinstance(self.center, bool | np.bool_) and not self.center
        return tags

    @fit_method
    def fit(self, X: MatrixLike, y: LabelsLike | None = None) -> Self:
        """Compute the mean.

        Parameters
        ----------
        X : array of shape (n, d), or CSR matrix if ``center=False``
            The rows.
        y : ignored

        Returns
        -------
        self
        """
        rows = self._check(X, reset=True)
        mean = mean_row(rows)
        self.mean_ = mean if self.center else 0 * mean
        return self

    def transform(self, X: MatrixLike) -> Array:
        """Return the directions of rows; a row that equals the mean stays zero."""
        check_is_fitted(self)
        rows = self._check(X, reset=False)
        if sp.issparse(rows):
            return normalize_rows(rows)
        rows = convert_rows(rows, self.mean_)
        centered = rows - self.mean_
        xp = namespace(rows)
        at_mean = row_norms(centered) <= ROUNDING_ERRORS * eps(rows) * row_norms(rows)
        return xp.where(at_mean[:, None], xp.zeros_like(centered), normalize_rows(centered))

    def _check(self, X: MatrixLike, *, reset: bool) -> Array:
        rows = check_data(X, estimator=self, reset=reset)
        if sp.issparse(rows) and self.center:
            problem = "centred rows are not sparse"
            hint = "use Directions(center=False) for sparse rows"
            raise InputError(problem, hint, code="sparse_rows", parameter="center")
        return rows
