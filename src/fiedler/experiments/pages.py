"""The page of results, from the records that come with the package: ``python -m fiedler.experiments.pages``."""

from __future__ import annotations

import sys
from pathlib import Path

from .layout import as_markdown, grid
from .protocol import Experiment, Protocol, list_protocols, load_protocol, papers_folder
from .records import Record, read_archive
from .reproduce import ARCHIVE
from .tables import lines

HEAD = """# Results

Every table of the five papers, made again, beside the published figures; built from the records in
`papers/<key>/records.jsonl.xz` by `make results`. `fiedler reproduce <key> --table N` runs any of them anew, and
`papers/<key>/NOTES.md` says what the texts leave open, what was chosen and by which rule.

Figures are means over the draws, in per cent where they are shares; the published figure stands in brackets. ▲ better,
= equal within two standard errors of ours, ▼ worse. Settings of methods marked † are chosen by the true labels, as in
the papers: they are bounds, not methods. "draws" is the smallest number of draws in the row.
"""
SCORES = {
    "AC": "Accuracy",
    "NMI": "Normalised mutual information",
    "BR": "Balanced Rand index",
    "error": "Error (lower is better)",
    "cut": "Ratio Cut in units of the mean weight (lower is better)",
}
LEFT_OUT = ("smoke",)


def results_page(folder: Path | None = None) -> str:
    """The whole page, as Markdown."""
    folder = folder or papers_folder()
    keys = [key for key in list_protocols(folder) if key not in LEFT_OUT]
    return "\n".join([HEAD, *(_paper(load_protocol(key, folder)) for key in keys)])


def _paper(protocol: Protocol) -> str:
    records = [
        record
        for key in (protocol.borrows, protocol.key)
        if key is not None
        for record in read_archive(protocol.folder.parent / key / ARCHIVE)
    ]
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
    sys.stdout.write(results_page())
