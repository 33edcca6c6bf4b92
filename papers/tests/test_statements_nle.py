"""Sentences and tables of the documentation that quote the records of nle, and the guide to cuts."""

import csv
import functools

import numpy as np
import pytest

from fiedler_papers import load_protocol
from fiedler_papers.tables import read_published, select_records
from statements import is_near, line, listed, page_table, percent, records, text, values

UCI_AND_FACES = {
    "dermatology": "dermatology",
    "glass": "glass",
    "soybean_small": "soybean",
    "vehicle": "vehicle",
    "zoo": "zoo",
    "orl_112x92": "AT&T faces",
}


def nle_line(data, method, place="mean", score="AC"):
    return line("nle", "table2", data, method, score, place)


def nle_row(title, method, place="mean", published=False):
    lines_of_sets = [nle_line(data, method, place) for data in UCI_AND_FACES]
    cells = [percent(one.published.value if published else one.ours.value) for one in lines_of_sets]
    return f"| {title} | {' | '.join(cells)} |"


@pytest.mark.parametrize(
    ("title", "method"),
    [
        ("SpecClus", "spectral"),
        ("SpecClus without the constant eigenvector", "spectral_nonconstant"),
        ("NLE", "nle"),
        ("NLE without the constant eigenvector", "nle_nonconstant"),
        ("NLE, start not scaled", "nle_unscaled"),
        ("NLE and single moves", "nle_moves"),
        ("k-means, one start", "kmeans_start"),
        ("NLE from k-means", "nle_kmeans"),
        ("NLE from k-means and single moves", "moves_kmeans"),
    ],
)
def test_notes_of_nle_have_the_readings(title, method):
    assert nle_row(title, method) in text("papers/nle/NOTES.md")


def test_notes_of_nle_say_how_many_starts_a_row_has():
    names = {"spectral": "SpecClus", "nle": "NLE", "nle_moves": "NLE and single moves"}
    others = ("spectral_nonconstant", "nle_nonconstant", "nle_unscaled", "kmeans_start", "nle_kmeans", "moves_kmeans")
    starts = {
        group: {nle_line(data, method).ours.draws for data in UCI_AND_FACES for method in group}
        for group in (tuple(names), others)
    }
    assert list(starts.values()) == [{1024}, {128}]
    first, second, third = names.values()
    sentence = f"1024 starts for {first}, {second}, and {third}, 128 for the other rows."
    assert sentence in text("papers/nle/NOTES.md")


@pytest.mark.parametrize(("title", "method"), [("SpecClus", "spectral"), ("NLE", "nle")])
def test_notes_of_nle_compare_the_two_meanings_of_best(title, method):
    notes = text("papers/nle/NOTES.md")
    assert nle_row(f"{title}, printed", method, published=True) in notes
    assert nle_row(f"{title}, printed best", method, "best", published=True) in notes
    assert nle_row(f"{title}, highest accuracy", method, "best") in notes
    assert nle_row(f"{title}, accuracy at the lowest cut", method, "lowest cut") in notes
    gap = {
        place: np.mean([abs(nle_line(data, method, place).difference) for data in UCI_AND_FACES])
        for place in ("best", "lowest cut")
    }
    assert gap["best"] < gap["lowest cut"] / 2
    assert f"{title} {percent(gap['best'])} and {percent(gap['lowest cut'])}" in notes


def test_notes_of_nle_say_which_eigenvectors_are_nearer_to_print():
    gap = lambda data, method: abs(nle_line(data, method).difference)  # noqa: E731
    nearer = [name for data, name in UCI_AND_FACES.items() if gap(data, "spectral_nonconstant") < gap(data, "spectral")]
    assert f"nearer to the printed SpecClus on {listed(nearer)}" in text("papers/nle/NOTES.md")


def test_notes_of_nle_say_what_the_scale_of_the_start_changes():
    """On the draws that both have."""
    scores = values("nle", "table2")
    change = {}
    for data in UCI_AND_FACES:
        unscaled, scaled = (scores[data, method, "mean", "AC"] for method in ("nle_unscaled", "nle"))
        change[data] = np.mean([unscaled[draw] - scaled[draw] for draw in unscaled])
    largest = max(change, key=lambda data: abs(change[data]))
    assert (
        "on the same 128 starts this changes the mean accuracy by at most "
        f"{percent(abs(change[largest]))} points ({UCI_AND_FACES[largest]})"
    ) in text("papers/nle/NOTES.md")


def shown(experiment):
    protocol = load_protocol("nle")
    (record,) = select_records(protocol, protocol.experiments[experiment], records("nle"))
    return record["shown"]


def test_notes_of_nle_describe_the_recorded_curves():
    """[nle, Theorems 3 and 4, Figs 2, 4 and 5]."""
    notes, falls, misses = text("papers/nle/NOTES.md"), {}, {}
    for experiment in ("evolution", "progress_dermatology", "progress_zoo"):
        curves = shown(experiment)
        steps = np.diff(curves["objective"])
        first_rise = int(np.flatnonzero(steps > 0)[0])
        falls[experiment] = first_rise, int(np.sum(steps[first_rise:] < 0))
        assert min(curves["lagrangian"]) > 0  # "rises at every update"
        misses[experiment] = max(curves["orthogonality"]), curves["orthogonality"][-1]
        assert curves["stationarity"][-1] < 2e-4
    assert [falls[name][0] for name in falls] == [5, 6, 6]
    assert [falls[name][1] for name in ("progress_dermatology", "progress_zoo")] == [0, 0]
    assert "falls for the first 5 (Fig. 2) or 6 updates (Figs 4 and 5)" in notes
    drop = shown("evolution")["objective"]
    assert (
        f"in {falls['evolution'][1]} of the later updates of Fig. 2, from {max(drop[10:]):.2f} to {drop[-1]:.2f}"
        in notes
    )
    largest = max(peak for peak, _ in misses.values())
    ends = ", ".join(f"{end:.2f}" for _, end in misses.values())
    assert f"misses Q'Q = I by up to {largest:.2f} on the way and by {ends} after 300 updates" in notes


def test_notes_of_nle_count_the_labels_that_raw_inner_products_move():
    plain, shifted = (shown("raw_faces")[signed] for signed in ("split", "shift"))

    def span(counts):
        return f"{min(counts['changed'])} to {max(counts['changed'])}"

    assert min(plain["changed"]) > 0
    assert (
        f"change {span(plain)} of the thirty labels from ten uniform starts ({span(shifted)} with the smallest "
        f"weight shifted to zero), and {plain['changed_from_people']} ({shifted['changed_from_people']}) of the true "
        f"ones; the mean accuracy at the end is {percent(np.mean(plain['accuracy']))} % "
        f"({percent(np.mean(shifted['accuracy']))})"
    ) in text("papers/nle/NOTES.md")


def test_notes_of_nle_say_how_close_the_columns_come():
    notes = text("papers/nle/NOTES.md")
    far = {
        method: {name for data, name in UCI_AND_FACES.items() if not is_near(nle_line(data, method).difference)}
        for method in ("spectral", "nle")
    }
    assert far == {"spectral": {"soybean", "zoo", "AT&T faces"}, "nle": {"vehicle", "zoo"}}
    for data in UCI_AND_FACES:  # "NLE above spectral clustering in mean accuracy and below it in cut on every set"
        assert nle_line(data, "nle").ours.value > nle_line(data, "spectral").ours.value
        cuts = [nle_line(data, method, score="cut").ours.value for method in ("spectral", "nle", "nle_moves")]
        assert cuts[0] > cuts[1] >= cuts[2]
        accuracies = [nle_line(data, method).ours.value for method in ("nle", "nle_moves")]
        assert accuracies[1] > accuracies[0] or accuracies[0] == 1
    zoo, vehicle = nle_line("zoo", "nle"), nle_line("vehicle", "nle")
    assert (
        f"zoo ({percent(zoo.ours.value)} % against {percent(zoo.published.value)}) and vehicle "
        f"({percent(vehicle.ours.value)} against {percent(vehicle.published.value)})"
    ) in notes
    below = {
        method: [name for data, name in UCI_AND_FACES.items() if nle_line(data, method).difference < 0]
        for method in ("nle_default", "manifold", "moves_kmeans", "nle_kmeans")
    }
    assert below["manifold"] == ["zoo"]
    assert below["nle_default"] == ["glass", "zoo"]
    (without_moves,) = [name for name in below["nle_kmeans"] if name not in below["moves_kmeans"]]
    assert set(below["moves_kmeans"]) < set(below["nle_kmeans"])
    assert without_moves == "AT&T faces"
    faces = nle_line("orl_112x92", "nle_kmeans")
    assert (
        f"NLE from k-means and single moves is below print on {listed(below['moves_kmeans'])} in the mean, and without "
        f"the moves on {without_moves} as well ({percent(faces.ours.value)} against {percent(faces.published.value)})."
    ) in notes


BEST_OF_TWELVE = ("best_spectral", "best_kmeans", "best_auto")  # the lowest cut of twelve starts


@functools.cache
def cut_of_best(data, method):
    """The mean Ratio Cut of the fits of a method, in the unit of the weights."""
    protocol = load_protocol("nle")
    selected = select_records(protocol, protocol.experiments["table2"], records("nle"))
    return np.mean([one["objective"] for one in selected if (one["data"], one["method"]) == (data, method)])


@pytest.mark.slow
@pytest.mark.parametrize("data", UCI_AND_FACES)
def test_notes_of_nle_compare_the_lowest_cuts_of_twelve_starts(data):
    printed_figure = percent(nle_line(data, "nle").published.value)
    cells = [f"{percent(nle_line(data, name).ours.value)}, {cut_of_best(data, name):.6g}" for name in BEST_OF_TWELVE]
    assert f"| {UCI_AND_FACES[data]} ({printed_figure}) | {' | '.join(cells)} |" in text("papers/nle/NOTES.md")


def test_notes_of_nle_say_where_starts_from_kmeans_have_a_lower_cut():
    lower = [
        name
        for data, name in UCI_AND_FACES.items()
        if cut_of_best(data, "best_kmeans") < cut_of_best(data, "best_spectral") * (1 - 1e-6)
    ]
    above = {
        method: [name for data, name in UCI_AND_FACES.items() if nle_line(data, method).difference > 0]
        for method in BEST_OF_TWELVE
    }
    for data in ("dermatology", "orl_112x92"):  # "the lower cut is the less accurate partition"
        assert nle_line(data, "best_kmeans").ours.value < nle_line(data, "best_spectral").ours.value
    assert (
        f"The cut from k-means starts is lower on {listed(lower)}. Above print are, with spectral starts, "
        f"{listed(above['best_spectral'])}; with k-means starts {listed(above['best_kmeans'])}; with all in turn "
        f"{listed(above['best_auto'])}."
    ) in text("papers/nle/NOTES.md")


def test_notes_of_nle_say_that_no_setting_is_above_print_everywhere():
    """settings.csv, made by benchmarks/quality_nle_settings.py."""
    with (load_protocol("nle").folder / "settings.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    above = {}
    for row in rows:
        setting = row["graph"], row["cut"], row["init"]
        print_of_set = nle_line(row["data"], "nle").published.value
        above.setdefault(setting, {})[row["data"]] = float(row["accuracy"]) > print_of_set
    n_above = {setting: sum(sets.values()) for setting, sets in above.items()}
    best = [setting for setting, number in n_above.items() if number == max(n_above.values())]
    assert {len(sets) for sets in above.values()} == {5}
    assert max(n_above.values()) == 4
    assert best == [("15 neighbours", "ratio", "kmeans"), ("30 neighbours", "ratio", "kmeans")]
    on_zoo = {setting for setting, sets in above.items() if sets["zoo"]}
    on_vehicle = {setting for setting, sets in above.items() if sets["vehicle"]}
    assert not on_zoo & on_vehicle
    assert all(setting[0].startswith("complete") for setting in on_zoo)
    default = n_above["9 neighbours", "ratio", "spectral"]
    assert f"none of the {len(above)} combinations of graph, cut and starts" in text("docs/cuts.md")
    assert (
        f"Of {len(above)} settings none is above print on all of the five smaller sets: {len(on_zoo)} are above on zoo "
        f"and {len(on_vehicle)} on vehicle, and none on both. Two are above on four (15 and 30 neighbours, Ratio Cut, "
        f"starts from k-means), the default on {default}."
    ) in text("papers/nle/NOTES.md")


def test_cuts_page_has_the_published_figures_and_what_follows_from_its_table():
    printed = read_published(load_protocol("nle").folder / "published.csv")
    names = {name: data for data, name in UCI_AND_FACES.items()}
    for name, published, dense, sparse, normalised in page_table("docs/cuts.md", "| data | paper"):
        two = [percent(printed["II", names[name], "mean", method, "AC"].value) for method in ("spectral", "nle")]
        assert published == ", ".join(two)
        spectral, nle, polished = map(float, dense.split(" → "))
        assert spectral < nle <= polished
        assert len(sparse.split(" → ")) == len(normalised.split(" → ")) == 3
        better = float(sparse.split(" → ")[0]) > spectral
        assert better == (name != "glass")


def test_cuts_page_quotes_the_lowest_cut_of_starts_from_kmeans():
    zoo = percent(nle_line("zoo", "best_kmeans").ours.value)
    assert f"(from k-means starts, the lowest cut of twelve has {zoo} %)" in text("docs/cuts.md")


def test_cuts_page_measures_the_cost_in_k():
    """The time of an update grows faster than K for many clusters, and never as fast as K²."""
    rows = page_table("docs/cuts.md", "| clusters |")
    assert [row[0] for row in rows] == ["10 neighbours, ms", "200 landmarks, ms"]
    for row in rows:
        times = np.array([float(cell) for cell in row[1:]])
        assert (times[1:] / times[:-1] < 4).all()
        assert times[-1] / times[-2] > 2
