"""The page of results and the archived records."""

from collections import Counter
from pathlib import Path

import pytest

from fiedler_papers import list_protocols, load_protocol
from fiedler_papers.pages import results_page
from fiedler_papers.protocol import TEST_PROTOCOL
from fiedler_papers.records import read_archive, record_key
from fiedler_papers.reproduce import ARCHIVE_NAME, archived_records
from fiedler_papers.tables import place_name, select_records, table_lines

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
KEYS = [key for key in list_protocols() if key != TEST_PROTOCOL]


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == results_page(), "run `make results`"


@pytest.mark.parametrize("key", KEYS)
def test_archived_records_match_the_protocol_and_are_complete(key):
    protocol = load_protocol(key)
    records = read_archive(protocol.folder / ARCHIVE_NAME)
    assert {record_key(record) for record in records} <= {cell.key for cell in protocol.cells()}
    required = {"seed", "seconds", "peak_mb", "versions", "backend", "scores"}
    assert all(required <= set(record) for record in records)
    assert not any("error" in record for record in records)


@pytest.mark.parametrize("key", KEYS)
def test_every_cell_has_at_least_ten_draws_and_every_score_a_line(key):
    protocol = load_protocol(key)
    records = archived_records(protocol)
    for experiment in protocol.experiments.values():
        selected = select_records(protocol, experiment, records)
        have = Counter((r["data"], r["method"], place_name(r["at"])) for r in selected)
        want = Counter((cell.data, cell.method, place_name(cell.at)) for cell in protocol.cells_of(experiment))
        short = {cell: have[cell] for cell, draws in want.items() if have[cell] < min(10, draws)}
        assert short == {}, experiment.key
        scored = {(r["data"], r["method"], place_name(r["at"])) for r in selected if r["scores"]}
        in_table = {(line.data, line.method, line.place) for line in table_lines(protocol, experiment, records)}
        assert not experiment.scores or scored <= in_table, experiment.key
