"""Sentences and tables of the documentation that quote the records of lpi."""

from collections import Counter

import numpy as np
import pytest

from fiedler_papers import load_protocol
from fiedler_papers.layout import with_error
from fiedler_papers.paired import significant_sign
from fiedler_papers.ranks import read_ranks
from fiedler_papers.tables import AVERAGE, average_of
from statements import BOTH, is_near, line, lines, listed, pair, percent, text, values

CORPORA = {"tdt2": "TDT2", "reuters21578": "Reuters"}
EXACT_UP_TO = 2000  # documents or terms, with solver='auto' of LPI


def per_place(data, method, score):
    return [
        one
        for one in lines("lpi", data)
        if (one.method, one.score) == (method, score) and one.place != AVERAGE and one.data == data
    ]


def number(place):
    return int(place.split("=")[1])


def is_equal(one):
    return one.mark == "equal"


def averages(data, method, experiment=None):
    """Write the averages over k of accuracy and NMI."""
    return "/".join(percent(line("lpi", experiment or data, data, method, score).ours.value) for score in BOTH)


def gains(data, methods, experiment=None, place=None, separator="/"):
    """Write the differences of two methods in accuracy and NMI on the same draws, at one k or on average."""
    rows = [pair("lpi", experiment or data, data, methods, score) for score in BOTH]
    means = [row.places[place] if place else row.average for row in rows]
    return separator.join(with_error(mean.value, mean.error, "AC", sign="+") for mean in means)


def test_documents_page_says_where_lpi_reaches_the_published_figures():
    equal = {
        (data, score): listed(number(one.place) for one in per_place(data, "lpi", score) if is_equal(one))
        for data in CORPORA
        for score in BOTH
    }
    below = {
        data: max(-one.difference for one in per_place(data, "lpi", "AC") if not is_equal(one)) for data in CORPORA
    }
    assert (
        f"The published accuracy is within two standard errors of ours at k = {equal['tdt2', 'AC']} on TDT2 and at "
        f"k = {equal['reuters21578', 'AC']} on Reuters; at the others ours is up to {percent(below['tdt2'])} and "
        f"{percent(below['reuters21578'])} points below. The NMI is within two standard errors at "
        f"k = {equal['tdt2', 'NMI']} on TDT2 and at k = {equal['reuters21578', 'NMI']} on Reuters."
    ) in text("docs/documents.md")
    for method in ("kmeans", "lsi"):
        assert all(line("lpi", data, data, method, score).mark == "worse" for data in CORPORA for score in BOTH)


def test_documents_page_says_how_far_the_default_is_ahead_of_lpi():
    methods, page = ("lpi_clustering", "lpi"), text("docs/documents.md")
    mean = {data: gains(data, methods, separator=" / ") for data in CORPORA}
    assert f"by {mean['tdt2']} points on TDT2 and by {mean['reuters21578']} on Reuters" in page
    at_ten = {data: gains(data, methods, place="k=10", separator=" / ") for data in CORPORA}
    assert f"at k = 10 it is {at_ten['tdt2']} and {at_ten['reuters21578']}." in page
    accuracy = {data: pair("lpi", data, data, methods, "AC").places for data in CORPORA}
    behind = {
        data: [(number(place), mean) for place, mean in accuracy[data].items() if mean.value < 0] for data in CORPORA
    }
    worst = max(-mean.value for rows in behind.values() for _, mean in rows)
    k = {data: listed(k for k, _ in rows) for data, rows in behind.items()}
    assert f"behind at k = {k['tdt2']} on TDT2 and at k = {k['reuters21578']} on Reuters, by at most" in page
    assert f"by at most {percent(worst)} points, none of them significant" in page
    assert not any(significant_sign(mean) for rows in behind.values() for _, mean in rows)


@pytest.mark.parametrize(("data", "table"), [("tdt2", "3"), ("reuters21578", "4")])
def test_notes_of_lpi_have_the_averages(data, table):
    def figures(method, published):
        ours, printed = zip(
            *(
                (percent(one.ours.value), percent(one.published.value))
                for one in (line("lpi", data, data, method, score) for score in BOTH)
            )
        )
        return "/".join(ours) + (f" ({'/'.join(printed)})" if published else "")

    def gain(of, minus):
        return "/".join(
            f"{100 * (of(line('lpi', data, data, a, s)) - of(line('lpi', data, data, b, s))):+.1f}"
            for a, b, s in ((*minus, "AC"), (*minus, "NMI"))
        )

    ours = gain(lambda one: one.ours.value, ("lpi_clustering", "kmeans"))
    printed = gain(lambda one: one.published.value, ("lpi", "kmeans"))
    columns = [figures("kmeans", True), figures("lpi", True), figures("lpi_clustering", False), f"{ours}, {printed}"]
    assert f"| Table {table}, {CORPORA[data]} | {' | '.join(columns)} |" in text("papers/lpi/NOTES.md")


def test_notes_of_lpi_compare_the_weights_of_table_5():
    difference = {
        (data, method, score): pair("lpi", "weights", data, (method, "lpi_dot"), score).average
        for data in CORPORA
        for method in ("lpi_binary", "lpi_gaussian", "lpi_poly2", "lpi_poly5")
        for score in BOTH
    }
    reuters, tdt2 = (difference[data, "lpi_binary", "AC"] for data in ("reuters21578", "tdt2"))
    binary, dot = (line("lpi", "weights", "reuters21578", name, "AC").published for name in ("lpi_binary", "lpi_dot"))
    assert (
        f"0-1 weights are {with_error(reuters.value, reuters.error, 'AC')} points from dot products in accuracy on "
        f"Reuters ({with_error(tdt2.value, tdt2.error, 'AC', sign='+')} on TDT2), where the paper has "
        f"{100 * (binary.value - dot.value):+.1f}."
    ) in text("papers/lpi/NOTES.md")
    others = [abs(mean.value) for (_, method, _), mean in difference.items() if method != "lpi_binary"]
    assert max(others) < 0.0055  # "within half a point"


def test_notes_of_lpi_count_the_draws_of_full_rank():
    """Section 5.4 and Theorem 2: where the documents are independent, LPI is the eigenmap."""
    ranks = read_ranks(load_protocol("lpi").folder / "ranks.csv")
    count = {
        name: Counter(rank.data for rank in ranks if holds(rank))
        for name, holds in {
            "full": lambda rank: rank.is_full,
            "copies": lambda rank: rank.n_different < rank.n_documents,
            "different": lambda rank: rank.is_full_without_copies,
        }.items()
    }
    two = lambda name: " and ".join(str(count[name][data]) for data in CORPORA)  # noqa: E731
    notes = text("papers/lpi/NOTES.md")
    assert f"Ours are in {two('full')} (`ranks.csv`" in notes
    assert f"there are copies of documents in {two('copies')} draws" in notes
    assert f"If copies counted once, the counts would be {two('different')}," in notes

    accuracy = lambda rank, method: values("lpi", rank.data)[rank.data, method, f"k={rank.k}", "AC"][rank.draw]  # noqa: E731
    exact = [rank for rank in ranks if min(rank.n_documents, rank.n_terms) <= EXACT_UP_TO]
    same = {rank[:3] for rank in exact if accuracy(rank, "lpi") == accuracy(rank, "le")}
    full = [rank for rank in exact if rank.is_full]
    others = [rank for rank in exact if not rank.is_full]
    assert all(rank[:3] in same for rank in full)
    n_same = sum(rank[:3] in same for rank in others)
    assert (
        f"In all {len(full)} draws of full rank LPI and LE have the same accuracy in our records, and in {n_same} of "
        f"the {len(others)} others that were solved exactly."
    ) in notes


def test_notes_of_lpi_say_what_the_regression_changes():
    ranks = read_ranks(load_protocol("lpi").folder / "ranks.csv")
    large = [rank for rank in ranks if min(rank.n_documents, rank.n_terms) > EXACT_UP_TO]
    count = Counter(rank.data for rank in large)
    notes = text("papers/lpi/NOTES.md")
    assert f"in {len(ranks) - len(large)} of the {len(ranks)} draws of Tables 3 and 4" in notes
    assert f"The other {len(large)} ({count['tdt2']} of TDT2, {count['reuters21578']} of Reuters)" in notes
    size, largest = {}, {}
    for data in CORPORA:
        at = [(f"k={rank.k}", rank.draw) for rank in large if rank.data == data]
        scores = values("lpi", data)
        gaps = [abs(scores[data, "lpi_exact", place, "AC"][d] - scores[data, "lpi", place, "AC"][d]) for place, d in at]
        size[data], largest[data] = f"{100 * np.mean(gaps):.2f}", percent(max(gaps))
    assert (
        f"It moves the accuracy of these draws by {size['tdt2']} points on average on TDT2 and "
        f"{size['reuters21578']} on Reuters (at most {largest['tdt2']} and {largest['reuters21578']}). The averages of "
        "a table differ by less than 0.1 points: exact minus regression is "
        f"{gains('tdt2', ('lpi_exact', 'lpi'))} points (AC/NMI) over the whole of Table 3 and "
        f"{gains('reuters21578', ('lpi_exact', 'lpi'))} over Table 4."
    ) in notes
    for data in CORPORA:
        for score in BOTH:
            assert abs(pair("lpi", data, data, ("lpi_exact", "lpi"), score).average.value) < 0.001


def test_notes_of_lpi_compare_the_complete_graph():
    notes = text("papers/lpi/NOTES.md")
    for data, name in CORPORA.items():
        cells = [averages(data, method, "complete") for method in ("lpi_complete", "lsi", "lpi")]
        cells += [gains(data, ("lpi_complete", method), "complete") for method in ("lsi", "lpi")]
        assert f"| {name} | {' | '.join(cells)} |" in notes
        better = [pair("lpi", "complete", data, ("lpi_complete", other), "AC").counts() for other in ("lsi", "lpi")]
        assert better[0][1] == better[1][0] == 0  # nowhere significantly below LSI, nowhere above 15 neighbours


def average_by_size(data, method, score, *, large):
    """Return the average over k of the means over the draws with more than 2,000 documents, or with at most as many."""
    ranks = read_ranks(load_protocol("lpi").folder / "ranks.csv")
    draws = {(rank.k, rank.draw) for rank in ranks if rank.data == data and (rank.n_documents > EXACT_UP_TO) == large}
    columns = {k: values("lpi", data)[data, method, f"k={k}", score] for k in range(2, 11)}
    by_k = [np.mean([value for draw, value in column.items() if (k, draw) in draws]) for k, column in columns.items()]
    return float(np.mean(by_k)), len(draws)


def test_notes_of_lpi_say_on_which_draws_the_default_is_below_print():
    notes = text("papers/lpi/NOTES.md")
    for data, name in CORPORA.items():
        cells = []
        for large in (False, True):
            for method in ("kmeans", "lpi_clustering"):
                cells.append("/".join(percent(average_by_size(data, method, score, large=large)[0]) for score in BOTH))
            cells.append(str(average_by_size(data, "kmeans", "AC", large=large)[1]))
        assert f"| {name} | {' | '.join(cells)} |" in notes


def test_notes_of_lpi_compare_print_with_the_draws_of_few_documents():
    """26 of the 28 columns of Tables 3 and 4 are within three points there, 8 of all draws."""
    notes, near = text("papers/lpi/NOTES.md"), Counter()
    for method in ("kmeans", "lsi_best", "lsi", "lpi_best", "lpi", "le", "nmf"):
        cells = []
        for data in CORPORA:
            rows = [line("lpi", data, data, method, score) for score in BOTH]
            ours = [average_by_size(data, method, score, large=False)[0] for score in BOTH]
            printed = [row.published.value for row in rows]
            near["few"] += sum(is_near(one - two) for one, two in zip(ours, printed))
            near["all"] += sum(is_near(row.difference) for row in rows)
            cells.append(f"{'/'.join(map(percent, ours))} ({'/'.join(map(percent, printed))})")
        assert f"| {load_protocol('lpi').methods[method].label} | {' | '.join(cells)} |" in notes
    assert f"{near['few']} of the 28 columns are within three points of print there, and {near['all']} on all" in notes
    assert (
        f"Our draws with at most 2,000 documents alone would agree ({near['few']} of the 28 columns of the paper's two "
        f"tables are within three points; {near['all']} of 28 on all draws), so the paper's draws may have had"
    ) in text("docs/documents.md")


def test_notes_of_lpi_have_the_figures_of_figure_4():
    def mean(data, place, method="lpi_part", experiment="part"):
        columns = [values("lpi", experiment)[data, method, place.format(k=k), "AC"] for k in range(2, 11)]
        return percent(average_of([{d: v for d, v in column.items() if d < 10} for column in columns]).value)

    at = lambda data, share: mean(data, f"k={{k}} share={share}")  # noqa: E731
    every = {data: mean(data, "k={k}", "lpi", data) for data in CORPORA}
    assert (
        f"{at('tdt2', 0.3)} of {every['tdt2']} % on TDT2, {at('reuters21578', 0.3)} of {every['reuters21578']} on "
        f"Reuters; 50 % ({at('tdt2', 0.5)}) and 90 % ({at('reuters21578', 0.9)}) are."
    ) in text("papers/lpi/NOTES.md")


def test_notes_of_lpi_say_how_far_the_papers_own_columns_are():
    below = {
        (data, method, score): f"{-100 * line('lpi', data, data, method, score).difference:.1f}"
        for data in CORPORA
        for method in ("lpi", "kmeans")
        for score in BOTH
    }
    notes, reuters = text("papers/lpi/NOTES.md"), "reuters21578"
    assert (
        f"The paper's own LPI comes within {below['tdt2', 'lpi', 'AC']}/{below['tdt2', 'lpi', 'NMI']} points on TDT2, "
        f"and on Reuters within {below[reuters, 'lpi', 'AC']} in accuracy but not in mutual information "
        f"({below[reuters, 'lpi', 'NMI']} below, k-means {below[reuters, 'kmeans', 'NMI']} below)."
    ) in notes

    def tenth(first):
        means = []
        for score in BOTH:
            columns = [values("lpi", reuters)[reuters, "lpi_clustering", f"k={k}", score] for k in range(2, 11)]
            means.append(np.mean([[column[draw] for draw in range(first, first + 10)] for column in columns]))
        return "/".join(map(percent, means))

    assert f"the first ten give {tenth(0)} for the default on Reuters, those from 30 to 39 {tenth(30)}." in notes


def test_notes_of_lpi_compare_kmeans_with_a_later_paper():
    levels = [line("lapgmm", "tdt2", "tdt2", "kmeans", "AC", f"k={k}") for k in (5, 10)]
    printed, ours = (
        [f"{value:.3f}".lstrip("0") for value in values]
        for values in ([one.published.value for one in levels], [one.ours.value for one in levels])
    )
    assert (
        f"prints {printed[0]} and {printed[1]} for k-means on the same corpus at five and ten classes "
        f"[lapgmm, Table 4], and that agrees with ours, both for tf-idf ({ours[0]}, {ours[1]})"
    ) in text("papers/lpi/NOTES.md")


def test_few_neighbours_are_best_in_figure_3_and_three_are_too_few():
    """On both corpora, over all k: the best number is 6 or 10, and three are worse than fifteen."""
    columns = values("lpi", "local")
    for data in ("tdt2", "reuters21578"):
        for score in BOTH:
            mean = {
                p: np.mean(
                    [
                        np.mean(list(column.values()))
                        for (name, _, place, kind), column in columns.items()
                        if (name, kind) == (data, score) and f"embedding__graph__n_neighbors={p}" in place.split()
                    ]
                )
                for p in (3, 6, 10, 15, 20, 30, 40)
            }
            assert max(mean, key=mean.get) in (6, 10)
            assert mean[3] < mean[15]
    assert "few neighbours are best, p = 6 to 10, and three are too few" in text("papers/lpi/NOTES.md")
