"""Eigenvectors under edges that repel: cannot-links stand in the denominator.

    L⁺ v = λ (M + L⁻) v,    L⁺, L⁻ the Laplacians of the attracting and of the repelling edges

A vector is good if it varies little over the attracting edges for how much it varies over the repelling ones and over
the masses M (degrees for the normalised cut, their mean for the Ratio Cut); without repelling edges this is the random
walk's problem. The signed Laplacian asks for opposite values instead of different ones, which suits two clusters only.

References
----------
M. Cucuringu, I. Koutis, S. Chawla, G. Miller, R. Peng, "Simple and scalable constrained clustering: a generalized
spectral method", AISTATS 2016.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse.linalg as spla
from scipy.linalg import eigh

from .._records import EigenResult
from ..core.backend import asarray_like, to_numpy
from ..core.eigen import DENSE_UP_TO, smallest_eigenpairs
from ..core.sparse import to_scipy
from .affinity import AffinityGraph
from .pairs import split_by_sign

NEED_A_MATRIX = ("arpack", "shift_invert")  # or miss a null space of several dimensions
REPELLED_UP_TO = 4000  # rows with a repelling edge: a dense matrix of their size is decomposed


def repelled_eigenpairs(graph: AffinityGraph, k: int, *, kind: str, **options: Any) -> EigenResult:
    """The ``k`` smallest eigenpairs of the problem above; ``kind`` 'random_walk' or 'combinatorial' sets M.

    With N = M^-½ L⁺ M^-½ and R = (I + M^-½ L⁻ M^-½)^-½, which differs from I only where edges repel, the problem is
    RNR u = λ u and v = M^-½ R u.
    """
    if options.get("method") in NEED_A_MATRIX:
        raise ValueError(f"eigen_solver={options['method']!r} needs a matrix, which cannot-links spoil; use 'auto'")
    attract, repel = (to_scipy(side.laplacian()).astype(np.float64) for side in split_by_sign(graph))
    degrees = attract.diagonal()
    mean = float(degrees.mean()) or 1.0
    mass = np.where(degrees > 0, degrees, mean) if kind == "random_walk" else np.full_like(degrees, mean)
    root = 1 / np.sqrt(mass)[:, None]
    rows = np.flatnonzero(repel.diagonal())
    if len(rows) > REPELLED_UP_TO:
        raise ValueError(f"{len(rows)} rows have cannot-links; use those of at most {REPELLED_UP_TO}")
    soften = _inverse_root(root[rows] * repel[rows][:, rows].toarray() * root[rows].T)

    def softened(v: np.ndarray) -> np.ndarray:
        v = v.copy()
        v[rows] = soften @ v[rows]
        return v

    def product(v: np.ndarray) -> np.ndarray:
        v = v.reshape(len(root), -1)
        return softened(root * (attract @ (root * softened(v))))

    n = len(root)
    operator = spla.LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    found = smallest_eigenpairs(operator if n > DENSE_UP_TO else product(np.eye(n)), k, **options)
    vectors, home = root * softened(to_numpy(found.vectors)), graph.degrees
    moved = {"vectors": vectors, "values": found.values, "residuals": found.residuals}
    return replace(
        found, **{name: asarray_like(to_numpy(part), home, dtype=home.dtype) for name, part in moved.items()}
    )


def _inverse_root(E: np.ndarray) -> np.ndarray:
    """(I + E)^-½ of a positive semidefinite matrix."""
    if len(E) == 0:
        return E
    values, vectors = eigh(0.5 * (E + E.T))
    return (vectors / np.sqrt(1 + np.maximum(values, 0))) @ vectors.T
