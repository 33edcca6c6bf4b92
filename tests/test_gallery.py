"""Every example of the gallery runs, makes its figures and writes no files."""

import ast
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
GALLERY = sorted(EXAMPLES.rglob("plot_*.py"))
NEEDS = {
    "anndata": ["anndata"],
    "bertopic": ["bertopic", "hdbscan"],
    "faiss": ["faiss"],
    "frames": ["pandas", "polars"],
}


def name_of(path):
    return path.stem.removeprefix("plot_")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", GALLERY, ids=name_of)
def test_example_makes_its_figures(path, tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for library in NEEDS.get(name_of(path), []):
        pytest.importorskip(library, reason=f"{path.name} needs {library}")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FIEDLER_DATA", raising=False)
    plt.close("all")
    try:
        runpy.run_path(str(path), run_name="__main__")
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures
        assert all(any(ax.has_data() for ax in figure.axes) for figure in figures)
        assert not list(tmp_path.iterdir())
        assert "Traceback" not in capsys.readouterr().out
    finally:
        plt.close("all")


@pytest.mark.parametrize("path", GALLERY, ids=name_of)
def test_example_begins_with_a_title_and_a_description(path):
    title, underline, _, description = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split("\n", 3)
    assert underline == "=" * len(title)
    assert len(description.split()) > 20


@pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not part of a source distribution")
def test_gallery_has_at_least_ten_examples():
    assert len(GALLERY) >= 10
