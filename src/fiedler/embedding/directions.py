"""Directions of rows: y = (x - x̄) / ‖x - x̄‖, so that only the angle between centred rows counts."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._typing import LabelsLike, MatrixLike
from .._validation import check_bool, check_data
from ..core.backend import Array, eps, namespace
from ..core.restoring import restore_on_failure
from ..core.rows import convert_rows, mean_row, normalize_rows, row_norms
from ..errors import InputError

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

    def __init__(self, *, center: bool = True) -> None:
        self.center = center

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = isinstance(self.center, bool | np.bool_) and not self.center
        return tags

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
        with restore_on_failure(self):
            check_bool(self.center, "center")
            rows = self._check(X, reset=True)
            mean = mean_row(rows)
            self.mean_ = mean if self.center else 0 * mean
        return self

    def transform(self, X: MatrixLike) -> Array:
        """Return the directions of rows; a row that equals the mean stays zero.

        Parameters
        ----------
        X : array of shape (m, d), or CSR matrix if ``center=False``

        Returns
        -------
        Y : array or CSR matrix of shape (m, d)
        """
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
            raise InputError(
                "centred rows are not sparse", "use Directions(center=False) for sparse rows", code="sparse_rows",
                parameter="center",
            )  # fmt: skip
        return rows
