"""The examples that are not part of the gallery run and write their figures."""

import importlib.util
from pathlib import Path

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.integrations.bertopic import transform

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "options", "figures"),
    [
        ("documents", {}, ["lsi_lpi.png"]),
        (
            "supervision",
            {"n": 120, "trials": 1},
            ["learned_affinity.png", "violated_pairs.png", "quality_by_pairs.png"],
        ),
        ("cuts", {"starts": 4}, ["nle_evolution.png", "nle_memberships.png", "nle_best_of.png"]),
    ],
)
def test_example_runs_and_writes_its_figures(name, options, figures, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FIEDLER_DATA", raising=False)
    load(name).main(**options)
    for figure in figures:
        assert (tmp_path / "out" / figure).stat().st_size > 5_000
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_demo_writes_its_figures_and_report(tmp_path, monkeypatch, capsys):
    """`make demo`, with four of its eight methods."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    demo = load("demo")
    monkeypatch.setattr(demo, "METHODS", {name: demo.METHODS[name] for name in ("k-means", "GMM", "LCGMM", "Manifold")})
    demo.main()
    assert all((tmp_path / "out" / name).exists() for name in ("demo.png", "memberships.png", "report.html"))
    assert "digits: 1797 rows" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_the_bertopic_script_gives_topics_with_probabilities(monkeypatch, capsys):
    pytest.importorskip("bertopic", reason="BERTopic is not installed")
    pytest.importorskip("hdbscan", reason="BERTopic needs hdbscan to transform")
    monkeypatch.syspath_prepend(EXAMPLES)

    model, embeddings = load("bertopic_topics").main()

    assert "Topic" in capsys.readouterr().out
    assert model.probabilities_.shape == (len(embeddings), 8)
    assert_allclose(model.probabilities_.sum(axis=1), 1)
    assert_array_equal(model.probabilities_.argmax(axis=1), model.topics_)
    topics, probabilities = transform(model, ["a document"] * len(embeddings), embeddings)
    assert_array_equal(topics, model.topics_)
    assert_allclose(probabilities, model.probabilities_)
