"""The page of results and the records behind it."""

from collections import Counter
from pathlib import Path

import pytest

from fiedler_papers import list_protocols, load_protocol
from fiedler_papers.pages import results_page
from fiedler_papers.records import key_of, read_archive
from fiedler_papers.reproduce import ARCHIVE, archived_records
from fiedler_papers.tables import counted, lines, place_name

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
KEYS = [key for key in list_protocols() if key != "smoke"]


def test_the_page_is_what_the_records_say():
    assert PAGE.read_text(encoding="utf-8") == results_page(), "run `make results`"


@pytest.mark.parametrize("key", KEYS)
def test_archived_records_belong_to_the_protocol_and_tell_how_they_were_made(key):
    protocol = load_protocol(key)
    records = read_archive(protocol.folder / ARCHIVE)
    assert {key_of(record) for record in records} <= {cell.key for cell in protocol.cells()}
    told = {"seed", "seconds", "peak_mb", "versions", "backend", "scores"}
    assert all(told <= set(record) for record in records)
    assert not any("error" in record for record in records)


@pytest.mark.parametrize("key", KEYS)
def test_every_cell_has_ten_draws_at_least_and_every_score_its_line(key):
    protocol = load_protocol(key)
    records = archived_records(protocol)
    for experiment in protocol.experiments.values():
        found = counted(protocol, experiment, records)
        have = Counter((one["data"], one["method"], place_name(one["at"])) for one in found)
        want = Counter((cell.data, cell.method, place_name(cell.at)) for cell in protocol.cells_of(experiment))
        short = {cell: have[cell] for cell, draws in want.items() if have[cell] < min(10, draws)}
        assert short == {}, experiment.key
        scored = {(one["data"], one["method"], place_name(one["at"])) for one in found if one["scores"]}
        shown = {(line.data, line.method, line.place) for line in lines(protocol, experiment, records)}
        assert not experiment.scores or scored <= shown, experiment.key
