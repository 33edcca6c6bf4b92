"""Records beside the published figures: one row a method and place, with difference and mark."""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .protocol import At, Experiment, Protocol
from .protocol import places as grid_places
from .records import Record, key_of

AVERAGE, BEST = "average", "best"
PLACELESS = "mean"  # the only place of an experiment without a grid
SCORES = {
    "AC": "Accuracy",
    "NMI": "Normalised mutual information",
    "BR": "Balanced Rand index",
    "error": "Error (lower is better)",
    "cut": "Ratio Cut in units of the mean weight",
}
LOWER_IS_BETTER = {"error", "cut"}
INCOMPARABLE = {"cut"}  # the papers' graphs, whose weights it is made of, are not known
WITHIN = 2.0  # standard errors, within which two figures count as equal


class Mean(NamedTuple):
    """A mean over draws."""

    value: float
    error: float  # standard error; nan for one draw
    draws: int


class Published(NamedTuple):
    """A printed figure."""

    value: float
    half_unit: float  # half a unit of its last digit: nothing nearer can be told from it
    error: float = 0.0  # standard error, where a spread over the draws is printed


class Line(NamedTuple):
    """One method at one place of a table: published, ours, difference, mark."""

    data: str
    method: str
    label: str
    place: str  # "k=5", or "average"
    score: str
    published: Published | None
    ours: Mean

    @property
    def difference(self) -> float | None:
        """Ours less the published one."""
        if self.published is None or self.score in INCOMPARABLE:
            return None
        return self.ours.value - self.published.value

    @property
    def mark(self) -> str | None:
        """'better', 'equal' or 'worse'; None where there is nothing to compare, one draw, or a best of many.

        Equal is what lies within two standard errors, of ours and of theirs where they print a spread, or half a
        printed digit. A best by the true labels grows with the number of draws and is no mean to be compared.
        """
        if self.difference is None or self.published is None or self.ours.draws < 2 or self.place == BEST:
            return None
        error = math.hypot(0.0 if math.isnan(self.ours.error) else self.ours.error, self.published.error)
        if abs(self.difference) <= max(WITHIN * error, self.published.half_unit * (1 + 1e-9)):
            return "equal"
        better = (self.difference < 0) == (self.score in LOWER_IS_BETTER)
        return "better" if better else "worse"


def read_published(path: Path, draws: int = 1) -> dict[tuple[str, ...], Published]:
    """(table, data, place, method, score) to the printed figure, a mean over ``draws``; empty without such a file."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("table", "data", "at", "method", "score")
    return {tuple(row[name] for name in names): _printed(row["value"], row["spread"], draws) for row in rows}


def _printed(text: str, spread: str, draws: int) -> Published:
    return Published(float(text), 0.5 * 10.0 ** -len(text.partition(".")[2]), float(spread or 0) / math.sqrt(draws))


def mean_of(values: Sequence[float]) -> Mean:
    """Mean and standard error.

    Examples
    --------
    >>> mean_of([1.0, 2.0, 3.0])
    Mean(value=2.0, error=0.577..., draws=3)
    """
    n = len(values)
    spread = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Mean(float(np.mean(values)), spread, n)


def average_of(columns: Sequence[dict[int, float]]) -> Mean:
    """The mean of the places' means, as the papers' last rows; its error from the averages of whole draws.

    The classes of a draw at one place are among those at the next, so that places are not independent.
    """
    value = float(np.mean([np.mean(list(column.values())) for column in columns]))
    whole = sorted(set.intersection(*(set(column) for column in columns)))
    by_draw = [float(np.mean([column[draw] for column in columns])) for draw in whole]
    return Mean(value, mean_of(by_draw).error if by_draw else math.nan, min(len(column) for column in columns))


def best_of(values: Sequence[float], score: str) -> Mean:
    """The best of all draws by the score itself, as [nle, Table II] has it."""
    return Mean((min if score in LOWER_IS_BETTER else max)(values), math.nan, len(values))


def counted(
    protocol: Protocol, experiment: Experiment, records: Iterable[Record], backend: str | None = None
) -> list[Record]:
    """The records of an experiment's cells that did not fail: one a cell, the wanted back end's if there are several.

    In the order of the draws.
    """
    wanted = {cell.key for cell in protocol.cells_of(experiment)}
    found: dict[tuple[str, ...], Record] = {}
    for record in records:
        key = key_of(record)
        if key in wanted and "error" not in record and (key not in found or record["backend"] == backend):
            found[key] = record
    return sorted(found.values(), key=lambda record: record["draw"])


def lines(
    protocol: Protocol, experiment: Experiment, records: Iterable[Record], backend: str | None = None
) -> list[Line]:
    """All lines of an experiment, in the order of its methods; averages only over whole columns."""
    published = read_published(protocol.folder / "published.csv", experiment.draws)
    values = _by_draw(counted(protocol, experiment, records, backend))
    places = [place_name(at) for at in grid_places(experiment.grid)]
    found = []
    for data, method, score in itertools.product(experiment.data, experiment.methods, experiment.scores):
        column = protocol.methods[method].published or ""
        for place, mean in _means(values, places, (data, method, score)).items():
            printed = published.get((experiment.table or "", data, place, column, score))
            if place != BEST or printed is not None:
                found.append(Line(data, method, protocol.methods[method].label, place, score, printed, mean))
    return found


Values = dict[tuple[str, str, str, str], dict[int, float]]  # (data, method, place, score) to the values by draw


def _by_draw(records: Iterable[Record]) -> Values:
    values: Values = defaultdict(dict)
    for record in records:
        for score, value in record["scores"].items():
            values[record["data"], record["method"], place_name(record["at"]), score][record["draw"]] = value
    return values


def _means(values: Values, places: Sequence[str], key: tuple[str, str, str]) -> dict[str, Mean]:
    """The means of one method by place, their average, and the best of a column that has no places."""
    data, method, score = key
    columns = {place: values[data, method, place, score] for place in places if values[data, method, place, score]}
    means = {place: mean_of(list(column.values())) for place, column in columns.items()}
    if len(columns) == len(places) > 1:
        means[AVERAGE] = average_of(list(columns.values()))
    if columns and places == [PLACELESS]:
        means[BEST] = best_of(list(columns[PLACELESS].values()), score)
    return means


def failures(protocol: Protocol, experiment: Experiment, records: Iterable[Record]) -> dict[str, int]:
    """How many cells of each method failed and have no other record."""
    wanted = {cell.key for cell in protocol.cells_of(experiment)}
    found = list(records)
    good = {key_of(record) for record in found if "error" not in record}
    bad = {key_of(record): record["method"] for record in found if "error" in record}
    return Counter(method for key, method in bad.items() if key in wanted - good)


def place_name(at: At) -> str:
    """``k=5``; without a grid there is one place, the mean over all draws. The order of the sides tells nothing.

    Examples
    --------
    >>> place_name({"lam": 10, "k": 5}) == place_name({"k": 5, "lam": 10}) == "k=5 lam=10"
    True
    """
    return " ".join(f"{name}={at[name]}" for name in sorted(at, key=lambda name: (len(name), name))) or PLACELESS
