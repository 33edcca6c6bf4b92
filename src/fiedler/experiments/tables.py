"""Records beside the published figures: one row a method and place, with difference and mark."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .protocol import At, Experiment, Protocol
from .protocol import places as grid_places
from .records import Record, key_of

AVERAGE, BEST = "average", "best"
LOWER_IS_BETTER = {"error", "cut"}
WITHIN = 2.0  # standard errors, within which two figures count as equal


class Mean(NamedTuple):
    """A mean over draws."""

    value: float
    error: float  # standard error; nan for one draw
    draws: int


class Line(NamedTuple):
    """One method at one place of a table: published, ours, difference, mark."""

    data: str
    method: str
    label: str
    place: str  # "k=5", or "average"
    score: str
    published: float | None
    ours: Mean

    @property
    def difference(self) -> float | None:
        """Ours less the published one."""
        return None if self.published is None else self.ours.value - self.published

    @property
    def mark(self) -> str | None:
        """'better', 'equal' (within two standard errors of ours; the papers give none of theirs) or 'worse'."""
        if self.difference is None:
            return None
        error = 0.0 if math.isnan(self.ours.error) else self.ours.error
        if abs(self.difference) <= WITHIN * error:
            return "equal"
        better = (self.difference < 0) == (self.score in LOWER_IS_BETTER)
        return "better" if better else "worse"


def read_published(path: Path) -> dict[tuple[str, str, str, str, str], float]:
    """(table, data, place, method, score) to the printed value; empty if there is no such file."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["table"], row["data"], row["at"], row["method"], row["score"]): float(row["value"])
            for row in csv.DictReader(file)
        }


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


def average_of(means: Sequence[Mean]) -> Mean:
    """The mean of means, as the papers' last rows; their errors are independent."""
    value = float(np.mean([mean.value for mean in means]))
    return Mean(value, math.sqrt(sum(mean.error**2 for mean in means)) / len(means), min(m.draws for m in means))


def best_of(values: Sequence[float], score: str) -> Mean:
    """The best of all draws by the score itself, as [nle, Table II] has it."""
    return Mean((min if score in LOWER_IS_BETTER else max)(values), math.nan, len(values))


def lines(protocol: Protocol, experiment: Experiment, records: Iterable[Record]) -> list[Line]:
    """All lines of an experiment, in the order of its methods; averages only over whole columns."""
    published = read_published(protocol.folder / "published.csv")
    values = _gathered(protocol, experiment, records)
    places = [place_name(at) for at in grid_places(experiment.grid)]
    found = []
    for data in experiment.data:
        for method in experiment.methods:
            column = protocol.methods[method].published
            for score in experiment.scores:
                means = {
                    place: mean_of(values[data, method, place, score])
                    for place in places
                    if values[data, method, place, score]
                }
                if len(means) == len(places) > 1:
                    means[AVERAGE] = average_of(list(means.values()))
                if (experiment.table or "", data, BEST, column or "", score) in published and means:
                    means[BEST] = best_of(values[data, method, places[0], score], score)
                found += [
                    Line(
                        data,
                        method,
                        protocol.methods[method].label,
                        place,
                        score,
                        published.get((experiment.table or "", data, place, column or "", score)),
                        mean,
                    )
                    for place, mean in means.items()
                ]
    return found


def failures(experiment: Experiment, records: Iterable[Record]) -> dict[str, int]:
    """How many cells of each method failed."""
    counts: dict[str, int] = defaultdict(int)
    for record in records:
        if "error" in record and record["data"] in experiment.data and record["method"] in experiment.methods:
            counts[record["method"]] += 1
    return dict(counts)


def place_name(at: At) -> str:
    """``k=5``; a place without a name is the mean over all draws."""
    return " ".join(f"{name}={value}" for name, value in at.items()) or "mean"


def _gathered(
    protocol: Protocol, experiment: Experiment, records: Iterable[Record]
) -> dict[tuple[str, str, str, str], list[float]]:
    """(data, method, place, score) to the values of the draws, from the records of this protocol's cells alone."""
    wanted = {cell.key for cell in protocol.cells_of(experiment)}
    kept = {
        key_of(record): record for record in records if key_of(record) in wanted
    }  # one back end's, where several ran
    values: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for record in kept.values():
        for score, value in record.get("scores", {}).items():
            values[record["data"], record["method"], place_name(record["at"]), score].append(value)
    return values
