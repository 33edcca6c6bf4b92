"""Checks of memberships, and clusters and classes under one set of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_labels
from ..core.backend import to_numpy
from ..metrics import match_labels
from ..metrics.matching import on_host
from .style import codes


def check_memberships(memberships: Any, n: int | None = None) -> np.ndarray:
    """Shares between 0 and 1, a row a sample and a column a cluster."""
    shares = to_numpy(memberships)
    if shares.ndim != 2 or 0 in shares.shape or n not in (None, len(shares)):
        wanted = f"({'n' if n is None else n}, n_clusters)"
        raise ValueError(f"memberships must be of shape {wanted}, a row a sample; got shape {shares.shape}")
    if not (np.isfinite(shares).all() and shares.min() >= 0 and shares.max() <= 1 + 1e-6):
        raise ValueError("memberships must be shares between 0 and 1; scale their rows to sum to one")
    return shares.astype(np.float64)


def class_numbers(labels: Any, y: Any) -> np.ndarray:
    """The number of each row's class: that of the cluster it matches best, further ones for classes left over.

    Examples
    --------
    >>> class_numbers([0, 0, 1, 1], ["b", "b", "a", "-1"])
    array([ 0,  0,  1, -1])
    """
    clusters = codes(labels)
    y = check_labels(on_host(y), "y", n_samples=len(clusters))
    classes = codes(y)
    known, numbers = classes >= 0, np.full(len(y), -1)
    if known.any():
        found = match_labels(clusters[known], classes[known])
        alone = found < 0
        found[alone] = clusters.max() + 1 + np.unique(classes[known][alone], return_inverse=True)[1]
        numbers[known] = found
    return numbers
