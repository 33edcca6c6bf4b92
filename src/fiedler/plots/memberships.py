"""Validation of memberships, and common colour numbers for clusters and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._validation import check_labels
from ..core.backend import to_numpy
from ..errors import InputError
from ..metrics import match_labels
from ..metrics.matching import on_host
from .style import color_codes

if TYPE_CHECKING:
    from .._typing import Array, LabelsLike


def check_memberships(memberships: Array, n: int | None = None) -> np.ndarray:
    """Validate memberships: one row per sample, one column per cluster, entries between 0 and 1."""
    array = to_numpy(memberships)
    if array.ndim != 2 or 0 in array.shape or n not in (None, len(array)):
        raise InputError(
            f"memberships must have shape ({'n' if n is None else n}, n_clusters), one row per sample; "
            f"got shape {array.shape}",
            code="wrong_shape",
            parameter="memberships",
            shape=array.shape,
        )
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1 + 1e-6):
        raise InputError(
            "memberships must lie between 0 and 1",
            "scale the rows to sum to one",
            code="invalid_memberships",
            parameter="memberships",
        )
    return array.astype(np.float64)


def class_color_codes(labels: LabelsLike, y: LabelsLike) -> np.ndarray:
    """Return the colour number of each row's class: that of the best matching cluster, or a new one if none is left.

    Examples
    --------
    >>> class_color_codes([0, 0, 1, 1], ["b", "b", "a", "-1"])
    array([ 0,  0,  1, -1])
    """
    clusters = color_codes(labels)
    y = check_labels(on_host(y), "y", n_samples=len(clusters))
    classes = color_codes(y)
    known, codes = classes >= 0, np.full(len(y), -1)
    if known.any():
        matched = match_labels(clusters[known], classes[known])
        unmatched = matched < 0
        matched[unmatched] = clusters.max() + 1 + np.unique(classes[known][unmatched], return_inverse=True)[1]
        codes[known] = matched
    return codes
