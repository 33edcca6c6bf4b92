"""Two methods on the same draws: mean difference, its standard error, and a paired t-test at every place of a table.

The bold face of [learned_laplacian, Tables II and III] is such a test, at a level of 95 %. The pairs of methods are the
``compare`` of an experiment in ``protocol.toml``, with the printed counts where there are any.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from scipy.stats import t as student_t

from .protocol import Experiment, Protocol, grid_points
from .records import Record
from .tables import LOWER_IS_BETTER, Mean, average_of, mean_of, place_name, select_records, values_by_draw

LEVEL = 0.95


class PairedLine(NamedTuple):
    """The first method minus the second on a data set, on their common draws."""

    data: str
    score: str
    methods: tuple[str, str]
    places: dict[str, Mean]
    average: Mean

    def counts(self) -> tuple[int, int, int]:
        """Count the places at which the first method is significantly better, the second one, and neither."""
        sign = -1 if self.score in LOWER_IS_BETTER else 1
        verdicts = [sign * significant_sign(mean) for mean in self.places.values()]
        return verdicts.count(1), verdicts.count(-1), verdicts.count(0)


def significant_sign(difference: Mean) -> int:
    """Return the sign of a mean difference if a two-sided t-test at 95 % finds it different from zero, else 0.

    Examples
    --------
    >>> significant_sign(Mean(0.3, 0.1, 20)), significant_sign(Mean(-0.1, 0.1, 20))
    (1, 0)
    """
    if difference.draws < 2 or difference.value == 0:
        return 0
    limit = float(student_t.ppf(0.5 + LEVEL / 2, difference.draws - 1)) * difference.error
    return 0 if abs(difference.value) <= limit else (1 if difference.value > 0 else -1)


def paired_lines(protocol: Protocol, experiment: Experiment, records: Iterable[Record]) -> list[PairedLine]:
    """Return one line per pair of methods, data set and score of an experiment."""
    values = values_by_draw(select_records(protocol, experiment, records))
    places = [place_name(at) for at in grid_points(experiment.grid)]
    lines = []
    for row, data, score in itertools.product(experiment.compare, experiment.data, experiment.scores):
        first, second = row["methods"]
        columns = {}
        for place in places:
            ours, theirs = values[data, first, place, score], values[data, second, place, score]
            columns[place] = {draw: ours[draw] - theirs[draw] for draw in sorted(ours.keys() & theirs.keys())}
        means = {place: mean_of(list(column.values())) for place, column in columns.items()}
        lines.append(PairedLine(data, score, (first, second), means, average_of(list(columns.values()))))
    return lines
