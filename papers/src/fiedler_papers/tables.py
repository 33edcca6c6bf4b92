"""Tables from records: one line per method and place, with the published figure, the difference and a mark.

A place is the name of a grid point such as ``k=5``, or of a row that summarises all of them.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .protocol import Experiment, GridPoint, Protocol, grid_points
from .records import Record, record_key

AVERAGE = "average"  # a place that summarises a column
BEST, LOWEST_CUT = "best", "lowest cut"  # of all draws: by the score itself, and by the Ratio Cut
ONE_OF_ALL = (BEST, LOWEST_CUT)  # places with one figure out of all draws, which has no error
NO_GRID = "mean"  # the only place of an experiment without a grid
SCORES = {
    "AC": "Accuracy",
    "NMI": "Normalised mutual information",
    "BR": "Balanced Rand index",
    "error": "Error (lower is better)",
    "cut": "Ratio Cut in units of the mean weight",
}
LOWER_IS_BETTER = {"error", "cut"}
INCOMPARABLE = {"cut"}  # depends on the weights of the papers' graphs, which are not known
EQUAL_STANDARD_ERRORS = 2.0  # two figures within so many standard errors count as equal


class Mean(NamedTuple):
    """A mean over draws."""

    value: float
    error: float  # standard error; nan for one draw
    draws: int


class Published(NamedTuple):
    """A printed figure."""

    value: float
    half_unit: float  # half a unit of its last digit, the precision of the figure
    error: float = 0.0  # standard error, where a spread over the draws is printed


class TableLine(NamedTuple):
    """One method at one place of a table: the published figure and ours."""

    data: str
    method: str
    label: str
    place: str  # "k=5", or "average"
    score: str
    published: Published | None
    ours: Mean

    @property
    def difference(self) -> float | None:
        """Our figure minus the published one."""
        if self.published is None or self.score in INCOMPARABLE:
            return None
        return self.ours.value - self.published.value

    @property
    def mark(self) -> str | None:
        """'better', 'equal' or 'worse'; None for incomparable figures, a single draw, or one of several draws.

        Equal means a difference within two standard errors (of ours, and of theirs where they print a spread), or
        within half a printed digit. The best by the true labels grows with the number of draws, so it has no mark.
        """
        if self.difference is None or self.published is None or self.ours.draws < 2 or self.place in ONE_OF_ALL:
            return None
        error = math.hypot(0.0 if math.isnan(self.ours.error) else self.ours.error, self.published.error)
        if abs(self.difference) <= max(EQUAL_STANDARD_ERRORS * error, self.published.half_unit * (1 + 1e-9)):
            return "equal"
        better = (self.difference < 0) == (self.score in LOWER_IS_BETTER)
        return "better" if better else "worse"


def read_published(path: Path, draws: int = 1) -> dict[tuple[str, ...], Published]:
    """Read published figures, means over ``draws``, by (table, data, place, method, score); empty without a file."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("table", "data", "at", "method", "score")
    return {tuple(row[name] for name in names): _printed(row["value"], row["spread"], draws) for row in rows}


def _printed(text: str, spread: str, draws: int) -> Published:
    return Published(float(text), 0.5 * 10.0 ** -len(text.partition(".")[2]), float(spread or 0) / math.sqrt(draws))


def mean_of(values: Sequence[float]) -> Mean:
    """Return mean and standard error.

    Examples
    --------
    >>> mean_of([1.0, 2.0, 3.0])
    Mean(value=2.0, error=0.577..., draws=3)
    """
    n = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Mean(float(np.mean(values)), error, n)


def average_of(columns: Sequence[dict[int, float]]) -> Mean:
    """Return the mean over places, as in the last rows of the papers' tables.

    Its error comes from the averages of those draws that all places have: the classes of a draw at one place are among
    those at the next, so that places are not independent.
    """
    value = float(np.mean([np.mean(list(column.values())) for column in columns]))
    complete = sorted(set.intersection(*(set(column) for column in columns)))
    by_draw = [float(np.mean([column[draw] for column in columns])) for draw in complete]
    return Mean(value, mean_of(by_draw).error if by_draw else math.nan, min(len(column) for column in columns))


def best_of(values: Sequence[float], score: str) -> Mean:
    """Return the best of all draws by the score itself, as in [nle, Table II]."""
    return Mean((min if score in LOWER_IS_BETTER else max)(values), math.nan, len(values))


def at_lowest_cut(values: dict[int, float], cuts: dict[int, float]) -> Mean:
    """Return the mean score of the draws with the lowest cut, which is how the text of [nle, X-B] defines "best".

    Examples
    --------
    >>> at_lowest_cut({0: 0.7, 1: 0.9, 2: 0.8}, {0: 540.0, 1: 541.0, 2: 540.0})
    Mean(value=0.75, error=nan, draws=3)
    """
    lowest = min(cuts.values())
    return Mean(float(np.mean([values[draw] for draw, cut in cuts.items() if cut == lowest])), math.nan, len(cuts))


def select_records(
    protocol: Protocol, experiment: Experiment, records: Iterable[Record], backend: str | None = None
) -> list[Record]:
    """Return one record per successful cell of an experiment, sorted by draw.

    Of several records of a cell, the one of ``backend`` is preferred.
    """
    wanted = {cell.key for cell in protocol.cells_of(experiment)}
    selected: dict[tuple[str, ...], Record] = {}
    for record in records:
        key = record_key(record)
        if key in wanted and "error" not in record and (key not in selected or record["backend"] == backend):
            selected[key] = record
    return sorted(selected.values(), key=lambda record: record["draw"])


def table_lines(
    protocol: Protocol, experiment: Experiment, records: Iterable[Record], backend: str | None = None
) -> list[TableLine]:
    """Return all lines of an experiment, in the order of its methods; averages only of complete columns."""
    published = read_published(protocol.folder / "published.csv", experiment.draws)
    values = values_by_draw(select_records(protocol, experiment, records, backend))
    places = [place_name(at) for at in grid_points(experiment.grid)]
    lines = []
    for data, method, score in itertools.product(experiment.data, experiment.methods, experiment.scores):
        column = protocol.methods[method].published or ""
        for place, mean in _means(values, places, (data, method, score)).items():
            printed_place = BEST if place in ONE_OF_ALL else place  # the text has one "best", with two readings
            printed = published.get((experiment.table or "", data, printed_place, column, score))
            if place not in ONE_OF_ALL or printed is not None:
                lines.append(TableLine(data, method, protocol.methods[method].label, place, score, printed, mean))
    return lines


Values = dict[tuple[str, str, str, str], dict[int, float]]  # values by draw, by (data, method, place, score)


def values_by_draw(records: Iterable[Record]) -> Values:
    """Return the scores of records by data set, method, place and score, then by draw."""
    values: Values = defaultdict(dict)
    for record in records:
        for score, value in record["scores"].items():
            values[record["data"], record["method"], place_name(record["at"]), score][record["draw"]] = value
    return values


def _means(values: Values, places: Sequence[str], key: tuple[str, str, str]) -> dict[str, Mean]:
    """Return the means of one method by place, their average, and the best draws where there is no grid."""
    data, method, score = key
    columns = {place: values[data, method, place, score] for place in places if values[data, method, place, score]}
    means = {place: mean_of(list(column.values())) for place, column in columns.items()}
    if len(columns) == len(places) > 1:
        means[AVERAGE] = average_of(list(columns.values()))
    if columns and places == [NO_GRID]:
        means[BEST] = best_of(list(columns[NO_GRID].values()), score)
        cuts = values[data, method, NO_GRID, "cut"]
        if cuts and score != "cut":
            means[LOWEST_CUT] = at_lowest_cut(columns[NO_GRID], cuts)
    return means


def count_failures(protocol: Protocol, experiment: Experiment, records: Iterable[Record]) -> dict[str, int]:
    """Count the cells of each method that failed and have no other record."""
    wanted = {cell.key for cell in protocol.cells_of(experiment)}
    records = list(records)
    succeeded = {record_key(record) for record in records if "error" not in record}
    failed = {record_key(record): record["method"] for record in records if "error" in record}
    return Counter(method for key, method in failed.items() if key in wanted - succeeded)


def place_name(at: GridPoint) -> str:
    """Name a grid point, ``k=5``, independently of the order of its sides; without a grid, the mean over all draws.

    Examples
    --------
    >>> place_name({"lam": 10, "k": 5}) == place_name({"k": 5, "lam": 10}) == "k=5 lam=10"
    True
    """
    return " ".join(f"{name}={at[name]}" for name in sorted(at, key=lambda name: (len(name), name))) or NO_GRID
