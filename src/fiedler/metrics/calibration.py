"""Whether memberships mean what they say."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_int, check_labels
from .matching import match_labels, on_host


def calibration_error(labels_true: Any, memberships: Any, n_bins: int = 15) -> float:
    """The expected calibration error: how far confidence is from accuracy, after matching clusters to classes.

    ::

        Σ_b |B_b|/n · | accuracy of B_b - mean confidence of B_b |

    over bins B_b of equal width of the largest membership of each row, which is right where the matched cluster is the
    row's class [Guo et al. 2017, Eq. 3].

    Parameters
    ----------
    labels_true : array of shape (n,)
    memberships : array of shape (n, k)
        Rows sum to one.
    n_bins : int, default=15

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.25]])
    0.0
    """
    memberships = np.asarray(on_host(memberships), dtype=np.float64)
    truth = check_labels(on_host(labels_true), "labels_true")
    if memberships.ndim != 2 or memberships.shape[0] != len(truth) or memberships.shape[1] == 0:
        raise ValueError(f"memberships must be of shape ({len(truth)}, k), a row a label; got {memberships.shape}")
    if (
        not np.isfinite(memberships).all()
        or memberships.min() < 0
        or not np.allclose(memberships.sum(axis=1), 1, atol=1e-3)
    ):
        raise ValueError("memberships must be nonnegative rows that sum to one")
    confidence = memberships.max(axis=1)
    right = match_labels(truth, memberships.argmax(axis=1)) == truth
    n_bins = check_int(n_bins, "n_bins")
    bins = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    gaps = np.bincount(bins, right.astype(np.float64) - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(truth))
