"""Minimisers of the learned Laplacian's objective: the doubling rule of the paper, and two with a penalty.

L-BFGS uses the gradient alone. Levenberg-Marquardt, which the paper names (section III-C), uses that the objective is a
sum of squares, and solves its linear systems by conjugate gradients: no matrix of the size of A squared is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize, minimize_scalar

from .._records import FitHistory
from ..core.backend import Array, asarray_like, namespace, to_numpy
from ..core.progress import stage
from .objective import Residuals

FIRST_DAMPING = 1e-3  # of Levenberg-Marquardt, relative to the curvature along the gradient
SMALLEST_DECREASE = 1e-9  # of the objective, relative to its size, at which Levenberg-Marquardt has converged
MAX_INNER_ITERATIONS = 100  # of conjugate gradients in one step
INNER_TOL = 1e-3  # relative residual of the linear system of a step


class DescentResult(NamedTuple):
    """The parameters that a minimisation reached, and how it ended."""

    theta: Array
    history: FitHistory
    n_iter: int
    converged: bool
    n_failures: int = 0


ValueAndGradient = Callable[[Array], tuple[float, Array]]


def doubling_descent(evaluate: ValueAndGradient, theta: Array, *, max_iter: int, rate: float = 1.0) -> DescentResult:
    """Minimise by gradient steps with the doubling rule. [learned_laplacian, Fig. 1]

    The rate doubles after a step that does not increase Q; otherwise the step is undone and the rate halves. There are
    ``max_iter`` steps, including those undone.
    """
    value, gradient = evaluate(theta)
    values, rates, n_failures = [value], [rate], 0
    with stage("descent", max_iter) as tick:
        for _ in range(max_iter):
            new_theta = theta - rate * gradient
            new_value, new_gradient = evaluate(new_theta)
            if new_value <= value:  # false for NaN too
                theta, value, gradient, rate = new_theta, new_value, new_gradient, 2 * rate
            else:
                n_failures, rate = n_failures + 1, 0.5 * rate
            values.append(value)
            rates.append(rate)
            tick()
    history = FitHistory(
        np.array(values), maximize=False, terms={"rate": np.array(rates)}, iterations=np.arange(max_iter + 1)
    )
    return DescentResult(theta, history, max_iter, True, n_failures)


def penalized_lbfgs(
    evaluate: ValueAndGradient,
    center: Array,
    *,
    max_iter: int,
    penalty: float,
    unit: float,
    start: Array | None = None,
) -> DescentResult:
    """Minimise Q + penalty · unit · ‖θ - θ₀‖²/‖θ₀‖² by L-BFGS, with θ₀ = ``center``, from ``start`` (default θ₀).

    Without the penalty, Q overfits the pairs.
    """
    flat_start = to_numpy(center if start is None else start).astype(np.float64).ravel()
    flat_center = to_numpy(center).astype(np.float64).ravel()
    weight = penalty * unit / float(flat_center @ flat_center)
    objectives: list[float] = []
    penalties: list[float] = []

    def unflatten(flat: np.ndarray) -> Array:
        return namespace(center).reshape(asarray_like(flat, center, dtype=center.dtype), center.shape)

    def penalized(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evaluate(unflatten(flat))
        offset = flat - flat_center
        return value + weight * float(offset @ offset), to_numpy(gradient).astype(
            np.float64
        ).ravel() + 2 * weight * offset

    def record(intermediate_result: OptimizeResult) -> None:
        offset = intermediate_result.x - flat_center
        penalties.append(weight * float(offset @ offset))
        objectives.append(float(intermediate_result.fun))
        tick()

    with stage("descent", max_iter, at_most=True) as tick:
        result = minimize(
            penalized, flat_start, jac=True, method="L-BFGS-B", callback=record, options={"maxiter": max_iter}
        )
        if not objectives:  # the start is a minimum already
            record(result)
    history = penalized_history(objectives, penalties, first=min(int(result.nit), 1))
    return DescentResult(unflatten(result.x), history, int(result.nit), bool(result.success))


def levenberg_marquardt(
    residuals: Callable[[Array], Residuals],
    center: Array,
    *,
    max_iter: int,
    penalty: float,
    unit: float,
    start: Array | None = None,
) -> DescentResult:
    """Minimise the same objective as :func:`penalized_lbfgs` by the Levenberg-Marquardt algorithm.

    A step solves (J'J + (ω + μ)I) δ = -(J'r + ω(θ - θ₀)), with ω the weight of the penalty. It is undone, and the
    damping μ raised, if the objective rises; μ falls the more, the better the linear model predicted the decrease
    [Nielsen 1999]. There are at most ``max_iter`` steps, including those undone.
    """
    xp = namespace(center)
    weight = penalty * unit / float(xp.sum(center * center))
    theta = center if start is None else start
    at = residuals(theta)
    offset = theta - center
    value, gradient = at.loss + weight * float(xp.sum(offset * offset)), at.adjoint(at.values) + weight * offset
    damping, growth = FIRST_DAMPING * (_curvature(at, gradient) + weight), 2.0
    values, penalties, n_failures, converged = [value], [value - at.loss], 0, False
    with stage("descent", max_iter, at_most=True) as tick:
        while len(values) <= max_iter and not converged:
            step = _conjugate_gradients(_normal_product(at, weight + damping), -gradient)
            predicted = damping * float(xp.sum(step * step)) - float(xp.sum(gradient * step))
            new_at, new_offset = residuals(theta + step), theta + step - center
            new_value = new_at.loss + weight * float(xp.sum(new_offset * new_offset))
            smallest = SMALLEST_DECREASE * max(abs(value), 1.0)
            converged = predicted <= smallest
            if new_value <= value:  # false for NaN too
                gain = (value - new_value) / max(predicted, smallest)
                converged = converged or value - new_value <= smallest
                theta, at, offset, value = theta + step, new_at, new_offset, new_value
                gradient = at.adjoint(at.values) + weight * offset
                damping, growth = damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
            else:
                damping, growth, n_failures = damping * growth, 2 * growth, n_failures + 1
            values.append(value)
            penalties.append(value - at.loss)
            tick()
    history = penalized_history(values, penalties, first=0)
    return DescentResult(theta, history, len(values) - 1, converged, n_failures)


def _normal_product(at: Residuals, shift: float) -> Callable[[Array], Array]:
    """Return the product of J'J + shift · I with an array."""
    return lambda v: at.adjoint(at.forward(v)) + shift * v


def _curvature(at: Residuals, direction: Array) -> float:
    """Return v'J'Jv / v'v; 1 for v = 0."""
    xp = namespace(direction)
    length = float(xp.sum(direction * direction))
    return float(xp.sum(at.forward(direction) ** 2)) / length if length > 0 else 1.0


def _conjugate_gradients(product: Callable[[Array], Array], target: Array) -> Array:
    """Solve Av = b approximately, for a positive definite A and arrays of any shape."""
    xp = namespace(target)
    solution, residual, direction = xp.zeros_like(target), target, target
    length = first = float(xp.sum(target * target))
    for _ in range(min(MAX_INNER_ITERATIONS, 2 * int(np.prod(target.shape)))):
        if length <= INNER_TOL**2 * first:
            break
        image = product(direction)
        rate = length / float(xp.sum(direction * image))
        solution, residual = solution + rate * direction, residual - rate * image
        last, length = length, float(xp.sum(residual * residual))
        direction = residual + (length / last) * direction
    return solution


def penalized_history(objectives: list[float], penalties: list[float], *, first: int = 1) -> FitHistory:
    """Build a history of the penalised objective with its two terms, the loss Q and the penalty."""
    terms = {"loss": np.subtract(objectives, penalties), "penalty": np.array(penalties)}
    return FitHistory(np.array(objectives), False, terms, iterations=np.arange(first, first + len(objectives)))


def best_scale(value: Callable[[float], float], *, log_min: float = -2.0, log_max: float = 4.0) -> float:
    """Return the s in [e^log_min, e^log_max] with the smallest value: a grid search, refined around its best point."""
    grid = np.linspace(log_min, log_max, 13)
    best = int(np.argmin([value(float(np.exp(log_scale))) for log_scale in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(
        lambda log_scale: value(float(np.exp(log_scale))), bounds=bounds, method="bounded", options={"xatol": 0.02}
    )
    return float(np.exp(result.x))
