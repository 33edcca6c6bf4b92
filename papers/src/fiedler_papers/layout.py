"""Lines of a table as text: side by side for the screen and Markdown, in full digits as CSV, and as a grid for a page.

Marks: ▲ better, = equal within two standard errors or half a printed digit, ▼ worse than published.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Sequence

from .tables import AVERAGE, Line

MARKS = {"better": "▲", "equal": "=", "worse": "▼", None: ""}
TextRows = list[list[str]]


def shown(value: float | None, score: str) -> str:
    """A figure with as many digits as its score deserves.

    Examples
    --------
    >>> shown(0.8856, "AC"), shown(1828.61, "cut"), shown(None, "AC")
    ('0.886', '1828.6', '')
    """
    if value is None or math.isnan(value):
        return ""
    return f"{value:.1f}" if score == "cut" else f"{value:.3f}"


def side_by_side(found: Sequence[Line]) -> TextRows:
    """A head, then one row a method and place: for every score the published figure, ours ± error, difference, mark."""
    scores = list(dict.fromkeys(line.score for line in found))
    rows: dict[tuple[str, str, str], dict[str, Line]] = defaultdict(dict)
    for line in found:
        rows[line.data, line.label, line.place][line.score] = line
    head = ["data", "method", "at", "draws"]
    head += [part for score in scores for part in (score, "ours", "diff.")]  # published under the score's name
    body = []
    for (data, label, place), of in rows.items():
        draws = str(max(line.ours.draws for line in of.values()))
        body.append([data, label, place, draws, *(text for score in scores for text in _parts(of.get(score)))])
    return [head, *body]


def _parts(line: Line | None) -> list[str]:
    if line is None:
        return ["", "", ""]
    ours, error = shown(line.ours.value, line.score), shown(line.ours.error, line.score)
    difference = "" if line.difference is None else f"{line.difference:+.3f} {MARKS[line.mark]}"
    return [shown(printed_value(line), line.score), f"{ours} ± {error}" if error else ours, difference]


def printed_value(line: Line) -> float | None:
    """The published figure."""
    return None if line.published is None else line.published.value


def as_text(found: Sequence[Line]) -> str:
    """The rows of `side_by_side` in eighty columns, a heading for every method."""
    (_, _, *head), *body = side_by_side(found)
    widths = [max(len(row[i]) for row in [["", "", *head], *body]) for i in range(2, len(head) + 2)]
    told, last = [_aligned(head, widths)], None
    for data, method, *rest in body:
        if (data, method) != last:
            told.append(f"{method}, {data}")
            last = data, method
        told.append(_aligned(rest, widths))
    return "\n".join(told)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()


def grid(found: Sequence[Line], score: str) -> TextRows:
    """A head, then one row a data set and method, one column a place: ours, and the published figure in brackets."""
    of = [line for line in found if line.score == score]
    places = list(dict.fromkeys(line.place for line in of if line.place != AVERAGE))
    places += [AVERAGE] if any(line.place == AVERAGE for line in of) else []
    rows: dict[tuple[str, str], dict[str, Line]] = defaultdict(dict)
    for line in of:
        rows[line.data, line.label][line.place] = line
    head = ["data", "method", *(_short(place) for place in places), "draws"]
    body = []
    for (data, label), by_place in rows.items():
        least = min(line.ours.draws for line in by_place.values())
        body.append([data, label, *(_cell(by_place.get(place)) for place in places), str(least)])
    return [head, *body]


def _short(place: str) -> str:
    """Of a single side of the grid the value is enough."""
    return place.split("=")[1] if place.count("=") == 1 else place


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    value, published = percent(line.ours.value, line.score), percent(printed_value(line), line.score)
    return f"{value} ({published}) {MARKS[line.mark]}".rstrip() if published else value


def percent(value: float | None, score: str) -> str:
    """In per cent, except for what is no share."""
    if value is None:
        return ""
    return f"{value:.0f}" if score == "cut" else f"{100 * value:.1f}"


def as_markdown(rows: TextRows) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> print(as_markdown([["k", "AC"], ["2", "0.9"]]))
    | k | AC |
    |---|---|
    | 2 | 0.9 |
    """
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def as_csv(found: Sequence[Line]) -> str:
    """One line a figure, in full digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["data", "method", "at", "score", "published", "ours", "standard_error", "draws", "mark"])
    for line in found:
        ours, error = f"{line.ours.value:.6g}", "" if math.isnan(line.ours.error) else f"{line.ours.error:.2g}"
        published = "" if line.published is None else line.published.value
        writer.writerow(
            [line.data, line.method, line.place, line.score, published, ours, error, line.ours.draws, line.mark or ""]
        )
    return text.getvalue()
