"""Memberships by a random walk on a graph in blocks, see :mod:`fiedler.clustering.memberships`.

The memberships are the solution of F = (1-γ) P + γ D⁻¹W F. The eigenvalues of γ D⁻¹W are real and between -γ and γ, so
Chebyshev's semi-iteration

    F_{t+1} = ω_{t+1} ((1-γ) P + γ D⁻¹W F_t - F_{t-1}) + F_{t-1},
    ω_1 = 1,      ω_2 = 2 / (2 - γ²),      ω_{t+1} = 1 / (1 - γ² ω_t / 4),

[Golub & Varga 1961] reduces the error by the factor γ / (1 + √(1-γ²)) in every step, 0.41 for γ = 0.7, without sums
over all blocks. One step is one task per block.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.backend import Array
from ..core.progress import stage
from .graph import OWN, BlockGraph, GraphBlocks
from .workspace import Workspace

TOLERANCE = 1e-5  # by which errors are reduced


def walk(graph: GraphBlocks, start: str, gamma: float, prefix: str, *, tol: float = TOLERANCE) -> str:
    """Return the step with the memberships from the start of the walk, which another step has written.

    Parameters
    ----------
    graph : GraphBlocks
    start : str
        The step with P.
    gamma : float
        γ, the probability of every step of the walk.
    prefix : str
        Of the names of the steps.
    tol : float
        The factor by which errors are reduced.
    """
    if gamma == 0:
        return start
    run, n_steps = graph.cells.rows.run, n_iterations(gamma, tol)
    previous, current, omega = start, start, 1.0
    with stage("walking", n_steps) as tick:
        for number in range(1, n_steps + 1):
            following = f"{prefix}walk-{number:03d}"
            options = {"graph": graph.step, "size": graph.sizes[-1], "gamma": gamma, "omega": omega}
            steps = {"start": start, "current": current, "previous": previous}
            run.map(following, step_block, graph.cells.n_blocks, **options, **steps)
            if previous not in (start, current):
                run.drop(previous)
            previous, current = current, following
            omega = 2 / (2 - gamma**2) if number == 1 else 1 / (1 - gamma**2 * omega / 4)
            tick()
    if previous != start:
        run.drop(previous)
    return current


def n_iterations(gamma: float, tol: float = TOLERANCE) -> int:
    """Return the number of iterations that reduce errors by a factor.

    Examples
    --------
    >>> n_iterations(0.7)
    14
    """
    rate = gamma / (1 + math.sqrt(1 - gamma**2))
    return math.ceil(math.log(tol / 2) / math.log(rate))


def step_block(
    workspace: Workspace,
    block: int,
    *,
    graph: str,
    size: int,
    gamma: float,
    omega: float,
    start: str,
    current: str,
    previous: str,
) -> dict[str, Array]:
    """Make one step of the iteration on the nodes of a block."""
    rows = BlockGraph.read(workspace, graph, block, size)
    P = workspace.read_one(start, block, OWN)
    before = workspace.read_one(previous, block, OWN)
    degrees = rows.degrees.astype(P.dtype)
    walked = rows.weights @ rows.receive(workspace, current)
    walked *= (gamma / np.where(degrees > 0, degrees, 1))[:, None]
    walked += np.where(degrees > 0, 1 - gamma, 1.0).astype(P.dtype)[:, None] * P  # a node without edges keeps its row
    if omega != 1.0:
        walked = omega * (walked - before) + before
    return rows.share(walked.astype(P.dtype, copy=False))
