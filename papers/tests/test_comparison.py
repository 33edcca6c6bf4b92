"""Comparison with published figures: means, errors, marks, files, figures, the command."""

import functools
import json
import math

import pytest
from numpy.testing import assert_allclose

from command_line import run_fiedler  # noqa: F401
from fiedler_papers import RecordFile, load_protocol, run_cells
from fiedler_papers.layout import as_csv, as_markdown, as_text, comparison_rows, format_score, grid_rows
from fiedler_papers.reproduce import (
    ARCHIVE_NAME,
    add_to_archive,
    compare_with_published,
    make_plan,
    run_plan,
    write_results,
)
from fiedler_papers.tables import (
    BEST,
    Mean,
    Published,
    TableLine,
    average_of,
    best_of,
    count_failures,
    mean_of,
    read_published,
    select_records,
    table_lines,
)


def line(ours, published, score="AC", error=0.01):
    printed = None if published is None else Published(published, 0.0005)
    return TableLine("digits", "m", "a method", "k=2", score, printed, Mean(ours, error, 5))


@pytest.mark.parametrize(
    ("ours", "published", "score", "mark"),
    [
        (0.9, 0.85, "AC", "better"),
        (0.9, 0.89, "AC", "equal"),
        (0.9, 0.881, "AC", "equal"),  # within two standard errors
        (0.9, 0.95, "AC", "worse"),
        (0.1, 0.2, "error", "better"),
        (0.2, 0.1, "error", "worse"),
        (0.9, None, "AC", None),
        (100.0, 200.0, "cut", None),  # the papers' graphs are not known
    ],
)
def test_marks(ours, published, score, mark):
    assert line(ours, published, score).mark == mark


def test_differences_below_half_a_printed_digit_count_as_equal():
    assert line(0.8989, 0.899, error=math.nan).mark == "equal"
    assert line(0.8980, 0.899, error=math.nan).mark == "worse"


def test_a_printed_spread_adds_to_the_error(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text("table,data,at,method,score,value,spread\n1,digits,k=2,m,AC,0.85,0.12\n1,digits,k=3,m,AC,0.85,\n")
    spread, plain = read_published(path, draws=16).values()
    assert (spread.error, plain.error) == (0.03, 0.0)
    assert line(0.9, 0.85)._replace(published=spread).mark == "equal"  # two standard errors of both are 0.063
    assert line(0.9, 0.85)._replace(published=plain).mark == "better"


def test_a_best_by_the_labels_has_no_mark():
    assert line(0.9, 0.5)._replace(place=BEST).mark is None


def test_one_draw_has_no_error_and_no_mark():
    assert line(0.9, 0.5)._replace(ours=mean_of([0.9])).mark is None
    assert math.isnan(mean_of([0.5]).error)


def test_averages_are_over_places_and_their_errors_over_draws():
    columns = [{0: 0.9, 1: 0.7, 2: 0.8}, {0: 0.7, 1: 0.5, 2: 0.6, 3: 0.8}]
    average = average_of(columns)
    assert_allclose(average.value, (0.8 + 0.65) / 2)
    assert_allclose(average.error, mean_of([0.8, 0.6, 0.7]).error)  # of draws 0, 1 and 2, as places are not independent
    assert average.draws == 3


def test_the_best_draw_depends_on_the_direction_of_the_score():
    assert best_of([3.0, 1.0, 2.0], "cut").value == 1.0
    assert best_of([3.0, 1.0, 2.0], "AC").value == 3.0


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """A folder of papers: one paper with one table, half of whose figures are "published"."""
    folder = tmp_path_factory.mktemp("papers")
    paper = folder / "mine"
    paper.mkdir()
    (paper / "protocol.toml").write_text(
        'title = "Mine"\n[data.digits]\nload = { name = "digits", classes = 3 }\n'
        '[methods.kmeans]\nlabel = "k-means"\npublished = "km"\nmodel = { use = "EmbedKMeans" }\n'
        '[methods.gmm]\nlabel = "GMM"\nmodel = { use = "GaussianMixture", pca = 5 }\n'
        '[experiments.one]\ntitle = "Digits"\ntable = "1"\nfigures = ["1"]\ndata = ["digits"]\n'
        'grid = { k = [2, 3] }\ndraws = 2\nscores = ["AC", "NMI"]\nmethods = ["kmeans", "gmm"]\n'
    )
    draws = "digits,k=2,0,0 1\ndigits,k=2,1,1 2\ndigits,k=3,0,0 1 2\ndigits,k=3,1,0 1 2\n"
    (paper / "draws.csv").write_text("data,at,draw,chosen\n" + draws)
    (paper / "published.csv").write_text(
        "table,data,at,method,score,value,spread\n1,digits,k=2,km,AC,0.5,\n1,digits,k=3,km,AC,0.999,\n"
        "1,digits,average,km,AC,0.75,\n"
    )
    return folder


@pytest.fixture(scope="module")
def records(papers, tmp_path_factory):
    file = RecordFile(tmp_path_factory.mktemp("records") / "records.jsonl")
    return run_cells(load_protocol("mine", papers).cells(), file)


@pytest.fixture
def lines(papers, records):
    protocol = load_protocol("mine", papers)
    return table_lines(protocol, protocol.experiments["one"], records)


def test_lines_are_means_over_the_draws_with_the_published_figure(lines, records):
    by_name = {(line.method, line.place, line.score): line for line in lines}
    values = [r["scores"]["AC"] for r in records if r["method"] == "kmeans" and r["at"] == {"k": 2}]
    first = by_name["kmeans", "k=2", "AC"]
    assert_allclose(first.ours.value, sum(values) / 2)
    assert (first.published.value, first.mark, first.ours.draws) == (0.5, "better", 2)
    assert by_name["kmeans", "k=3", "AC"].mark == "worse"
    assert by_name["kmeans", "k=2", "NMI"].published is None
    places = [by_name["kmeans", place, "AC"].ours.value for place in ("k=2", "k=3")]
    assert_allclose(by_name["kmeans", "average", "AC"].ours.value, sum(places) / 2)


def test_records_made_under_other_settings_do_not_count(papers, records):
    protocol = load_protocol("mine", papers)
    stale = [{**record, "digest": "0" * 12} for record in records]
    assert table_lines(protocol, protocol.experiments["one"], stale) == []


def test_the_requested_back_end_is_preferred_and_failures_hide_no_record(papers, records):
    protocol = load_protocol("mine", papers)
    experiment = protocol.experiments["one"]
    other = [{**record, "backend": "torch", "scores": {"AC": 0.0, "NMI": 0.0}} for record in records]
    failed = [{**record, "backend": "cupy", "error": "ValueError: no"} for record in records]
    assert select_records(protocol, experiment, [*records, *other, *failed], "numpy") == select_records(
        protocol, experiment, records
    )
    assert {r["backend"] for r in select_records(protocol, experiment, [*records, *other, *failed], "torch")} == {
        "torch"
    }
    assert count_failures(protocol, experiment, [*records, *failed]) == {}
    assert count_failures(protocol, experiment, failed) == {"kmeans": 4, "gmm": 4}


def test_an_incomplete_column_has_no_average(papers, records):
    protocol = load_protocol("mine", papers)
    part = [record for record in records if record["at"] != {"k": 3}]
    assert {line.place for line in table_lines(protocol, protocol.experiments["one"], part)} == {"k=2"}


def test_layouts_show_the_lines(lines):
    head, first, *_ = comparison_rows(lines)
    assert head[:5] == ["data", "method", "at", "draws", "AC"]
    assert first[:5] == ["digits", "k-means", "k=2", "2", "0.500"]
    assert first[6].endswith("▲")
    assert as_markdown(comparison_rows(lines)).count("\n") == 1 + 2 * 3
    assert max(map(len, as_text(lines).splitlines())) <= 80
    wide = grid_rows(lines, "AC")
    assert wide[0] == ["data", "method", "2", "3", "average", "draws"]
    assert "(50.0) ▲" in wide[1][2]
    rows = as_csv(lines).splitlines()
    assert rows[0].startswith("data,method,at,score,published,ours")
    assert len(rows) == 1 + len(lines)
    assert format_score(0.12345, "AC") == "0.123"


def test_plan_run_compare_write_archive(papers, tmp_path):
    options = {"papers": papers, "out": tmp_path}
    plan = make_plan("mine", draws=1, **options)
    assert len(plan.cells_to_run) == len(plan.cells) == 4
    run_plan(plan)
    assert make_plan("mine", draws=1, **options).cells_to_run == []
    assert len(make_plan("mine", **options).cells_to_run) == 4
    written = write_results(plan, compare_with_published(plan))
    assert [path.name for path in written] == ["one.csv", "one.md", "figure_1.png"]
    assert all(path.stat().st_size > 100 for path in written)
    path = add_to_archive(plan)
    assert path == papers / "mine" / ARCHIVE_NAME
    elsewhere = {"papers": papers, "out": tmp_path / "elsewhere"}
    assert make_plan("mine", draws=1, archived=True, **elsewhere).cells_to_run == []
    assert len(make_plan("mine", draws=1, **elsewhere).cells_to_run) == 4
    path.unlink()


@pytest.fixture
def command(run_fiedler):  # noqa: F811
    pytest.importorskip("typer")
    return functools.partial(run_fiedler, "reproduce")


def test_the_command_lists_plans_and_runs(command, tmp_path):
    listed = command("--list")
    assert listed.code == 0
    assert "lapgmm: He, Cai" in listed.out
    assert "smoke" not in listed.out
    planned = command("smoke", "--table", "1", "--dry-run", "--out", str(tmp_path))
    assert "31 cells, 31 to run" in planned.out
    assert not (tmp_path / "smoke").exists()
    done = command("smoke", "--table", "1", "--only", "k=2", "--only", "kmeans", "--jobs", "1", "--out", str(tmp_path))
    assert done.code == 0, done.err
    assert "Table 1: Four digits" in done.out
    assert "figure_1.png" in done.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["foo"], "paper 'foo' is not known; choose one of"),
        (["lapgmm", "--table", "9"], "table '9' is not known; choose one of 2, 3, 4"),
        (["smoke", "--backend", "jax"], "backend 'jax' is not known; choose one of"),
    ],
)
def test_invalid_options_give_one_sentence(words, sentence, command, tmp_path):
    done = command(*words, "--out", str(tmp_path))
    assert done.code == 1
    assert done.err.startswith("fiedler: ")
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_json_output_and_quiet(command, tmp_path):
    papers = json.loads(command("--list", "--json").out)
    words = ("smoke", "--table", "1", "--only", "k=2", "--only", "kmeans", "--out", str(tmp_path), "--json")
    planned = json.loads(command(*words, "--dry-run").out)
    done = command(*words, "--jobs", "1", "--quiet")

    assert papers["lapgmm"]["tables"] == ["2", "3", "4"]
    assert (planned["paper"], planned["cells"]) == ("smoke", planned["to_run"])
    result = json.loads(done.out)
    assert done.err == ""
    (lines,) = result["tables"].values()
    assert {line["score"] for line in lines} == {"AC", "NMI"}
    assert all(0 <= line["ours"] <= 1 for line in lines)
    assert all(path.startswith(str(tmp_path)) for path in result["files"])
