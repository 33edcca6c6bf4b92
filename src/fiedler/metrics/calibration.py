"""Calibration: how well memberships agree with accuracy."""

from __future__ import annotations

import numpy as np

from .._typing import LabelsLike, MatrixLike
from .._validation import check_int
from ..errors import InputError
from .matching import check_discrete, labels_to_numpy, match_labels


def calibration_error(labels_true: LabelsLike, memberships: MatrixLike, n_bins: int = 15) -> float:
    """Return the expected calibration error: how far confidence and accuracy differ, with clusters matched to classes.

    ::

        Σ_b |B_b|/n · | accuracy of B_b - mean confidence of B_b |

    over bins B_b of equal width of the confidence, the largest membership of each row; a row is correct if its
    most probable cluster is matched to its class [Guo et al. 2017, Eq. 3].

    Parameters
    ----------
    labels_true : array-like of shape (n,)
        The classes.
    memberships : array-like of shape (n, k)
        Non-negative rows that sum to one.
    n_bins : int, default=15
        The number of bins.

    Returns
    -------
    float

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.25]])
    0.0
    """
    y_true = check_discrete(labels_true, "labels_true")
    resp = _check_memberships(memberships, len(y_true))
    n_bins = check_int(n_bins, "n_bins")
    confidence = resp.max(axis=1)
    correct = match_labels(y_true, resp.argmax(axis=1)) == y_true
    bins = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    gaps = np.bincount(bins, correct.astype(np.float64) - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(y_true))


def _check_memberships(memberships: MatrixLike, n_samples: int) -> np.ndarray:
    try:
        values = np.asarray(labels_to_numpy(memberships))
        with np.errstate(over="ignore"):  # of numbers in extended precision
            resp = values.astype(np.float64, casting="unsafe" if values.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            "memberships must be a matrix of numbers", code="wrong_dtype", parameter="memberships"
        ) from error
    if resp.ndim != 2 or resp.shape[0] != n_samples or resp.shape[1] == 0:
        raise InputError(
            f"memberships must have shape ({n_samples}, k), one row per label; got {resp.shape}",
            code="wrong_shape",
            parameter="memberships",
        )
    sums_to_one = np.allclose(resp.sum(axis=1), 1, atol=1e-3)
    if not np.isfinite(resp).all() or resp.min() < 0 or not sums_to_one:
        raise InputError(
            "memberships must be non-negative rows that sum to one",
            "divide each row by its sum",
            code="invalid_memberships",
            parameter="memberships",
        )
    return resp
