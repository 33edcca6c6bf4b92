"""The page of results and the archived records."""

from collections import Counter
from pathlib import Path

import pytest

from fiedler_papers import list_protocols, load_protocol
from fiedler_papers.pages import Paper, _coverage_rows, _shortfall_rows, closest_readings, results_page
from fiedler_papers.protocol import TEST_PROTOCOL
from fiedler_papers.records import read_archive, record_key
from fiedler_papers.reproduce import ARCHIVE_NAME, archived_records
from fiedler_papers.tables import Mean, Published, TableLine, place_name, select_records, table_lines

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


def paper_with(lines):
    """A paper whose only table has these lines: (data, method, place, score, published, ours), ours ± 0.001."""
    protocol = load_protocol("lapgmm")
    table = [
        TableLine(data, name, protocol.methods[name].label, place, score, Published(printed, 0.0), Mean(ours, 0.001, 9))
        for data, name, place, score, printed, ours in lines
    ]
    return Paper(protocol, [], [(protocol.experiments["usps"], table)])


def test_one_reading_counts_for_all_scores_of_a_printed_column():
    """[lapgmm, Table 2]: the smallest largest difference; nearest in accuracy alone is not enough."""
    paper = paper_with(
        [
            ("usps", "nmf", "k=2", "AC", 0.70, 0.60),  # -4.0 points on average, and +0.5 in NMI
            ("usps", "nmf", "k=3", "AC", 0.70, 0.72),
            ("usps", "nmf", "k=2", "NMI", 0.70, 0.705),
            ("usps", "nmf_kmeans", "k=2", "AC", 0.70, 0.73),  # +2.0, and -3.5
            ("usps", "nmf_kmeans", "k=3", "AC", 0.70, 0.71),
            ("usps", "nmf_kmeans", "k=2", "NMI", 0.70, 0.665),
            ("usps", "lapgmm", "k=2", "AC", 0.70, 0.70),  # a default of ours is not a reading of the paper
        ]
    )
    (reading,) = closest_readings(paper)
    assert (reading.label, reading.points) == ("NMF + k-means", {"AC": 2.0, "NMI": -3.5})
    assert reading.far == {"NMI": -3.5}


def test_differences_are_compared_as_they_are_shown():
    paper = paper_with(
        [("usps", "gmm", "k=2", "AC", 0.70, 0.73049), ("usps", "gmm", "k=2", "NMI", 0.70, 0.66949)]  # +3.0 and -3.1
    )
    (reading,) = closest_readings(paper)
    assert reading.far == {"NMI": -3.1}
    ((_, *counts, others),) = _coverage_rows(paper)
    assert (counts, others) == (["2", "1"], "lapgmm 2 GMM: NMI -3.1")


def test_a_reading_chosen_by_the_labels_counts_only_where_there_is_no_other():
    chosen = ("usps", "lapgmm_variational", "k=2", "AC", 0.70, 0.70)
    assert [reading.points for reading in closest_readings(paper_with([chosen]))] == [{"AC": 0.0}]
    both = paper_with([chosen, ("usps", "lapgmm_printed", "k=2", "AC", 0.70, 0.65)])
    assert [reading.points for reading in closest_readings(both)] == [{"AC": -5.0}]


def test_shortfalls_name_data_set_difference_and_places():
    paper = paper_with(
        [
            ("usps", "lapgmm", "k=2", "AC", 0.90, 0.906),  # better, but not on average
            ("usps", "lapgmm", "k=3", "AC", 0.90, 0.88),
            ("coil20", "lapgmm", "k=2", "AC", 0.90, 0.92),
            ("usps", "lapgmm", "k=2", "error", 0.10, 0.11),  # lower is better
            ("coil20", "lapgmm", "k=2", "error", 0.10, 0.09),
            ("usps", "gmm", "k=2", "AC", 0.90, 0.80),  # a column of the paper
        ]
    )
    assert [row[1:2] + row[3:] for row in _shortfall_rows(paper)] == [
        ["AC", "usps", "90.0", "89.3", "-0.7", "k=3 -2.0"],
        ["error", "usps", "10.0", "11.0", "+1.0", "k=2 +1.0"],
    ]
