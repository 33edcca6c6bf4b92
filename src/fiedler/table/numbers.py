"""A column of numbers on a scale that neither a few cells nor a long tail decides.

A typing error such as 999 among ages makes the standard deviation of its column many times larger, so that the other
rows do not differ in it any more; amounts that span orders of magnitude are, but for the largest few, all alike. With
the quantiles q of a column and the spread s = q₀.₉₅ - q₀.₀₅, a number x therefore becomes

    min(max(z, a), b),     z = x, or sign(x) log(1 + |x| / c) in a skewed column without negative numbers,

with c = q₀.₀₅ of |x| where it is not 0. The bounds are a = q₀.₀₅ - t s and b = q₀.₉₅ + t s of z, with t = `TAIL`: about
six standard deviations from the mean of a Gaussian, where a group of rows is as far from the others as it is at any
distance. If more than `MAX_SUSPICIOUS` of the cells are beyond a bound they are no errors but a part of the data, and
the bound is the most extreme of them.

Columns of one unit, such as pixels, or lengths in centimetres, keep their proportions: what varies more counts more.
They are recognised by their ranges, see :func:`share_a_unit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import warn

TAIL = 1.5  # t
MAX_SUSPICIOUS = 0.005  # share of the cells, on either side; `MIN_SUSPICIOUS` of them are always possible
MIN_SUSPICIOUS = 2
MIN_SKEWNESS = 1.0  # of columns that become logarithms, if these are less skewed
MIN_VALUES = 20  # fewer cells, or fewer that are not the most frequent value, have no tails
LISTED_FROM = 5.0  # spreads from the median, from which a suspicious cell is listed
MAX_SAMPLED = 100_000  # cells from which quantiles are taken
DIFFERENT_SCALES = 100.0  # ratio of the largest standard deviation to the median one, from which arrays give a warning
SAME_UNIT_FACTOR, SAME_UNIT_SHARE, MOSTLY_ONE = 2.0, 0.85, 0.5  # see `share_a_unit`


class NumberScale(NamedTuple):
    """How the numbers of a column are transformed before they are divided by their standard deviation."""

    unit: float = 0.0  # c; 0 for numbers that stay as they are
    lower: float = -np.inf  # a
    upper: float = np.inf  # b
    median: float = 0.0  # of z
    spread: float = np.inf  # s of z

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return min(max(z, a), b); NaN stays."""
        return np.clip(_logarithm(x, self.unit), self.lower, self.upper)

    def invert(self, z: np.ndarray) -> np.ndarray:
        """Return the x of z."""
        return np.sign(z) * self.unit * np.expm1(np.abs(z)) if self.unit else z


class SuspiciousCell(NamedTuple):
    """A number that is far from all others of its column."""

    column: str
    row: int
    value: float | str  # a number, or a date
    n_spreads: float  # distance from the median, in spreads of the numbers or of their logarithms

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else f"{self.value:g}"
        return f"{self.column} {value} in row {self.row} ({self.n_spreads:.0f} times the usual spread)"


def _logarithm(x: np.ndarray, unit: float) -> np.ndarray:
    return np.sign(x) * np.log1p(np.abs(x) / unit) if unit else x


def fit_scale(x: np.ndarray, use_logarithms: bool = True) -> NumberScale:
    """Return the scale of the numbers of a column; NaN are left out."""
    x = _sampled(x)
    if not np.isfinite(4 * np.abs(x).max()):  # differences would overflow
        return NumberScale()
    plain = _bounded(x, 0.0)
    is_positive = np.count_nonzero(x < 0) <= _n_suspicious(x) and x.any()
    if not (use_logarithms and is_positive) or np.isinf(plain.spread):
        return plain
    unit = float(np.percentile(np.abs(x[x != 0]), 5))
    if not np.isfinite(np.abs(x).max() / unit):
        return plain
    scale = _bounded(x, unit)
    before, after = (abs(_skewness(one.apply(x))) for one in (plain, scale))
    return scale if before >= MIN_SKEWNESS and after < before else plain


def _sampled(x: np.ndarray) -> np.ndarray:
    """Return some of many numbers, without NaN."""
    x = x[~np.isnan(x)]
    return x if len(x) <= MAX_SAMPLED else x[np.random.RandomState(0).randint(len(x), size=MAX_SAMPLED)]


def _bounded(x: np.ndarray, unit: float) -> NumberScale:
    """Return the scale with the bounds of the logarithms in a unit, or of the numbers themselves."""
    z = _logarithm(x, unit)
    inner = _inner_quantiles(z)
    if inner is None:
        return NumberScale(unit)
    low, median, high = map(float, inner)
    lower, upper = low - TAIL * (high - low), high + TAIL * (high - low)
    lower = lower if np.count_nonzero(z < lower) <= _n_suspicious(z) else float(z.min())
    upper = upper if np.count_nonzero(z > upper) <= _n_suspicious(z) else float(z.max())
    return NumberScale(unit, lower, upper, median, high - low)


def _n_suspicious(z: np.ndarray) -> float:
    """Return how many of some cells may be suspicious."""
    return max(MIN_SUSPICIOUS, MAX_SUSPICIOUS * len(z))


def _inner_quantiles(z: np.ndarray) -> np.ndarray | None:
    """Return the quantiles .05, .5 and .95, of a column of mostly one value those of the others; None for a few."""
    quantiles = np.percentile(z, [5, 50, 95])
    if quantiles[0] == quantiles[2]:
        z = z[z != quantiles[1]]
        quantiles = np.percentile(z, [5, 50, 95]) if len(z) else quantiles
    return quantiles if len(z) >= MIN_VALUES and quantiles[0] < quantiles[2] else None


def _skewness(z: np.ndarray) -> float:
    z = z / (np.abs(z).max() or 1.0)
    centred = z - z.mean()
    deviation = centred.std()
    return float(np.mean((centred / deviation) ** 3)) if deviation > 0 else 0.0


def share_a_unit(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return which columns of numbers have the unit of most of them, a mask of all.

    The ranges of at least `SAME_UNIT_SHARE` of the columns, without their suspicious cells, are then within the factor
    `SAME_UNIT_FACTOR` of the median range. Of the others, columns of a smaller range that are mostly one value have the
    unit, too, such as pixels near the border.
    """
    if len(columns) < 2:
        return np.zeros(len(columns), dtype=bool)
    sampled = [_sampled(x) for x in columns]
    with np.errstate(over="ignore"):
        ranges = np.array([np.ptp(fit_scale(x, use_logarithms=False).apply(x)) for x in sampled])
    median = np.median(ranges)
    alike = (ranges <= SAME_UNIT_FACTOR * median) & (ranges * SAME_UNIT_FACTOR >= median) & (ranges > 0)
    if alike.mean() < SAME_UNIT_SHARE:
        return np.zeros(len(columns), dtype=bool)
    is_smaller = (ranges > 0) & (ranges < median)
    return alike | (is_smaller & np.array([np.mean(x == np.median(x)) > MOSTLY_ONE for x in sampled]))


def suspicious_cells(name: str, x: np.ndarray, scale: NumberScale, kind: str = "number") -> list[SuspiciousCell]:
    """Return the numbers of a column beyond the bounds and farther than `LISTED_FROM` spreads from the median."""
    z = _logarithm(x, scale.unit)
    distances = np.abs(z - scale.median) / scale.spread
    far = np.flatnonzero(((z < scale.lower) | (z > scale.upper)) & (distances >= LISTED_FROM))
    show = float if kind == "number" else lambda days: str(np.datetime64(round(float(days)), "D"))
    return [SuspiciousCell(name, int(row), show(x[row]), float(distances[row])) for row in far]


def warn_about_scales(X: np.ndarray) -> None:
    """Warn if one column of an array, whose columns have no names and are taken as they are, decides all distances."""
    if X.shape[1] < 2 or X.dtype.kind != "f":
        return
    deviations = (X[:: max(1, len(X) // MAX_SAMPLED)]).std(axis=0)
    largest, median = float(deviations.max()), float(np.median(deviations))
    if median > 0 and largest >= DIFFERENT_SCALES * median:
        problem = f"the columns have very different scales: column {int(deviations.argmax())} varies"
        problem += f" {largest / median:.0f} times as much as the median column, so it decides the clusters"
        hint = "pass a data frame, whose columns are brought to a common scale, or scale them"
        warn(problem, hint, code="different_scales", stacklevel=4, column=int(deviations.argmax()))
