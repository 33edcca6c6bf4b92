"""What the tests of sentences that quote records share: the records of a paper, its table lines, and the pages.

A test builds the text from the records and asks that the page contains it, so a page cannot go stale.
"""

import functools
import re
from pathlib import Path

from fiedler_papers import load_protocol
from fiedler_papers.pages import NEAR
from fiedler_papers.paired import paired_lines
from fiedler_papers.reproduce import archived_records
from fiedler_papers.tables import AVERAGE, select_records, table_lines, values_by_draw

ROOT = Path(__file__).parents[2]
BOTH = ("AC", "NMI")


def text(page):
    return re.sub(r"\s+", " ", (ROOT / page).read_text(encoding="utf-8"))


@functools.cache
def records(key):
    return archived_records(load_protocol(key))


@functools.cache
def lines(key, experiment):
    protocol = load_protocol(key)
    return table_lines(protocol, protocol.experiments[experiment], records(key))


@functools.cache
def paired(key, experiment):
    protocol = load_protocol(key)
    return paired_lines(protocol, protocol.experiments[experiment], records(key))


@functools.cache
def values(key, experiment):
    protocol = load_protocol(key)
    return values_by_draw(select_records(protocol, protocol.experiments[experiment], records(key)))


def line(key, experiment, data, method, score, place=AVERAGE):
    (found,) = [
        one for one in lines(key, experiment) if one[:2] == (data, method) and (one.score, one.place) == (score, place)
    ]
    return found


def pair(key, experiment, data, methods, score):
    (found,) = [one for one in paired(key, experiment) if (one.data, one.methods, one.score) == (data, methods, score)]
    return found


def listed(items):
    """Write 2, 3 and 5."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last


def percent(value):
    return f"{100 * value:.1f}"


def is_near(difference):
    """Whether a difference is within three points, as on the page of results."""
    return abs(round(100 * difference, 1)) <= NEAR


def page_table(page, header):
    """Return the rows of a Markdown table as lists of cells, by the beginning of its header."""
    page_lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    (start,) = [number for number, one in enumerate(page_lines) if one.startswith(header)]
    rows = []
    for one in page_lines[start + 2 :]:
        if not one.startswith("|"):
            return rows
        rows.append([cell.strip().replace("*", "") for cell in one.strip("|").split("|")])
    return rows
