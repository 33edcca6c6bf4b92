"""Frozen records: what a computation found, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EigenResult:
    """Eigenpairs and how they were reached.

    Attributes
    ----------
    values : array of shape (k,)
        Ascending.
    vectors : array of shape (n, k)
        Columns, their entry of largest size positive.
    residuals : array of shape (k,)
        ‖A u - λ B u‖ of each pair, for ‖u‖ = 1, in units of the matrix.
    iterations : int
        Rounds of the solver; 0 for a direct one.
    converged : bool
        Whether every residual is within the tolerance.
    method : str
        The solver that answered.
    """

    values: Any
    vectors: Any
    residuals: Any
    iterations: int
    converged: bool
    method: str


@dataclass(frozen=True)
class KMeansResult:
    """The best of several runs of k-means.

    Attributes
    ----------
    labels : array of shape (n,)
    centers : array of shape (k, d)
    inertia : float
        Sum of squared distances to the centres (for the cosine variant: of 1 - cosine).
    n_iter : int
    converged : bool
    """

    labels: Any
    centers: Any
    inertia: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class CommunityResult:
    """A partition of a graph's nodes.

    Attributes
    ----------
    labels : array of shape (n,)
    modularity : float
        At ``resolution``.
    resolution : float
    n_communities : int
        Labels in use.
    starts : dict of label arrays
        The spectral partitions that the search began from, by name.
    """

    labels: Any
    modularity: float
    resolution: float
    n_communities: int
    starts: dict[str, Any] = field(default_factory=dict)
