"""The page of results, from the records that come with the package: ``make results``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from .._files import whole_file
from .layout import as_markdown, grid, percent, printed_value
from .protocol import Experiment, Protocol, list_protocols, load_protocol, papers_folder
from .records import Record
from .reproduce import archived_records
from .tables import AVERAGE, BEST, LOWER_IS_BETTER, SCORES, Line, lines

HEAD = """# Results

Every table of the five papers, made again, beside the published figures; built from the records in
`papers/<key>/records.jsonl.xz` by `make results`. `fiedler reproduce <key> --table N` runs any of them anew, and
`papers/<key>/NOTES.md` says what the texts leave open, what was chosen and by which rule.

Figures are means over the draws, in per cent where they are shares; the published figure stands in brackets. ▲ better,
= equal within two standard errors of ours or half a printed digit, ▼ worse. Settings of methods marked † are chosen by
the true labels, as in the papers: they are bounds, not methods. "draws" is the smallest number of draws in the row.
Ratio Cuts are not compared: the papers' weights are not known.
"""
GLANCE = """## At a glance

Our defaults, one rule for all data, beside the method that each paper proposes: averages, on how many data sets ours is
the better average, and at how many places of the table (data sets by classes or labelled shares) ours are better, equal
or worse.
"""
LEFT_OUT = ("smoke",)


def results_page(folder: Path | None = None) -> str:
    """The whole page, as Markdown."""
    folder = folder or papers_folder()
    protocols = [load_protocol(key, folder) for key in list_protocols(folder) if key not in LEFT_OUT]
    papers = [(protocol, archived_records(protocol)) for protocol in protocols]
    glance = [row for protocol, records in papers for row in _glance(protocol, records)]
    head = ["table", "score", "method", "published", "ours", "data sets", "better / equal / worse"]
    return "\n".join([HEAD, GLANCE, as_markdown([head, *glance]), "", *(_paper(*one) for one in papers)])


def _glance(protocol: Protocol, records: list[Record]) -> list[list[str]]:
    """A row a table, score and method of ours that has something published to be laid beside."""
    rows = []
    for experiment in protocol.experiments.values():
        found = [
            line
            for line in lines(protocol, experiment, records)
            if experiment.table and line.published is not None and protocol.methods[line.method].role == "ours"
        ]
        for score, method in dict.fromkeys((line.score, line.method) for line in found):
            of = [line for line in found if (line.score, line.method) == (score, method)]
            cells = [line for line in of if line.place not in (AVERAGE, BEST)]
            counts = [sum(line.mark == mark for line in cells) for mark in ("better", "equal", "worse")]
            averages = [percent(value, score) for value in _averages(cells)]
            told = [*averages, _data_sets_won(cells), " / ".join(map(str, counts))]
            rows.append([f"{protocol.key} {experiment.table}", score, protocol.methods[method].label, *told])
    return rows


def _averages(cells: list[Line]) -> tuple[float, float]:
    """Published and ours."""
    return float(np.mean([printed_value(one) for one in cells])), float(np.mean([one.ours.value for one in cells]))


def _data_sets_won(cells: list[Line]) -> str:
    """On how many of the data sets ours is the better average, whatever the error."""
    names = {line.data for line in cells}
    averages = [_averages([line for line in cells if line.data == name]) for name in names]
    won = sum((ours < published) == (cells[0].score in LOWER_IS_BETTER) for published, ours in averages)
    return f"{won} of {len(names)}"


def _paper(protocol: Protocol, records: list[Record]) -> str:
    tables = [_table(protocol, one, records) for one in protocol.experiments.values() if one.table]
    return "\n".join([f"## {protocol.key}\n", f"{protocol.title}\n", *tables])


def _table(protocol: Protocol, experiment: Experiment, records: list[Record]) -> str:
    found = lines(protocol, experiment, records)
    parts = [f"### Table {experiment.table}: {experiment.title}\n"]
    for score in experiment.scores:
        rows = grid(found, score)
        if len(rows) > 1:
            parts += [f"{SCORES[score]}\n", as_markdown(rows), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    with whole_file(sys.argv[1]) as draft:
        draft.write_text(results_page(), encoding="utf-8")
