"""How many clusters: two kinds of evidence, and the answer they give.

- **Eigengap.** A graph of K well separated groups has K small Laplacian eigenvalues and then a gap [vonLuxburg07, 8.3].
- **Stability.** The right number gives the same clusters again on other data: models fitted on two random parts label
  all rows, and the adjusted Rand index, which is 0 for chance whatever K, says how far they agree (Ben-Hur, Elisseeff &
  Guyon 2002). Of the numbers within one (pooled) standard error of the most stable, the largest is the answer: coarser
  clusters are nearly always stable too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._validation import check_data, check_fraction, check_int, check_n_clusters, choose
from ..core.backend import Array, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.rows import random_subset, take_rows
from ..graph.recipes import as_affinity
from ..metrics import adjusted_rand_index
from .documents import LPIClustering


@dataclass(frozen=True)
class NClustersChoice:
    """A number of clusters and the evidence for it.

    Attributes
    ----------
    n_clusters : int
        The answer.
    by : str
        The evidence it rests on.
    candidates : list of int
    gaps : list of float or None
        λ_(K+1) - λ_K of the graph, for every candidate K (log λ_(K+1)/λ_K from ManifoldClustering); None for a model
        without a graph.
    stability : list of float or None
        Mean adjusted Rand index between models of parts of the data, for every candidate.
    stability_error : list of float or None
        Standard errors of these means.
    modularity : list of float or None
        Of the communities on parts of the data, for every candidate.

    Examples
    --------
    >>> from fiedler.clustering import NClustersChoice
    >>> print(NClustersChoice(3, "eigengap", [2, 3], gaps=[0.01, 0.3]))
    3 clusters, by eigengap
      K     gap      stability  modularity
      2  0.0100              -           -
      3  0.3000              -           -  <
    """

    n_clusters: int
    by: str
    candidates: list[int]
    gaps: list[float] | None
    stability: list[float] | None = None
    stability_error: list[float] | None = None
    modularity: list[float] | None = None

    def __str__(self) -> str:
        lines = [f"{self.n_clusters} clusters, by {self.by}", "  K     gap      stability  modularity"]
        for i, k in enumerate(self.candidates):
            stable = "-" if self.stability is None else f"{self.stability[i]:.3f} ± {self.stability_error[i]:.3f}"  # type: ignore[index]
            gap = "-" if self.gaps is None else f"{self.gaps[i]:.4f}"
            whole = "-" if self.modularity is None else f"{self.modularity[i]:.4f}"
            lines.append(f"{k:3d}  {gap:>6s}  {stable:>13s}  {whole:>10s}{'  <' if k == self.n_clusters else ''}")
        return "\n".join(lines)


def choose_n_clusters(
    X: Any,
    candidates: Iterable[int] = range(2, 16),
    *,
    estimator: Any = None,
    by: str = "stability",
    n_pairs: int = 10,
    fraction: float = 0.8,
    random_state: Any = None,
) -> NClustersChoice:
    """The number of clusters that the data support best, with the evidence.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : iterable of int, default=range(2, 16)
    estimator : clusterer with ``n_clusters`` and ``predict``, optional
        The model whose clusters are counted; default ``LPIClustering()``, for documents.
    by : {'stability', 'eigengap'}, default='stability'
        'eigengap' needs one graph; 'stability' two fits for every pair and candidate.
    n_pairs : int, default=10
        Pairs of parts that are compared.
    fraction : float, default=0.8
        The share of the rows in each part.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    NClustersChoice

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from fiedler import SpectralClustering, choose_n_clusters
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    >>> choice = choose_n_clusters(X, range(2, 8), estimator=SpectralClustering(), by="eigengap")
    >>> choice.n_clusters
    4
    """
    choose(EVIDENCE, by, option="by")
    X = check_data(X, min_samples=4)
    ks = _checked(candidates, X.shape[0])
    model = LPIClustering() if estimator is None else estimator
    fraction = check_fraction(fraction, "fraction")
    rng = check_random_state(random_state)
    gaps = eigengaps(X, ks, model, rng) if hasattr(model, "_recipe") else None
    if gaps is None and by == "eigengap":
        raise ValueError(f"{type(model).__name__} has no graph, so it has no eigengaps; use by='stability'")
    agreements = None
    if by == "stability":
        agreements = _agreements(X, ks, model, check_int(n_pairs, "n_pairs", minimum=2), fraction, rng)
    return EVIDENCE[by](ks, gaps, agreements)


def _checked(candidates: Any, n_samples: int) -> list[int]:
    if not isinstance(candidates, Iterable):
        raise ValueError(f"candidates={candidates!r} must be a list of numbers, such as range(2, 16)")
    ks = sorted({check_n_clusters(k, n_samples - 2) for k in candidates})
    if not ks:
        raise ValueError("candidates holds no number of clusters to choose from")
    if ks[0] < 2:
        raise ValueError("one cluster is always stable and has no rival; let candidates begin at 2")
    return ks


def eigengaps(X: Array, ks: list[int], model: Any, rng: Any) -> np.ndarray:
    """λ_(K+1) - λ_K of the normalised Laplacian of the model's own graph."""
    graph = as_affinity(model._recipe(), getattr(model, "_rows", lambda X: X)(X), validated=True)
    values = to_numpy(smallest_eigenpairs(graph, max(ks) + 1, random_state=rng).values)
    return np.array([values[k] - values[k - 1] for k in ks])


def _agreements(X: Array, ks: list[int], model: Any, n_pairs: int, fraction: float, rng: Any) -> np.ndarray:
    """The adjusted Rand index of two models' labels of all rows, (candidates, pairs)."""
    found = np.empty((len(ks), n_pairs))
    for pair in range(n_pairs):
        parts = [take_rows(X, random_subset(X.shape[0], fraction, rng)) for _ in range(2)]
        seed = rng.randint(2**31 - 1)
        for i, k in enumerate(ks):
            first, second = (_labels(model, k, part, X, seed) for part in parts)
            found[i, pair] = adjusted_rand_index(first, second)
    return found


def _labels(model: Any, k: int, part: Array, X: Array, seed: int) -> np.ndarray:
    fitted = clone(model).set_params(n_clusters=k)
    if "random_state" in fitted.get_params():
        fitted.set_params(random_state=seed)
    return to_numpy(fitted.fit(part).predict(X))


def _by_gap(ks: list[int], gaps: np.ndarray | None, agreements: np.ndarray | None) -> NClustersChoice:
    assert gaps is not None
    return NClustersChoice(ks[int(np.argmax(gaps))], "eigengap", ks, gaps.tolist())


def _by_stability(ks: list[int], gaps: np.ndarray | None, agreements: np.ndarray | None) -> NClustersChoice:
    """The largest number within a pooled standard error of the most stable one."""
    assert agreements is not None
    means, errors = agreements.mean(axis=1), agreements.std(axis=1, ddof=1) / np.sqrt(agreements.shape[1])
    pooled = float(np.sqrt(np.mean(errors**2)))  # the most stable may have no spread at all
    largest = int(np.flatnonzero(means >= means.max() - pooled)[-1])
    known = None if gaps is None else gaps.tolist()
    return NClustersChoice(ks[largest], "stability", ks, known, means.tolist(), errors.tolist())


EVIDENCE = {"stability": _by_stability, "eigengap": _by_gap}
