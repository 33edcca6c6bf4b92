"""The problem of one row in a smoothing step: a concave function on the simplex, maximised exactly."""

from __future__ import annotations

from ..core.backend import Array, eps, exp_or_zero, namespace
from ..core.rows import normalize_row_sums


def entropic_maximizer(a: Array, b: Array) -> Array:
    """Maximise q'a - ½ b ‖q‖² - q' log q over the simplex, row by row; b = 0 gives the softmax.

    The stationarity condition is log q_k + b q_k = a_k - ν, with ν the row's multiplier. Where one entry takes all but
    a share s of the row and s(1 + b) is tiny, the others are exp(a_k - a_top + b - s(1 + b)) up to the square of that,
    in closed form. The remaining rows, near the borders of clusters, are solved by `_solve_rows`.

    Parameters
    ----------
    a : array of shape (n, k)
    b : array of shape (n, 1)
        Non-negative.

    Returns
    -------
    array of shape (n, k)
    """
    xp = namespace(a)
    tiny = 8 * eps(a) ** 0.5  # its square is the error of the closed form
    a = a - xp.max(a, axis=1)[:, None]
    above = a + b
    shares = exp_or_zero(xp.where(above > 0, 0, above))  # 1 for the largest entry and close rivals
    total = xp.sum(shares, axis=1)[:, None] - 1
    rest = total * (1 + b)
    shrink = xp.exp(-xp.where(rest < tiny, rest, 0))
    q = xp.where(a == 0, 1 - total * shrink, shares * shrink)
    open_rows = (rest >= tiny)[:, 0]
    if bool(xp.any(open_rows)):
        q[open_rows] = _solve_rows(a[open_rows], b[open_rows])
    return q


def _solve_rows(a: Array, b: Array, n_newton: int = 100) -> Array:
    """Solve the stationarity equations and Σ_k q_k = 1 by Newton's method in (log q, ν) jointly.

    u + b exp(u) is convex and increasing in u = log q. Started from upper bounds of u, for a ν at which the largest
    entry alone would be 1, the steps approach the solution from one side.
    """
    xp = namespace(a)
    tol = 8 * eps(a)
    nu, u = -b, _upper_bound(a + b, b)
    for _ in range(n_newton):
        q = xp.exp(u)
        slope, residual = 1 / (1 + b * q), a - nu - u - b * q
        weight = q * slope
        total = xp.sum(weight, axis=1)[:, None]
        step = (xp.sum(weight * residual, axis=1)[:, None] + xp.sum(q, axis=1)[:, None] - 1) / total
        nu, u = nu + step, u + (residual - step) * slope
        if not bool(xp.any(xp.abs(step) * total > tol)) and not bool(xp.any(xp.abs(weight * residual) > tol)):
            break
    q = exp_or_zero(u)
    return normalize_row_sums(q)


def _upper_bound(s: Array, b: Array) -> Array:
    """Bound from above the u with u + b exp(u) = s: Lambert's W(exp t) is below softplus(t), and u is below s."""
    xp = namespace(s)
    log_b = xp.log(xp.where(b > 0, b, 1))
    t = s + log_b
    softplus = xp.where(t > 0, t, 0) + xp.log1p(xp.exp(-xp.abs(t)))
    bound = xp.log(xp.where(t > -20, softplus, 1)) - log_b
    return xp.where((t > -20) & (b > 0) & (bound < s), bound, s)
