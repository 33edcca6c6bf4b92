"""Layouts of table lines: rows for the screen and Markdown, all digits for CSV, and a grid for the page of results.

Marks: ▲ better, = equal within two standard errors or half a printed digit, ▼ worse than published.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Sequence

from .tables import AVERAGE, TableLine

MARKS = {"better": "▲", "equal": "=", "worse": "▼", None: ""}
TextRows = list[list[str]]


def format_score(value: float | None, score: str) -> str:
    """Format a figure, with as many digits as suit its score.

    Examples
    --------
    >>> format_score(0.8856, "AC"), format_score(1828.61, "cut"), format_score(None, "AC")
    ('0.886', '1828.6', '')
    """
    if value is None or math.isnan(value):
        return ""
    return f"{value:.1f}" if score == "cut" else f"{value:.3f}"


def comparison_rows(lines: Sequence[TableLine]) -> TextRows:
    """Return a header, then one row per method and place: published figure, ours ± error, difference and mark."""
    scores = list(dict.fromkeys(line.score for line in lines))
    rows: dict[tuple[str, str, str], dict[str, TableLine]] = defaultdict(dict)
    for line in lines:
        rows[line.data, line.label, line.place][line.score] = line
    head = ["data", "method", "at", "draws"]
    # The published figure is in the column named after the score.
    head += [name for score in scores for name in (score, "ours", "diff.")]
    body = []
    for (data, label, place), by_score in rows.items():
        draws = str(max(line.ours.draws for line in by_score.values()))
        body.append([data, label, place, draws, *(text for score in scores for text in _texts(by_score.get(score)))])
    return [head, *body]


def _texts(line: TableLine | None) -> list[str]:
    if line is None:
        return ["", "", ""]
    ours, error = format_score(line.ours.value, line.score), format_score(line.ours.error, line.score)
    difference = "" if line.difference is None else f"{line.difference:+.3f} {MARKS[line.mark]}"
    return [format_score(published_value(line), line.score), f"{ours} ± {error}" if error else ours, difference]


def published_value(line: TableLine) -> float | None:
    """Return the published figure, if there is one."""
    return None if line.published is None else line.published.value


def as_text(lines: Sequence[TableLine]) -> str:
    """Lay out :func:`comparison_rows` in eighty columns, with a heading per method."""
    (_, _, *head), *body = comparison_rows(lines)
    widths = [max(len(row[i]) for row in [["", "", *head], *body]) for i in range(2, len(head) + 2)]
    text, heading = [_aligned(head, widths)], None
    for data, method, *rest in body:
        if (data, method) != heading:
            text.append(f"{method}, {data}")
            heading = data, method
        text.append(_aligned(rest, widths))
    return "\n".join(text)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()


def grid_rows(lines: Sequence[TableLine], score: str) -> TextRows:
    """Return a header, then one row per data set and method: ours ± error (published ± error) at every place."""
    lines = [line for line in lines if line.score == score]
    places = list(dict.fromkeys(line.place for line in lines if line.place != AVERAGE))
    places += [AVERAGE] if any(line.place == AVERAGE for line in lines) else []
    rows: dict[tuple[str, str], dict[str, TableLine]] = defaultdict(dict)
    for line in lines:
        rows[line.data, line.label][line.place] = line
    head = ["data", "method", *(_column_name(place) for place in places), "draws"]
    body = []
    for (data, label), by_place in rows.items():
        min_draws = min(line.ours.draws for line in by_place.values())
        body.append([data, label, *(_cell(by_place.get(place)) for place in places), str(min_draws)])
    return [head, *body]


def _column_name(place: str) -> str:
    """Return the value alone where the grid has one side."""
    return place.split("=")[1] if place.count("=") == 1 else place


def _cell(line: TableLine | None) -> str:
    if line is None:
        return ""
    ours = with_error(line.ours.value, line.ours.error, line.score)
    if line.published is None:
        return ours
    published = with_error(line.published.value, line.published.error or math.nan, line.score)
    return f"{ours} ({published}) {MARKS[line.mark]}".rstrip()


def with_error(value: float, error: float, score: str, *, sign: str = "") -> str:
    """Format a figure in per cent with its standard error, if it has one.

    Examples
    --------
    >>> with_error(0.8123, 0.0049, "AC"), with_error(0.8123, math.nan, "AC"), with_error(0.012, 0.004, "AC", sign="+")
    ('81.2 ± 0.5', '81.2', '+1.2 ± 0.4')
    """
    unit, digits = (1, 0) if score == "cut" else (100, 1)
    text = f"{unit * value:{sign}.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {unit * error:.{digits}f}"


def format_percent(value: float | None, score: str) -> str:
    """Format a share in per cent, and a Ratio Cut as it is."""
    if value is None:
        return ""
    return f"{value:.0f}" if score == "cut" else f"{100 * value:.1f}"


def as_markdown(rows: TextRows) -> str:
    """Format rows as a Markdown table.

    Examples
    --------
    >>> print(as_markdown([["k", "AC"], ["2", "0.9"]]))
    | k | AC |
    |---|---|
    | 2 | 0.9 |
    """
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def as_csv(lines: Sequence[TableLine]) -> str:
    """Format lines as CSV, one row per figure, with six significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["data", "method", "at", "score", "published", "ours", "standard_error", "draws", "mark"])
    for line in lines:
        ours, error = f"{line.ours.value:.6g}", "" if math.isnan(line.ours.error) else f"{line.ours.error:.2g}"
        published = "" if line.published is None else line.published.value
        writer.writerow(
            [line.data, line.method, line.place, line.score, published, ours, error, line.ours.draws, line.mark or ""]
        )
    return text.getvalue()
