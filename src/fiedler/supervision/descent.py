"""Minimising the objective of the learned Laplacian: the doubling rule of the paper, and L-BFGS held near the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from ..core.backend import Array, asarray_like, namespace, to_numpy
from ..core.progress import stage


class Descent(NamedTuple):
    """Where a minimisation ended, and how."""

    theta: Array
    history: dict[str, list[float]]
    n_iter: int
    converged: bool
    n_failures: int = 0


Evaluate = Callable[[Array], tuple[float, Array]]


def doubling(evaluate: Evaluate, theta: Array, *, max_iter: int, rate: float = 1.0) -> Descent:
    """Gradient steps whose rate doubles after a step that does not raise Q and halves, the step undone, after one that
    does; ``max_iter`` of them, undone ones counted. [learned_laplacian, Fig. 1]
    """
    value, gradient = evaluate(theta)
    history: dict[str, list[float]] = {"objective": [value], "rate": [rate]}
    failures = 0
    with stage("descent", max_iter) as tick:
        for _ in range(max_iter):
            moved = theta - rate * gradient
            found, slope = evaluate(moved)
            if found <= value:  # false for NaN too
                theta, value, gradient, rate = moved, found, slope, 2 * rate
            else:
                failures, rate = failures + 1, 0.5 * rate
            history["objective"].append(value)
            history["rate"].append(rate)
            tick()
    return Descent(theta, history, max_iter, True, failures)


def near_the_start(
    evaluate: Evaluate, theta: Array, *, max_iter: int, penalty: float, size: float, at: Array | None = None
) -> Descent:
    """L-BFGS on Q + penalty · size · ‖θ - θ₀‖²/‖θ₀‖², θ₀ = ``theta``, beginning ``at`` θ₀ or elsewhere.

    Without a penalty it overfits the pairs.
    """
    first = to_numpy(theta if at is None else at).astype(np.float64).ravel()
    start = to_numpy(theta).astype(np.float64).ravel()
    unit = penalty * size / float(start @ start)
    history: dict[str, list[float]] = {"objective": [], "penalty": []}

    def penalised(flat: np.ndarray) -> tuple[float, np.ndarray]:
        moved = namespace(theta).reshape(asarray_like(flat, theta, dtype=theta.dtype), theta.shape)
        value, gradient = evaluate(moved)
        away = flat - start
        return value + unit * float(away @ away), to_numpy(gradient).astype(np.float64).ravel() + 2 * unit * away

    def note(intermediate_result: Any) -> None:
        away = intermediate_result.x - start
        history["penalty"].append(unit * float(away @ away))
        history["objective"].append(float(intermediate_result.fun) - history["penalty"][-1])
        tick()

    with stage("descent", max_iter) as tick:
        found = minimize(penalised, first, jac=True, method="L-BFGS-B", callback=note, options={"maxiter": max_iter})
    theta = namespace(theta).reshape(asarray_like(found.x, theta, dtype=theta.dtype), theta.shape)
    return Descent(theta, history, int(found.nit), bool(found.success))


def best_scale(value: Callable[[float], float], *, lowest: float = -2.0, highest: float = 4.0) -> float:
    """The s in [e^lowest, e^highest] of the smallest value: the best of a grid, refined between its neighbours."""
    grid = np.linspace(lowest, highest, 13)
    best = int(np.argmin([value(float(np.exp(at))) for at in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda at: value(float(np.exp(at))), bounds=around, method="bounded", options={"xatol": 0.02}
    )
    return float(np.exp(found.x))
