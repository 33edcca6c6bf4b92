"""Immutable records of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import InputError


@dataclass(frozen=True, eq=False)
class FitHistory(Mapping[str, np.ndarray]):
    """History of an iterative fit: the objective and its terms, one value per iteration.

    It is a mapping from ``"objective"`` and the names of the terms to arrays, so
    ``pandas.DataFrame(dict(model.history_))`` is a table with one row per iteration.

    Attributes
    ----------
    objective : array of shape (n_iterations,)
        The value that the fit improves.
    maximize : bool
        Whether a larger objective is better.
    iterations : array of shape (n_iterations,)
        The iteration after which each value was recorded, 0 for the start; by default 1, 2, ...
    terms : dict of arrays of shape (n_iterations,)
        Further recorded quantities: parts of the objective (``"likelihood"``, ``"penalty"``), the size of the step
        (``"change"``) or other criteria (``"cut"``). NaN where a value was not computed.

    Examples
    --------
    >>> from fiedler import FitHistory
    >>> history = FitHistory([3.0, 2.0, 1.5], maximize=False, terms={"change": [1.0, 0.5, 0.1]})
    >>> float(history.objective[-1]), history.iterations.tolist(), list(history)
    (1.5, [1, 2, 3], ['objective', 'change'])
    """

    objective: np.ndarray
    maximize: bool
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    iterations: np.ndarray | None = None

    def __post_init__(self) -> None:
        objective = np.asarray(self.objective, dtype=np.float64)
        iterations = np.arange(1, len(objective) + 1) if self.iterations is None else np.asarray(self.iterations)
        terms = {name: np.asarray(values, dtype=np.float64) for name, values in self.terms.items()}
        for name, values in {"iterations": iterations, **terms}.items():
            if values.shape != objective.shape:
                problem = f"{name} has {len(values)} values, but the objective has {len(objective)}"
                raise InputError(problem, code="wrong_length")
        for name, value in (("objective", objective), ("terms", terms), ("iterations", iterations)):
            object.__setattr__(self, name, value)

    @classmethod
    def _from_steps(cls, steps: Sequence[Any], *, maximize: bool) -> FitHistory:
        """Build the history from one named tuple per iteration, of which ``objective`` is one field."""
        columns = {name: [getattr(step, name) for step in steps] for name in steps[0]._fields}
        return cls(columns.pop("objective"), maximize, columns)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FitHistory):
            return NotImplemented
        same = self.maximize == other.maximize and list(self) == list(other)
        arrays = [(self.iterations, other.iterations), *((self[name], other[name]) for name in self if same)]
        return same and all(np.array_equal(mine, theirs, equal_nan=True) for mine, theirs in arrays)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.objective if name == "objective" else self.terms[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("objective", *self.terms))

    def __len__(self) -> int:
        return 1 + len(self.terms)

    def __add__(self, later: FitHistory) -> FitHistory:
        """Append the iterations of a fit that continued this one."""
        terms = {name: np.concatenate([values, later.terms[name]]) for name, values in self.terms.items()}
        assert self.iterations is not None
        assert later.iterations is not None
        iterations = np.concatenate([self.iterations, self.iterations[-1] + later.iterations])
        return FitHistory(np.concatenate([self.objective, later.objective]), self.maximize, terms, iterations)


@dataclass(frozen=True)
class EigenResult:
    """Eigenpairs and how they were reached."""

    values: Any  # (k,), ascending
    vectors: Any  # (n, k), columns, whose entry of largest magnitude is positive
    residuals: Any  # (k,): ‖A u - λ B u‖ for ‖u‖ = 1, in units of the matrix
    iterations: int  # rounds of the solver; 0 for a direct one
    converged: bool  # whether every residual is within the tolerance
    method: str  # the solver that was used


@dataclass(frozen=True)
class KMeansResult:
    """The best of several runs of k-means."""

    labels: Any  # (n,)
    centers: Any  # (k, d)
    inertia: float  # sum of squared distances to the centres; for the cosine variant, of 1 - cosine
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class CommunityResult:
    """A partition of a graph's nodes."""

    labels: Any  # (n,)
    modularity: float  # at `resolution`
    resolution: float
    n_communities: int  # that are not empty
    # the spectral partitions that the search began from, by name
    starts: dict[str, Any] = field(default_factory=dict)
