"""The papers' folders: complete, consistent, and faithful to the printed tables."""

import csv
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fiedler.errors import FileFormatError, InputError
from fiedler_papers import list_protocols, load_protocol
from fiedler_papers.build import build
from fiedler_papers.tables import AVERAGE, read_published

PAPERS = ["lapgmm", "lcgmm", "learned_laplacian", "lpi", "nle"]


@pytest.fixture(scope="module", params=PAPERS)
def protocol(request):
    return load_protocol(request.param)


def test_every_paper_has_its_folder():
    assert set(list_protocols()) == {*PAPERS, "smoke"}
    for key in PAPERS:
        assert (load_protocol(key).folder / "NOTES.md").exists()


def test_every_model_of_a_protocol_can_be_built(protocol):
    for experiment in protocol.experiments.values():
        for data in experiment.data:
            for method in experiment.methods:
                spec = protocol.methods[method].spec(data)
                assert spec["task"] in ("start", "illustrate") or build(spec["model"]) is not None
                for name in ("learner", "metric", "graph"):
                    build(spec["options"].get(name))


TUNED_BY_LABELS = {"lapgmm_variational", "lapgmm_100"}  # once, on a full data set: papers/lapgmm/NOTES.md


def test_methods_tuned_by_labels_are_marked(protocol):
    for method in protocol.methods.values():
        searches = bool({"widths", "dimensions"} & set(method.options)) and method.task != "part"
        assert (searches or method.key in TUNED_BY_LABELS) == method.label.endswith("†")


def test_published_figures_belong_to_methods_and_draws_to_cells(protocol):
    published = read_published(protocol.folder / "published.csv")
    columns = {method.published for method in protocol.methods.values() if method.published}
    if protocol.key != "lcgmm":  # which prints no table and borrows lapgmm's methods
        assert {method for _, _, _, method, _ in published} == columns
    for experiment in protocol.experiments.values():
        for at in ("k", "rate"):
            for value in experiment.grid.get(at, []):
                for data in experiment.data:
                    assert len(protocol.draws[data, f"{at}={value}"]) >= experiment.draws


def test_the_tables_are_complete():
    """Counted in the papers: rows by columns by scores."""
    counts = {
        "lapgmm": {"2": 10 * 10, "3": 10 * 10, "4": 7 * 10},
        "lpi": {"3": 10 * 14, "4": 10 * 14, "5": 20 * 10},
        "learned_laplacian": {"II": 8 * 10, "III": 8 * 10},
        "nle": {"II": 6 * 8},
    }
    for key, expected in counts.items():
        published = read_published(load_protocol(key).folder / "published.csv")
        assert Counter(table for table, *_ in published) == expected


@pytest.mark.parametrize("key", ["lapgmm", "lpi"])
def test_the_printed_averages_match_the_printed_rows(key):
    """An error in copying a number would change the average of its column."""
    published = read_published(load_protocol(key).folder / "published.csv")
    columns = {(table, data, method, score) for table, data, _, method, score in published}
    for table, data, method, score in columns:
        rows = {
            at: value
            for (of, where, at, how, what), value in published.items()
            if (of, where, how, what) == (table, data, method, score)
        }
        average = rows.pop(AVERAGE)
        mean = np.mean([printed.value for printed in rows.values()])
        assert abs(mean - average.value) < 0.0013, (table, data, method, score)


def test_draws_have_as_many_classes_as_their_k():
    with (load_protocol("lpi").folder / "draws.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        chosen = row["chosen"].split()
        assert len(set(chosen)) == len(chosen) == int(row["at"].removeprefix("k="))


def test_cells_are_unique_and_sorted_by_draw(protocol):
    cells = protocol.cells()
    assert len({cell.key for cell in cells}) == len(cells)
    assert [cell.draw for cell in cells] == sorted(cell.draw for cell in cells)


def test_cells_with_different_settings_have_different_digests():
    cells = load_protocol("lapgmm").cells(table="2", draws=1)
    assert len({cell.digest for cell in cells}) == len(cells)


def test_methods_without_a_seed_run_once_on_the_same_rows():
    cells = load_protocol("lapgmm").cells(table="2", only=["hdbscan", "k=10"])
    assert len(cells) == 1  # ten classes of ten: every draw is the same


def test_unknown_names_are_errors():
    protocol = load_protocol("lapgmm")
    assert {cell.data for cell in protocol.cells(table="3", only=["kmeans", "k=2"])} == {"coil20"}
    both = protocol.cells(table="3", only=["kmeans", "gmm", "k=2", "k=3"])
    assert {(cell.method, cell.at["k"]) for cell in both} == {(m, k) for m in ("kmeans", "gmm") for k in (2, 3)}
    with pytest.raises(InputError, match="only='no_such_method' is not a data set, method or grid value") as caught:
        protocol.cells(only=["no_such_method"])
    assert (caught.value.code, caught.value.fields["value"]) == ("unknown_option", "no_such_method")
    with pytest.raises(ValueError, match="table='9' is not known; choose one of"):
        protocol.cells(table="9")
    with pytest.raises(ValueError, match=r"paper='lapgm' is not known \(did you mean 'lapgmm'\?\); choose one of"):
        load_protocol("lapgm")
    with pytest.raises(ValueError, match="draws must be an integer of at least 1"):
        protocol.cells(draws=0)


def test_an_inconsistent_protocol_is_an_error(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    text = (
        'title = "mine"\n[data.digits]\nload = { name = "digits" }\n'
        '[methods.kmeans]\nlabel = "k-means"\nmodel = { use = "EmbedKMeans" }\n'
        '[experiments.one]\ntitle = "one"\ndata = ["digits"]\ngrid = { k = [2] }\ndraws = 3\nscores = ["AC"]\n'
    )
    (folder / "protocol.toml").write_text(text + 'methods = ["kmean"]\n')
    with pytest.raises(ValueError, match="experiment 'one': method='kmean' is not known"):
        load_protocol("mine", tmp_path)
    (folder / "protocol.toml").write_text(text + 'methods = ["kmeans"]\n')
    with pytest.raises(FileFormatError, match=r"draws.csv contains 0 of 3 draws for digits, k=2"):
        load_protocol("mine", tmp_path)
    (folder / "draws.csv").write_text("data,at,draw,chosen\ndigits,k=2,0,0 1\n")
    with pytest.raises(FileFormatError, match=r"draws.csv contains 1 of 3 draws for digits, k=2"):
        load_protocol("mine", tmp_path)
    (folder / "draws.csv").write_text("data,at,draw,chosen\ndigits,k=2,1,0 1\n")
    with pytest.raises(FileFormatError, match="draw 1 of digits, k=2 is out of order"):
        load_protocol("mine", tmp_path)


@pytest.mark.parametrize(("text", "complaint"), [("title = ", "cannot be read"), ('x = "1"', "cannot be read")])
def test_an_unreadable_protocol_is_named_in_the_error(text, complaint, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "protocol.toml").write_text(text)
    with pytest.raises(FileFormatError, match=f"papers/mine/protocol.toml {complaint}"):
        load_protocol("mine", tmp_path)


def test_a_raised_revision_makes_older_records_stale():
    protocol = load_protocol("smoke")
    (cell,) = protocol.cells(draws=1, only=["kmeans", "k=2"])
    method = replace(protocol.methods["kmeans"], revision=1)
    (revised,) = replace(protocol, methods={**protocol.methods, "kmeans": method}).cells(
        draws=1, only=["kmeans", "k=2"]
    )
    assert cell.digest != revised.digest
