"""The documentation keeps up with the code: examples for public names, pages that are linked, commands that exist."""

import ast
import doctest
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import fiedler

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("*.rst")])
FOLDERS = [name for name in sorted(fiedler._FOLDERS) if hasattr(import_module(f"fiedler.{name}"), "__all__")]
PUBLIC = [
    *[("fiedler", name) for name in fiedler.__all__ if name != "__version__"],
    *[(f"fiedler.{folder}", name) for folder in FOLDERS for name in import_module(f"fiedler.{folder}").__all__],
]
SHOWN_BESIDE = {"read_summary": "write_summary"}  # one example for a pair of functions


def objects():
    """The names of the public objects, each object once."""
    return {id(getattr(import_module(module), name)): name for module, name in PUBLIC}


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(module, name):
    home = import_module(module)
    docstring = getattr(home, name).__doc__ or ""
    assert docstring.strip()
    if name in SHOWN_BESIDE:
        docstring = getattr(home, SHOWN_BESIDE[name]).__doc__
        assert name in docstring
    assert doctest.DocTestParser().get_examples(docstring)


def listed():
    """The names on the reference page: indented lines of one word below an autosummary."""
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    return re.findall(r"^   ([\w.]+)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", listed())
def test_a_name_on_the_reference_page_exists(name):
    value = fiedler
    for part in name.split("."):
        value = getattr(value, part, None) or import_module(f"{value.__name__}.{part}")
    assert value.__doc__


def test_every_public_object_is_on_the_reference_page_once():
    found = []
    for name in listed():
        home, _, last = f"fiedler.{name}".rpartition(".")
        found.append(id(getattr(import_module(home), last)))
    assert len(found) == len(set(found))
    assert [name for key, name in objects().items() if key not in found] == []


# ----------------------------------------------------------------------------------------------------------- the pages


def code_blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([\w/.-]+\.(?:md|png))", text):
        assert (DOCS / target).exists(), target


def test_every_page_is_in_a_table_of_contents():
    trees = "\n".join(
        tree for page in PAGES for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    )
    assert {page.stem for page in PAGES} - set(trees.split()) == {"index"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_a_page_is_python(page):
    for block in code_blocks(page, "python"):
        ast.parse(block)


def test_the_first_five_minutes_run(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    names = {}
    exec("\n".join(code_blocks(DOCS / "start.md", "python")), names)
    plt.close("all")
    assert 0.925 < fiedler.metrics.clustering_accuracy(names["digits"].y[:1500], names["labels"]) < 0.935
    assert [path.name for path in tmp_path.iterdir()] == ["digits.npz"]


def test_every_command_is_on_its_page():
    typer = pytest.importorskip("typer", reason="the command line needs typer")
    pytest.importorskip("rich", reason="the command line needs rich")
    app = import_module("fiedler.cli.app").app
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    commands = set(typer.main.get_command(app).commands)
    assert set(re.findall(r"^## (\w+)", text, flags=re.MULTILINE)) == commands
    for block in code_blocks(DOCS / "command_line.md", "bash"):
        assert all(line.split()[1] in commands for line in block.splitlines())


def test_formulas_get_scripts_and_names_do_not():
    pytest.importorskip("sphinx", reason="the site needs Sphinx")
    parts = runpy.run_path(str(DOCS / "formulas.py"))["parts"]
    tags = lambda text: "".join(f"<{node.tagname[0]}>{node.astext()}" for node in parts(text))  # noqa: E731
    assert tags("Σ_ij w_ij") == "<#>Σ<s>ij<#> w<s>ij"
    assert tags("(LQ_old)_i + λ_(K+1)") == "<#>(LQ_old)<s>i<#> + λ<s>K+1"
    assert tags("D^-½WD^-1/2") == "<#>D<s>-½<#>WD<s>-1/2"
    assert tags("n_clusters, soybean_small, min_dist") == "<#>n_clusters, soybean_small, min_dist"
