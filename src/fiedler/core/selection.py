"""The choice between results whose values may be equal up to rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

T = TypeVar("T")
ROUNDING = 1e-9  # relative; values that are closer are equal up to rounding


def first_best(results: Iterable[T], value: Callable[[T], float | tuple[float, ...]], *, lowest: bool = False) -> T:
    """Return the first of the results whose value is highest, or lowest, up to rounding.

    Several starts can end in one partition. Their values then differ by rounding, which depends on the processor and
    the number of threads, and so would the result that a plain maximum returns.

    Parameters
    ----------
    results : iterable
        At least one result.
    value : callable
        The value of a result; of tuples, the first entry counts most.
    lowest : bool, default=False
        Whether the lowest value is the best.

    Examples
    --------
    >>> first_best([0.1, 0.3, 0.1 + 0.2], value=float)
    0.3
    >>> first_best([0.5, 1e-18, 0.0], value=float, lowest=True)
    1e-18
    >>> first_best([np.inf, np.inf], value=float, lowest=True)
    inf
    """
    results = list(results)
    values = [np.atleast_1d(value(result)) for result in results]
    best = (min if lowest else max)(values, key=tuple)
    resolution = ROUNDING * np.nan_to_num(np.abs(values), nan=0.0, posinf=0.0).max(axis=0)  # also of values near zero
    with np.errstate(invalid="ignore"):  # infinities are equal or not
        is_best = [np.all((np.abs(own - best) <= resolution) | (own == best) | np.isnan(own)) for own in values]
    return next(result for result, good in zip(results, is_best) if good)
