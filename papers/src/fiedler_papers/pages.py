"""Write the page of results from the archived records: ``make results``."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fiedler._files import atomic_write

from .layout import as_markdown, format_percent, grid_rows, with_error
from .paired import paired_lines
from .protocol import TEST_PROTOCOL, Experiment, Protocol, list_protocols, load_protocol, papers_folder
from .records import Record
from .reproduce import archived_records
from .tables import AVERAGE, LOWER_IS_BETTER, NO_GRID, ONE_OF_ALL, SCORES, TableLine, select_records, table_lines

INTRODUCTION = """# Results

Every table of the five papers, reproduced and compared with the published figures. The page is built by `make results`
from the records in `papers/<key>/records.jsonl.xz`. `fiedler reproduce <key> --table N` runs a table again, and
`papers/<key>/NOTES.md` describes what the texts leave open, what was chosen and by which rule.

Figures are means over the draws ± their standard errors, shares in per cent, with the published figure in brackets, and
with its standard error where the paper prints a spread over the draws. ▲ better, = equal within two standard errors
(of ours, and of theirs where a spread is printed) or half a printed digit, ▼ worse. Settings of
methods marked † are chosen by the true labels, as in the papers: they are bounds rather than methods, and so is the
"best" of all starts; "lowest cut" is the accuracy at the lowest Ratio Cut of all starts, the other reading of the
printed "best". "draws" is the smallest number of draws in a row; a row with fewer draws is a mean over other
subsets, and is compared with ours on common draws further down. Ratio Cuts are not compared, because the weights of the
papers' graphs are not known.
"""
DEFAULTS = """## At a glance

Our defaults, one rule for all data, compared with the method that each paper proposes: averages, the number of data
sets on which our average is better, and the number of places of the table (data sets by classes or labelled shares) at
which ours is better, equal or worse.
"""
SHORTFALLS = """### Where our defaults are below the published average

Every data set on which the average of a default is worse than the published one: the difference in points, and the
places at which it is more than two standard errors, with their differences. `NOTES.md` of the paper gives the reasons
as far as we know them.
"""
COVERAGE = """### How many columns are within three points

{n_near} of {n_columns} columns. The aim was nine in ten; `NOTES.md` of each paper gives the reasons as far as we know
them. A column is a method and a score of a table, averaged over its places, and it is within three points if the
difference is at most 3.0 as shown, to one decimal. Several of our methods may be readings of one printed method: one of
them counts for all scores, the one whose largest difference is smallest. A reading marked † does not count, unless the
printed column is chosen by the true labels itself.
"""
PAPER_COLUMNS = """## The papers' own columns

Their methods with the settings they print, or our closest reading of them: averages over the places of the table, the
published averages, and the difference in points. `NOTES.md` explains differences of more than three points.
"""
PEERS = """## Compared with methods in common use

Averages of our defaults and of the peers over the first draws, as many as all of them have; the best first.
"""
PAIRED = """## Two methods on the same draws

The first method minus the second, in points, averages over the places of the table ± standard errors over the draws;
and the number of places at which a paired t-test at 95 % finds the first better, the second better, or neither. For
learned_laplacian this is the test behind the bold face of its tables, with the printed counts in brackets.
"""
ROLES_OF_TODAY = ("ours", "peer")
NEAR = 3.0  # points: a column within so much of the printed one counts as reproduced
CHOSEN_BY_LABELS = "†"  # the end of the label of such a method


class Paper(NamedTuple):
    """A protocol, its records, and the lines of its tables."""

    protocol: Protocol
    records: list[Record]
    tables: list[tuple[Experiment, list[TableLine]]]


def results_page(folder: Path | None = None) -> str:
    """Return the page as Markdown."""
    folder = folder or papers_folder()
    papers = [_load_paper(load_protocol(key, folder)) for key in list_protocols(folder) if key != TEST_PROTOCOL]
    readings = [reading for paper in papers for reading in closest_readings(paper)]
    counts = dict(zip(("n_columns", "n_near"), _coverage(readings)))
    parts = [INTRODUCTION]
    for introduction, header, rows_of in OVERVIEWS:
        rows = [row for paper in papers for row in rows_of(paper)]
        parts += [introduction.format(**counts), as_markdown([header, *rows]), ""]
    return "\n".join([*parts, *map(_full_tables, papers)])


def _load_paper(protocol: Protocol) -> Paper:
    records = archived_records(protocol)
    experiments = [experiment for experiment in protocol.experiments.values() if experiment.table]
    tables = [(experiment, table_lines(protocol, experiment, records)) for experiment in experiments]
    return Paper(protocol, records, tables)


# ----------------------------------------------------------------------------------------------------------- overviews


def _default_rows(paper: Paper) -> Iterator[list[str]]:
    """Yield one row per table, score and default of ours that is compared with a published figure."""
    for table, label, score, lines in _compared_columns(paper, "ours"):
        counts = [sum(line.mark == mark for line in lines) for mark in ("better", "equal", "worse")]
        averages = [format_percent(value, score) for value in _averages(lines)]
        yield [table, score, label, *averages, _data_sets_won(lines), " / ".join(map(str, counts))]


def _paper_rows(paper: Paper) -> Iterator[list[str]]:
    """Yield one row per table and column of the paper: for every score ours, the published one and the difference."""
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for table, label, score, lines in _compared_columns(paper, "paper"):
        published, ours = _averages(lines)
        points = f"{100 * (ours - published):+.1f}"
        text = f"{score} {format_percent(ours, score)} ({format_percent(published, score)}, {points})"
        texts[table, label].append(text)
    for (table, label), scores in texts.items():
        yield [table, label, "; ".join(scores)]


def _shortfall_rows(paper: Paper) -> Iterator[list[str]]:
    """Yield one row per table, score, default of ours and data set on which the published average is better."""
    for table, label, score, lines in _compared_columns(paper, "ours"):
        for data in dict.fromkeys(line.data for line in lines):
            selected = [line for line in lines if line.data == data]
            published, ours = _averages(selected)
            if ours == published or (ours < published) == (score in LOWER_IS_BETTER):
                continue
            places = ", ".join(
                f"{line.place} {100 * (line.difference or 0.0):+.1f}" for line in selected if line.mark == "worse"
            )
            averages = [format_percent(value, score) for value in (published, ours)]
            yield [table, score, label, data, *averages, f"{100 * (ours - published):+.1f}", places or "none"]


class Reading(NamedTuple):
    """A method of ours that reads a printed column: ours minus the published average, in points as shown, by score."""

    table: str
    label: str
    points: dict[str, float]

    @property
    def far(self) -> dict[str, float]:
        """The differences of more than three points."""
        return {score: points for score, points in self.points.items() if abs(points) > NEAR}


def closest_readings(paper: Paper) -> list[Reading]:
    """Return the closest method with role 'paper' for every printed column that has one."""
    columns: dict[tuple[str, str | None], dict[str, Reading]] = defaultdict(dict)
    for table, label, score, lines in _compared_columns(paper, "paper"):
        published, ours = _averages(lines)
        readings = columns[table, paper.protocol.methods[lines[0].method].published]
        readings.setdefault(label, Reading(table, label, {})).points[score] = round(100 * (ours - published), 1)
    return [_closest(list(readings.values())) for readings in columns.values()]


def _closest(readings: list[Reading]) -> Reading:
    """Return the reading whose largest difference is smallest.

    One that is chosen by the labels counts only where the printed column is: there it is the only reading.
    """
    without_labels = [reading for reading in readings if not reading.label.endswith(CHOSEN_BY_LABELS)]
    return min(without_labels or readings, key=lambda reading: max(map(abs, reading.points.values())))


def _coverage(readings: list[Reading]) -> tuple[int, int]:
    """Count the scores of the readings, and those within three points."""
    n_columns = sum(len(reading.points) for reading in readings)
    return n_columns, n_columns - sum(len(reading.far) for reading in readings)


def _coverage_rows(paper: Paper) -> Iterator[list[str]]:
    """Yield one row: the number of printed columns, of those within three points, and the others."""
    readings = closest_readings(paper)
    far = [
        f"{reading.table} {reading.label}: {', '.join(f'{score} {x:+.1f}' for score, x in reading.far.items())}"
        for reading in readings
        if reading.far
    ]
    if readings:
        yield [paper.protocol.key, *map(str, _coverage(readings)), "; ".join(far) or "none"]


def _peer_rows(paper: Paper) -> Iterator[list[str]]:
    """Yield one row per table, data set and score: our defaults, and the peers."""
    methods = paper.protocol.methods
    for experiment, _ in paper.tables:
        by_role = {role: [name for name in experiment.methods if methods[name].role == role] for role in ROLES_OF_TODAY}
        if not all(by_role.values()):
            continue
        seeded = [name for names in by_role.values() for name in names if methods[name].seeded]
        selected = select_records(paper.protocol, experiment, paper.records)
        n_draws = {data: _n_shared_draws(selected, data, seeded) for data in experiment.data}
        records = [record for record in paper.records if record["draw"] < n_draws.get(record["data"], 0)]
        lines = [line for line in table_lines(paper.protocol, experiment, records) if line.place in (AVERAGE, NO_GRID)]
        for data, score in itertools.product(experiment.data, experiment.scores):
            ranked = sorted(
                (line for line in lines if (line.data, line.score) == (data, score)),
                key=lambda line: line.ours.value,
                reverse=score not in LOWER_IS_BETTER,
            )
            texts = [
                ", ".join(
                    f"{line.label} {format_percent(line.ours.value, score)}" for line in ranked if line.method in names
                )
                for names in by_role.values()
            ]
            if any(texts):
                yield [f"{paper.protocol.key} {experiment.table}", data, score, *texts, str(n_draws[data])]


def _paired_rows(paper: Paper) -> Iterator[list[str]]:
    """Yield one row per pair of methods and score: the difference on every data set, and the counts over all."""
    for experiment, _ in paper.tables:
        lines = paired_lines(paper.protocol, experiment, paper.records)
        for row, score in itertools.product(experiment.compare, experiment.scores):
            pair = tuple(row["methods"])
            selected = [line for line in lines if (line.methods, line.score) == (pair, score)]
            differences = "; ".join(
                f"{line.data} {with_error(line.average.value, line.average.error, score, sign='+')}"
                for line in selected
            )
            counts = " / ".join(map(str, np.sum([line.counts() for line in selected], axis=0)))
            printed = " / ".join(map(str, row.get("published", ())))
            first, second = (paper.protocol.methods[name].label for name in pair)
            yield [
                f"{paper.protocol.key} {experiment.table}", f"{first} minus {second}", score, differences,
                f"{counts} ({printed})" if printed else counts,
            ]  # fmt: skip


def _compared_columns(paper: Paper, role: str) -> Iterator[tuple[str, str, str, list[TableLine]]]:
    """Yield table, label, score and lines of every column of a role that has published figures."""
    for experiment, table in paper.tables:
        compared = [
            line
            for line in table
            if line.difference is not None
            and line.place not in (AVERAGE, *ONE_OF_ALL)
            and paper.protocol.methods[line.method].role == role
        ]
        for score, label in dict.fromkeys((line.score, line.label) for line in compared):
            lines = [line for line in compared if (line.score, line.label) == (score, label)]
            yield f"{paper.protocol.key} {experiment.table}", label, score, lines


def _n_shared_draws(records: list[Record], data: str, methods: list[str]) -> int:
    """Count the first draws that all methods have on a data set."""
    last_draws = dict.fromkeys(methods, -1)
    for record in records:
        if record["data"] == data and record["method"] in last_draws:
            last_draws[record["method"]] = max(last_draws[record["method"]], record["draw"])
    return min(last_draws.values()) + 1


def _averages(lines: list[TableLine]) -> tuple[float, float]:
    """Return the averages of the published figures and of ours."""
    published = [line.published.value for line in lines if line.published is not None]
    return float(np.mean(published)), float(np.mean([line.ours.value for line in lines]))


def _data_sets_won(lines: list[TableLine]) -> str:
    """Say on how many data sets our average is better, regardless of the error."""
    names = {line.data for line in lines}
    averages = [_averages([line for line in lines if line.data == name]) for name in names]
    won = sum((ours < published) == (lines[0].score in LOWER_IS_BETTER) for published, ours in averages)
    return f"{won} of {len(names)}"


OVERVIEWS: tuple[tuple[str, list[str], Callable[[Paper], Iterator[list[str]]]], ...] = (
    (DEFAULTS, ["table", "score", "method", "published", "ours", "data sets", "better / equal / worse"], _default_rows),
    (
        SHORTFALLS,
        ["table", "score", "method", "data", "published", "ours", "difference", "places that are worse"],
        _shortfall_rows,
    ),
    (PAPER_COLUMNS, ["table", "method", "ours (published, difference)"], _paper_rows),
    (COVERAGE, ["paper", "printed columns", "within three points", "others, closest reading"], _coverage_rows),
    (PAIRED, ["table", "methods", "score", "difference", "first / second / neither"], _paired_rows),
    (PEERS, ["table", "data", "score", "our defaults", "peers", "draws"], _peer_rows),
)

# ------------------------------------------------------------------------------------------------------------- in full


def _full_tables(paper: Paper) -> str:
    tables = [_full_table(experiment, lines) for experiment, lines in paper.tables]
    return "\n".join([f"## {paper.protocol.key}\n", f"{paper.protocol.title}\n", *tables])


def _full_table(experiment: Experiment, lines: list[TableLine]) -> str:
    parts = [f"### Table {experiment.table}: {experiment.title}\n"]
    for score in experiment.scores:
        rows = grid_rows(lines, score)
        if len(rows) > 1:
            parts += [f"{SCORES[score]}\n", as_markdown(rows), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    with atomic_write(sys.argv[1]) as draft:
        draft.write_text(results_page(), encoding="utf-8")
