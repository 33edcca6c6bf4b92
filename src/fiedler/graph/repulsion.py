"""Eigenvectors of graphs with repelling edges, in which cannot-links are in the denominator.

    L⁺ v = λ (M + L⁻) v,    L⁺, L⁻ the Laplacians of the attracting and of the repelling edges

A vector is good if it varies little over the attracting edges relative to its variation over the repelling ones and to
the masses M (degrees for the normalised cut, their mean for the Ratio Cut). Without repelling edges this is the problem
of the random walk. The signed Laplacian requires opposite values instead of different ones, which suits two clusters
only.

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
from ..core.eigen import smallest_eigenpairs
from ..core.sparse import to_scipy
from ..core.spectrum import DENSE_UP_TO
from ..errors import InputError
from .affinity import AffinityGraph
from .pairs import split_by_sign

MATRIX_SOLVERS = ("arpack", "shift_invert")  # need a matrix, or miss a null space of several dimensions
MAX_REPELLED_ROWS = 4000  # rows with a repelling edge, of which a dense matrix is decomposed


def repelled_eigenpairs(graph: AffinityGraph, k: int, *, kind: str, **options: Any) -> EigenResult:
    """Return the ``k`` smallest eigenpairs of the problem above.

    ``kind`` is 'random_walk' for M = D or 'combinatorial' for the mean degree.

    With N = M^-½ L⁺ M^-½ and R = (I + M^-½ L⁻ M^-½)^-½, which differs from I only where edges repel, the problem is
    RNR u = λ u and v = M^-½ R u.
    """
    if options.get("method") in MATRIX_SOLVERS:
        raise InputError(
            f"eigen_solver={options['method']!r} needs a matrix, but with cannot-links there is only an operator",
            "use 'auto'",
            code="solver_needs_matrix",
            parameter="eigen_solver",
            value=options["method"],
        )
    attract, repel = (to_scipy(side.laplacian()).astype(np.float64) for side in split_by_sign(graph))
    degrees = attract.diagonal()
    mean = float(degrees.mean()) or 1.0
    mass = np.where(degrees > 0, degrees, mean) if kind == "random_walk" else np.full_like(degrees, mean)
    root = 1 / np.sqrt(mass)[:, None]
    rows = np.flatnonzero(repel.diagonal())
    if len(rows) > MAX_REPELLED_ROWS:
        raise InputError(
            f"{len(rows)} rows have cannot-links",
            f"use cannot-links of at most {MAX_REPELLED_ROWS} rows",
            code="too_many_rows",
            n_rows=len(rows),
            max_rows=MAX_REPELLED_ROWS,
        )
    R_rows = _inverse_root(root[rows] * repel[rows][:, rows].toarray() * root[rows].T)

    def apply_R(v: np.ndarray) -> np.ndarray:
        v = v.copy()
        v[rows] = R_rows @ v[rows]
        return v

    def product(v: np.ndarray) -> np.ndarray:
        v = v.reshape(len(root), -1)
        return apply_R(root * (attract @ (root * apply_R(v))))

    n = len(root)
    operator = spla.LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    result = smallest_eigenpairs(operator if n > DENSE_UP_TO else product(np.eye(n)), k, **options)
    like_graph = lambda part: asarray_like(to_numpy(part), graph.degrees, dtype=graph.degrees.dtype)  # noqa: E731
    return replace(
        result,
        vectors=like_graph(root * apply_R(to_numpy(result.vectors))),
        values=like_graph(result.values),
        residuals=like_graph(result.residuals),
    )


def _inverse_root(E: np.ndarray) -> np.ndarray:
    """Return (I + E)^-½ of a positive semidefinite matrix E."""
    if len(E) == 0:
        return E
    values, vectors = eigh(0.5 * (E + E.T))
    return (vectors / np.sqrt(1 + np.maximum(values, 0))) @ vectors.T
