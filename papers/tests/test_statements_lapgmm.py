"""Sentences and tables of the documentation that quote the records of lapgmm, and the guide to mixtures."""

import functools
import re
from collections import Counter

import numpy as np
import pytest

from fiedler.metrics import clustering_accuracy
from fiedler_papers import load_protocol
from fiedler_papers.illustrations import MOON_STEPS, rule_label
from fiedler_papers.tables import AVERAGE, read_published, select_records
from statements import BOTH, line, lines, page_table, percent, records, text, values

STEPS = ["1", "4", "16", "64", "256"]  # of rule (12)
STRENGTHS = (100.0, 500.0, 1000.0, 10000.0, 100000.0)  # the range of λ of rule (12)
SETS_OF_LAPGMM = {"usps": "USPS", "coil20": "COIL20", "tdt2": "TDT2"}
STEP_RULES = {
    "highest objective (6)": lambda trial: trial["objective"],
    "all K clusters, then modularity": lambda trial: (trial["n_clusters"], trial["modularity"]),
    "highest modularity": lambda trial: trial["modularity"],
}


@functools.cache
def step_trials(data):
    """Every fit of the column "chosen steps", by draw and k."""
    protocol = load_protocol("lapgmm")
    selected = select_records(protocol, protocol.experiments[data], records("lapgmm"))
    return {
        (record["draw"], record["at"]["k"]): record["trials"]
        for record in selected
        if record["method"] == "lapgmm_steps"
    }


def chosen_by(rule, trials):
    """Return the trial that a rule chooses, a number of steps or a key of `STEP_RULES`."""
    return trials[rule] if rule in trials else max(trials.values(), key=STEP_RULES[rule])


def both_scores(trials):
    return "/".join(percent(np.mean([trial[score] for trial in trials])) for score in BOTH)


@pytest.mark.parametrize("rule", [*STEPS, *STEP_RULES])
def test_notes_of_lapgmm_compare_the_numbers_of_steps(rule):
    """On even and on odd draws; the rule was preferred after the accuracies of both had been seen."""
    cells = []
    for data in SETS_OF_LAPGMM:
        for half in (0, 1):
            trials = [chosen_by(rule, trials) for (draw, _), trials in step_trials(data).items() if draw % 2 == half]
            cells.append(both_scores(trials))
    title = f"{rule} steps" if rule in STEPS else rule
    assert f"| {title.replace('1 steps', '1 step')} | {' | '.join(cells)} |" in text("papers/lapgmm/NOTES.md")


def test_notes_of_lapgmm_say_why_the_objective_does_not_choose_the_steps():
    notes = text("papers/lapgmm/NOTES.md")
    highest = {
        data: Counter(max(trials, key=lambda n: trials[n]["objective"]) for trials in step_trials(data).values())
        for data in SETS_OF_LAPGMM
    }
    fits = {data: len(step_trials(data)) for data in SETS_OF_LAPGMM}
    remain = {
        data: f"{np.mean([trials['256']['n_clusters'] / k for (_, k), trials in step_trials(data).items()]):.0%}"
        for data in SETS_OF_LAPGMM
    }
    on_images = (
        f"highest with 256 steps in {highest['usps']['256']} of {fits['usps']} fits of USPS and "
        f"{highest['coil20']['256']} of {fits['coil20']} of COIL20, where some clusters are lost (on average "
        f"{remain['usps']} of K remain on USPS and {remain['coil20']} on COIL20)"
    ).replace("%", " %")
    assert on_images in notes
    assert on_images in text("docs/mixtures.md")
    assert highest["tdt2"]["256"] == 0
    assert (
        f"On TDT2, where {remain['tdt2']} of K remain with 256 steps, it is highest with 16 steps in "
        f"{highest['tdt2']['16']} of {fits['tdt2']} fits and never with 256."
    ).replace("%", " %") in notes
    complete = {
        (data, n): np.mean([trials[n]["n_clusters"] == k for (_, k), trials in step_trials(data).items()])
        for data in SETS_OF_LAPGMM
        for n in STEPS
    }
    assert (
        f"256 steps leave all K clusters in {complete['usps', '256']:.0%} of the fits of USPS, "
        f"{complete['coil20', '256']:.0%} of COIL20 and {complete['tdt2', '256']:.0%} of TDT2 (64 steps: "
        f"{complete['usps', '64']:.0%}, {complete['coil20', '64']:.0%}, {complete['tdt2', '64']:.0%})"
    ).replace("%", " %") in notes
    # "at least as accurate ... on every set and either half"
    assert all(modularity_is_best(data, half) for data in SETS_OF_LAPGMM for half in (0, 1))


def modularity_is_best(data, half):
    """Whether modularity alone is at least as accurate as four steps, and as with all K clusters first."""
    rules = ("highest modularity", "all K clusters, then modularity", "4")
    halves = [trials for (draw, _), trials in step_trials(data).items() if draw % 2 == half]
    chosen, *others = (np.mean([chosen_by(rule, trials)["AC"] for trials in halves]) for rule in rules)
    return chosen >= max(others)


def lapgmm_pair(data, method):
    """Ours, the published figures and the differences in points, AC/NMI."""
    found = [line("lapgmm", data, data, method, score) for score in BOTH]
    ours, printed = (
        "/".join(percent(value) for value in values)
        for values in ([one.ours.value for one in found], [one.published.value for one in found])
    )
    return ours, printed, [100 * one.difference for one in found]


def test_notes_of_lapgmm_say_how_close_rule_12_comes():
    notes = text("papers/lapgmm/NOTES.md")
    for method, title in (
        ("lapgmm_printed", "rule (12), four steps"),
        ("lapgmm_steps", "rule (12), chosen steps"),
        ("lapgmm_anchored", "anchored"),
        ("lapgmm_variational", "variational †"),
    ):
        cells = [lapgmm_pair(data, method)[0] for data in SETS_OF_LAPGMM]
        assert f"| {title} | {' | '.join(cells)} |" in notes
    assert f"| printed | {' | '.join(lapgmm_pair(data, 'lapgmm_steps')[1] for data in SETS_OF_LAPGMM)} |" in notes
    gaps = {data: lapgmm_pair(data, "lapgmm_steps")[2] for data in SETS_OF_LAPGMM}
    assert all(abs(gap[0]) <= 3 for gap in gaps.values())  # "within three points in accuracy on all three"
    assert {data for data, gap in gaps.items() if abs(gap[1]) > 3} == {"tdt2"}
    assert f"({-gaps['tdt2'][1]:.1f} below on TDT2)" in notes


def records_of_figure_7(data, lam):
    protocol = load_protocol("lapgmm")
    selected = select_records(protocol, protocol.experiments["strength_printed"], records("lapgmm"))
    return [record for record in selected if record["data"] == data and record["at"]["lam"] == lam]


def test_notes_of_lapgmm_describe_figure_7_with_rule_12():
    notes, scores = text("papers/lapgmm/NOTES.md"), values("lapgmm", "strength_printed")
    for data, name in SETS_OF_LAPGMM.items():
        cells = [
            "/".join(
                percent(np.mean(list(scores[data, "lapgmm_steps", f"k=5 lam={lam}", score].values()))) for score in BOTH
            )
            for lam in STRENGTHS
        ]
        assert f"| {name}, λ | {' | '.join(cells)} |" in notes
        four = [records_of_figure_7(data, lam) for lam in STRENGTHS]
        cells = [both_scores([record["trials"]["4"] for record in found]) for found in four]
        assert f"| {name}, λ, four steps | {' | '.join(cells)} |" in notes
        first, last = (
            [np.mean([record["trials"]["4"][score] for record in four[n]]) for score in BOTH] for n in (1, 4)
        )
        assert np.max(np.abs(np.subtract(last, first))) < 0.0125  # "by at most 1.2 points"
    change = {
        data: "/".join(
            f"{100 * (np.mean(list(last.values())) - np.mean(list(first.values()))):+.1f}"
            for first, last in (
                [scores[data, "lapgmm_steps", f"k=5 lam={lam}", score] for lam in (500.0, 100000.0)] for score in BOTH
            )
        )
        for data in SETS_OF_LAPGMM
    }
    assert (
        f"stable on USPS and TDT2 (at most two points), and not on COIL20: from 500 to 10⁵ they change by "
        f"{change['usps']} points on USPS, {change['tdt2']} on TDT2 and {change['coil20']} on COIL20 (means of ten "
    ) in notes
    stable = {data: max(abs(float(points)) for points in change[data].split("/")) <= 2 for data in change}
    assert stable == {"usps": True, "coil20": False, "tdt2": True}
    assert {len(column) for column in scores.values()} == {10}


def test_notes_of_lapgmm_describe_figure_8_with_rule_12():
    notes, scores = text("papers/lapgmm/NOTES.md"), values("lapgmm", "neighbours_printed")
    for data, name in SETS_OF_LAPGMM.items():
        cells = [
            "/".join(
                percent(np.mean(list(scores[data, "lapgmm_steps", f"k=5 graph__n_neighbors={p}", score].values())))
                for score in BOTH
            )
            for p in (3, 5, 8, 13, 20)
        ]
        assert f"| {name}, p | {' | '.join(cells)} |" in notes


@functools.cache
def steps_of_tdt2():
    """The records of "chosen steps" on TDT2 over λ, of the first five draws, by k and λ."""
    protocol, found = load_protocol("lapgmm"), {}
    for experiment in ("tdt2", "strength_printed", "strength_tdt2"):
        for record in select_records(protocol, protocol.experiments[experiment], records("lapgmm")):
            if record["data"] == "tdt2" and record["method"] == "lapgmm_steps" and record["draw"] < 5:
                at = (record["at"]["k"], record["at"].get("lam", 1000.0))
                found.setdefault(at, {})[record["draw"]] = record
    return {at: [by_draw[draw] for draw in range(5)] for at, by_draw in found.items()}


def test_small_graphs_are_best_on_images_in_figure_8_with_rule_12():
    scores = values("lapgmm", "neighbours_printed")
    for data in ("usps", "coil20"):
        for score in BOTH:
            columns = {p: scores[data, "lapgmm_steps", f"k=5 graph__n_neighbors={p}", score] for p in (3, 5, 8, 13, 20)}
            assert max(columns, key=lambda p: np.mean(list(columns[p].values()))) in (3, 5)
    assert "with rule (12) small graphs are best on images" in text("papers/lapgmm/NOTES.md")


def test_notes_of_lapgmm_say_which_methods_have_ten_draws():
    few = {"lapgmm_anchored", "lapgmm_steps", "lapgmm_100", "spectral", "umap_gmm", "gnmf", "bgmm"}
    for data in SETS_OF_LAPGMM:
        for one in lines("lapgmm", data):
            if one.place == AVERAGE and one.method != "hdbscan":  # which has no seed
                assert one.ours.draws == (10 if one.method in few else 30)
    assert "`lapgmm_100` and the peers 10 |" in text("papers/lapgmm/NOTES.md")


def test_notes_of_lapgmm_say_what_lambda_changes_in_table_4():
    notes, best = text("papers/lapgmm/NOTES.md"), {}
    for k in (5, 10, 15, 20, 25, 30):
        scores = {lam: [record["scores"] for record in steps_of_tdt2()[k, lam]] for lam in STRENGTHS}
        assert f"| {k} | {' | '.join(both_scores(scores[lam]) for lam in STRENGTHS)} |" in notes
        best[k] = [max(STRENGTHS, key=lambda lam: np.mean([one[score] for one in scores[lam]])) for score in BOTH]
    assert all(best[k] == [1000.0, 1000.0] for k in best if k >= 10)  # "the best of them from ten classes on"


def test_notes_of_lapgmm_say_why_a_larger_lambda_is_worse_on_tdt2():
    def many_steps(lam):
        """Mean iterations, and share of K clusters, of 256 steps on 20, 25 and 30 classes."""
        found = [(record["trials"]["256"], k) for k in (20, 25, 30) for record in steps_of_tdt2()[k, lam]]
        iterations = np.mean([trial["n_iter"] for trial, _ in found])
        return f"{iterations:.0f}", f"{np.mean([trial['n_clusters'] / k for trial, k in found]):.0%}".replace("%", " %")

    notes, (iterations, share), (fewer, small_share) = text("papers/lapgmm/NOTES.md"), *map(many_steps, (1e3, 1e4))
    chosen = {
        lam: Counter(record["best_at"] for k in (20, 25, 30) for record in steps_of_tdt2()[k, lam])
        for lam in (1e3, 1e4)
    }
    assert f"takes {iterations} iterations, {share} of K clusters remain, and the modularity chooses" in notes
    assert f"chooses 256 steps in {chosen[1e3][256]} of {chosen[1e3].total()} fits" in notes
    assert f"the same fit ends after {fewer} iterations with {small_share} of K" in notes
    assert f"and 16 steps are chosen in {chosen[1e4][16]} of {chosen[1e4].total()}" in notes


def test_notes_of_lapgmm_describe_figure_1():
    protocol = load_protocol("lapgmm")
    (record,) = select_records(protocol, protocol.experiments["moons"], records("lapgmm"))
    shown_labels, truth = record["shown"], np.array(record["shown"]["truth"])
    accuracy = {
        name: clustering_accuracy(truth, np.array(labels))
        for name, labels in shown_labels.items()
        if name not in ("X", "truth")
    }
    rule = {init: [accuracy[rule_label(init, n)] for n in MOON_STEPS] for init in ("kmeans", "community")}
    span = lambda values: f"{percent(min(values))} to {percent(max(values))}"  # noqa: E731
    assert (
        f"GMM has {percent(accuracy['GMM'])} % and the default {percent(accuracy['LapGMM'])}; rule (12) with p = 8 has "
        f"{span(rule['kmeans'])} from k-means, and {span(rule['community'])} from communities"
    ) in text("papers/lapgmm/NOTES.md")


def test_notes_of_lapgmm_say_how_close_the_other_columns_come():
    notes = text("papers/lapgmm/NOTES.md")
    gap = {
        (data, method): lapgmm_pair(data, method)[2]
        for data in SETS_OF_LAPGMM
        for method in ("gmm", "nmf", "nmf_kmeans", "pca_kmeans", "kmeans", "lapgmm_variational", "lapgmm_printed")
    }
    assert all(5.5 < value < 7 for value in gap["usps", "gmm"])  # "6 points above"
    assert max(abs(value) for data in ("coil20", "tdt2") for value in gap[data, "gmm"]) < 3  # "agrees elsewhere"
    assert all(-9 < value < -6.5 for data in ("usps", "coil20") for value in gap[data, "nmf"])  # "7 to 9 below"
    assert round(gap["tdt2", "nmf"][0]) == 12
    assert all(abs(gap[data, "nmf_kmeans"][0]) < 3 for data in ("usps", "coil20"))
    assert round(gap["tdt2", "nmf_kmeans"][0]) == -7
    assert round(gap["coil20", "pca_kmeans"][0]) == -4
    assert round(gap["coil20", "kmeans"][0]) == -2
    assert max(abs(value) for value in gap["usps", "lapgmm_variational"] + gap["usps", "lapgmm_printed"]) < 3
    assert abs(gap["coil20", "lapgmm_variational"][0]) < 3
    assert (
        f"on COIL20 they are {-gap['coil20', 'lapgmm_variational'][1]:.1f} and "
        f"{-gap['coil20', 'lapgmm_printed'][1]:.1f} below, but there k-means is {-gap['coil20', 'kmeans'][1]:.1f}"
    ) in notes
    two = line("lapgmm", "usps", "usps", "kmeans", "AC", "k=2")
    assert f"(k-means {100 * two.ours.value:.0f} against {100 * two.published.value:.0f} %)" in notes
    hundred = lapgmm_pair("tdt2", "lapgmm_100")[2]
    assert f"within {-hundred[0]:.1f}/{-hundred[1]:.1f} points of the printed figures over all k" in notes
    for data in SETS_OF_LAPGMM:  # "The defaults are above the printed averages on all three sets."
        for method in ("lapgmm", "manifold"):
            assert min(lapgmm_pair(data, method)[2]) > 0


def test_notes_of_lapgmm_compare_the_defaults_with_peers():
    """On the ten draws that all have: ahead of every peer on images, behind SpectralClustering on TDT2."""
    peers = ("spectral", "hdbscan", "umap_gmm", "gnmf", "bgmm")

    def mean(data, method, score):
        columns = [
            column
            for (one, name, _, kind), column in values("lapgmm", data).items()
            if (one, name, kind) == (data, method, score)
        ]
        return np.mean([np.mean([value for draw, value in column.items() if draw < 10]) for column in columns])

    for score in BOTH:
        for data in ("usps", "coil20"):
            assert mean(data, "manifold", score) > max(mean(data, peer, score) for peer in peers)
        better = {peer for peer in peers if mean("tdt2", peer, score) > mean("tdt2", "manifold", score)}
        assert better == {"spectral"}


def test_notes_of_lapgmm_describe_the_variational_curves():
    """Figs 7 and 8 with the variational solver."""
    strength, neighbours = values("lapgmm", "strength"), values("lapgmm", "neighbours")

    def curve(scores, data, name, places, score="AC"):
        return [
            np.mean(list(scores[data, "lapgmm_variational", f"k=5 {name}={place}", score].values())) for place in places
        ]

    lams, sizes = [0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0], [3, 5, 8, 10, 13, 16, 20]
    best = {data: lams[int(np.argmax(curve(strength, data, "lam", lams)))] for data in SETS_OF_LAPGMM}
    assert best == {"usps": 10.0, "coil20": 100.0, "tdt2": 300.0}
    spans = {data: np.ptp(curve(neighbours, data, "graph__n_neighbors", sizes)) for data in SETS_OF_LAPGMM}
    assert 0.025 < min(spans["usps"], spans["coil20"]) <= max(spans["usps"], spans["coil20"]) < 0.045
    assert spans["tdt2"] < 0.01
    assert {
        sizes[int(np.argmax(curve(neighbours, data, "graph__n_neighbors", sizes)))] for data in ("usps", "coil20")
    } <= {8, 10}


def accuracy_of(cell):
    return float(re.match(r"[\d.]+", cell).group())


def test_mixtures_page_counts_the_sets_of_its_own_table():
    rows = page_table("docs/mixtures.md", "| data, classes |")
    table = [[accuracy_of(cell) for cell in row[1:]] for row in rows]
    highest = [row for row in table if row[3] == max(row)]
    ties = [row for row in highest if sorted(row)[-2] == row[3]]
    above = sum(row[3] > row[2] for row in table)
    words = {1: "one", 5: "five", 7: "seven", 13: "thirteen"}
    assert (
        f"highest accuracy on {words[len(highest) - len(ties)]} of the {words[len(table)]} sets and ties on "
        f"{words[len(ties)]}; it is above the plain mixture on {words[above]}."
    ) in text("docs/mixtures.md")
    worse = {row[0].split(",")[0] for row, values in zip(rows, table) if values[3] < values[2] - 2}
    assert worse == {"letter", "glass", "zoo", "haberman"}


def test_mixtures_page_has_the_published_figures():
    printed = read_published(load_protocol("lapgmm").folder / "published.csv")
    cells = [
        "/".join(percent(printed[table, data, f"k={k}", "lapgmm", score].value) for score in BOTH)
        for table, data, k in (("2", "usps", 10), ("4", "tdt2", 30))
    ]
    (row,) = [row for row in page_table("docs/mixtures.md", "| method | USPS |") if row[0].startswith("published")]
    assert [row[1], row[4]] == cells
