"""The page of results, from the records that come with the package: ``make results``."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fiedler._files import atomic_write

from .layout import as_markdown, grid, percent, printed_value
from .protocol import Experiment, Protocol, list_protocols, load_protocol, papers_folder
from .records import Record
from .reproduce import archived_records
from .tables import AVERAGE, BEST, LOWER_IS_BETTER, PLACELESS, SCORES, Line, counted, lines

HEAD = """# Results

Every table of the five papers, made again, beside the published figures; built from the records in
`papers/<key>/records.jsonl.xz` by `make results`. `fiedler reproduce <key> --table N` runs any of them anew, and
`papers/<key>/NOTES.md` says what the texts leave open, what was chosen and by which rule.

Figures are means over the draws, in per cent where they are shares; the published figure stands in brackets. ▲ better,
= equal within two standard errors (of ours, and of theirs where a spread is printed) or half a printed digit, ▼ worse.
Settings of methods marked † are chosen by the true labels, as in the papers: they are bounds, not methods; so is the
"best" of all starts. "draws" is the smallest number of draws in the row: a row of fewer draws is a mean over other
subsets, and is compared with ours on the draws that both have further down. Ratio Cuts are not compared: the papers'
weights are not known.
"""
GLANCE = """## At a glance

Our defaults, one rule for all data, beside the method that each paper proposes: averages, on how many data sets ours is
the better average, and at how many places of the table (data sets by classes or labelled shares) ours are better, equal
or worse.
"""
FAITHFUL = """## The papers' own columns

Their methods with the settings they print, or our nearest reading of them: averages over the places of the table, the
published ones, and the difference in points. `NOTES.md` says why, where it is more than three.
"""
TODAY = """## Beside what people use today

Averages of our defaults and of the peers over the first draws, as many as all of them have; the best first.
"""
TODAYS = ("ours", "peer")
LEFT_OUT = ("smoke",)


class Paper(NamedTuple):
    """A protocol, its records, and the lines of its tables."""

    protocol: Protocol
    records: list[Record]
    tables: list[tuple[Experiment, list[Line]]]


def results_page(folder: Path | None = None) -> str:
    """The whole page, as Markdown."""
    folder = folder or papers_folder()
    papers = [_read(load_protocol(key, folder)) for key in list_protocols(folder) if key not in LEFT_OUT]
    parts = [HEAD]
    for words, head, rows_of in OVERVIEWS:
        parts += [words, as_markdown([head, *(row for paper in papers for row in rows_of(paper))]), ""]
    return "\n".join([*parts, *map(_paper, papers)])


def _read(protocol: Protocol) -> Paper:
    records = archived_records(protocol)
    tables = [one for one in protocol.experiments.values() if one.table]
    return Paper(protocol, records, [(one, lines(protocol, one, records)) for one in tables])


# ----------------------------------------------------------------------------------------------------------- overviews


def _glance(paper: Paper) -> Iterator[list[str]]:
    """A row a table, score and default of ours that has something published to be laid beside."""
    for table, label, score, cells in _compared(paper, "ours"):
        counts = [sum(line.mark == mark for line in cells) for mark in ("better", "equal", "worse")]
        averages = [percent(value, score) for value in _averages(cells)]
        yield [table, score, label, *averages, _data_sets_won(cells), " / ".join(map(str, counts))]


def _faithful(paper: Paper) -> Iterator[list[str]]:
    """A row a table and column of the paper: for every score ours, the published one and the difference."""
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for table, label, score, cells in _compared(paper, "paper"):
        published, ours = _averages(cells)
        points = f"{100 * (ours - published):+.1f}"
        told[table, label].append(f"{score} {percent(ours, score)} ({percent(published, score)}, {points})")
    for (table, label), scores in told.items():
        yield [table, label, "; ".join(scores)]


def _today(paper: Paper) -> Iterator[list[str]]:
    """A row a table, data set and score: our defaults, and the peers."""
    methods = paper.protocol.methods
    for experiment, _ in paper.tables:
        of_role = {role: [name for name in experiment.methods if methods[name].role == role] for role in TODAYS}
        if not all(of_role.values()):
            continue
        seeded = [name for names in of_role.values() for name in names if methods[name].seeded]
        draws = _shared_draws(counted(paper.protocol, experiment, paper.records), seeded)
        early = [record for record in paper.records if record["draw"] < draws]
        found = [one for one in lines(paper.protocol, experiment, early) if one.place in (AVERAGE, PLACELESS)]
        for data, score in itertools.product(experiment.data, experiment.scores):
            of = sorted(
                (one for one in found if (one.data, one.score) == (data, score)),
                key=lambda one: one.ours.value,
                reverse=score not in LOWER_IS_BETTER,
            )
            named = [
                ", ".join(f"{one.label} {percent(one.ours.value, score)}" for one in of if one.method in names)
                for names in of_role.values()
            ]
            if any(named):
                yield [f"{paper.protocol.key} {experiment.table}", data, score, *named, str(draws)]


def _compared(paper: Paper, role: str) -> Iterator[tuple[str, str, str, list[Line]]]:
    """Table, label, score and lines of every column of a role that something published stands beside."""
    for experiment, of in paper.tables:
        found = [
            line
            for line in of
            if line.difference is not None
            and line.place not in (AVERAGE, BEST)
            and paper.protocol.methods[line.method].role == role
        ]
        for score, label in dict.fromkeys((line.score, line.label) for line in found):
            cells = [line for line in found if (line.score, line.label) == (score, label)]
            yield f"{paper.protocol.key} {experiment.table}", label, score, cells


def _shared_draws(records: list[Record], methods: list[str]) -> int:
    """How many first draws all the methods have."""
    last = {name: max((one["draw"] for one in records if one["method"] == name), default=-1) for name in methods}
    return min(last.values()) + 1


def _averages(cells: list[Line]) -> tuple[float, float]:
    """Published and ours."""
    return float(np.mean([printed_value(one) for one in cells])), float(np.mean([one.ours.value for one in cells]))


def _data_sets_won(cells: list[Line]) -> str:
    """On how many of the data sets ours is the better average, whatever the error."""
    names = {line.data for line in cells}
    averages = [_averages([line for line in cells if line.data == name]) for name in names]
    won = sum((ours < published) == (cells[0].score in LOWER_IS_BETTER) for published, ours in averages)
    return f"{won} of {len(names)}"


OVERVIEWS: tuple[tuple[str, list[str], Callable[[Paper], Iterator[list[str]]]], ...] = (
    (GLANCE, ["table", "score", "method", "published", "ours", "data sets", "better / equal / worse"], _glance),
    (FAITHFUL, ["table", "method", "ours (published, difference)"], _faithful),
    (TODAY, ["table", "data", "score", "our defaults", "peers", "draws"], _today),
)

# ------------------------------------------------------------------------------------------------------------- in full


def _paper(paper: Paper) -> str:
    tables = [_table(experiment, found) for experiment, found in paper.tables]
    return "\n".join([f"## {paper.protocol.key}\n", f"{paper.protocol.title}\n", *tables])


def _table(experiment: Experiment, found: list[Line]) -> str:
    parts = [f"### Table {experiment.table}: {experiment.title}\n"]
    for score in experiment.scores:
        rows = grid(found, score)
        if len(rows) > 1:
            parts += [f"{SCORES[score]}\n", as_markdown(rows), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    with atomic_write(sys.argv[1]) as draft:
        draft.write_text(results_page(), encoding="utf-8")
