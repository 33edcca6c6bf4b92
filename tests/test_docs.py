"""The documentation matches the code: public names have examples, pages are linked, commands exist."""

import ast
import doctest
import inspect
import pkgutil
import re
import runpy
from contextlib import chdir
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fiedler
from fiedler import _registry

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = {"estimators.rst"}  # written when the site is built
PAGES = sorted(page for page in [*DOCS.glob("*.md"), *DOCS.glob("*.rst")] if page.name not in GENERATED)


def public_names():
    """Yield the public names with their modules; modules and names of other libraries are left out."""
    packages = [f"fiedler.{name}" for name in _registry.SUBPACKAGES]
    for module in ["fiedler", *packages, "fiedler_papers.baselines"]:
        for name in getattr(import_module(module), "__all__", ()):
            value = getattr(import_module(module), name)
            if callable(value) and value.__module__.startswith(("fiedler.", "fiedler_papers.")):
                yield module, name


PUBLIC = list(public_names())
DOCUMENTED_WITH = {"read_summary": "write_summary"}  # one example for two functions


def has_example(docstring):
    return bool(doctest.DocTestParser().get_examples(docstring or ""))


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_public_name_has_a_docstring_with_an_example(module, name):
    value = getattr(import_module(module), name)
    assert (value.__doc__ or "").strip()
    if name in DOCUMENTED_WITH:
        docstring = getattr(import_module(module), DOCUMENTED_WITH[name]).__doc__
        assert name in docstring
        assert has_example(docstring)
    elif inspect.isclass(value) and issubclass(value, (Exception, Warning)):
        assert value.__doc__ is not value.__base__.__doc__  # the example is in the base class, FiedlerError
    else:
        assert has_example(value.__doc__)


def reference_names():
    """Return the names in the API reference, api.rst and the generated part: indented lines of one word."""
    generated = runpy.run_path(str(DOCS / "reference.py"))["api_reference"]()
    text = (DOCS / "api.rst").read_text(encoding="utf-8") + generated
    return [name for name in re.findall(r"^   ([\w.]+)$", text, flags=re.MULTILINE) if f"{name}.rst" not in GENERATED]


def reference_object(name):
    module, _, attribute = f"fiedler.{name}".rpartition(".")
    return getattr(fiedler.baselines if module == "fiedler.baselines" else import_module(module), attribute)


@pytest.mark.parametrize("name", reference_names())
def test_name_in_the_reference_exists(name):
    assert reference_object(name).__doc__


def test_every_public_object_is_in_the_reference_once():
    listed = [id(reference_object(name)) for name in reference_names()]
    assert len(listed) == len(set(listed))
    missing = {name for module, name in PUBLIC if id(getattr(import_module(module), name)) not in listed}
    assert missing == set()


# ----------------------------------------------------------------------------------------------------------- the pages


def code_blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_are_valid(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([\w/.-]+\.(?:md|png))", text):
        assert (DOCS / target).exists(), target


def test_every_page_is_in_a_table_of_contents():
    patterns = (r"```\{toctree\}\n(.*?)```", r"\.\. toctree::\n(.*?)\n\S")
    trees = [
        tree for page in PAGES for pattern in patterns for tree in re.findall(pattern, page.read_text("utf-8"), re.S)
    ]
    entries = set("\n".join(trees).split())
    assert {page.stem for page in PAGES} - entries == {"index"}
    assert {Path(name).stem for name in GENERATED} <= entries


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_are_valid_python(page):
    for block in code_blocks(page, "python"):
        ast.parse(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_equations_have_labels_of_their_page(page):
    """Block equations are numbered and can be referred to; a label begins with the name of its page."""
    text = page.read_text(encoding="utf-8")
    labels = re.findall(r"```\{math\}\n\s*:label: ([\w-]+)", text)
    assert len(labels) == text.count("```{math}") == len(set(labels))
    assert all(label.startswith(f"{page.stem}-") for label in labels)


@pytest.fixture(scope="module")
def getting_started(tmp_path_factory):
    """Run the page on getting started in an empty folder; return its names and the folder."""
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names, folder = {}, tmp_path_factory.mktemp("start")
    with chdir(folder):
        exec("\n".join(code_blocks(DOCS / "start.md", "python")), names)
    plt.close("all")
    return names, folder


def test_getting_started_runs(getting_started):
    names, folder = getting_started
    assert 0.925 < fiedler.metrics.clustering_accuracy(names["digits"].y[:1500], names["labels"]) < 0.935
    assert [path.name for path in folder.iterdir()] == ["digits.safetensors"]


def test_report_on_the_page_is_the_output_of_the_program(getting_started):
    """All words are compared, and the figures of the candidates, whose last digits depend on versions of libraries."""
    names, _ = getting_started
    (shown,) = code_blocks(DOCS / "manifold.md", "text")
    report = names["model"].report(n_uncertain=3)
    shown_words, words = (re.sub(r"\d+(?:[.,]\d+)*", "#", text) for text in (shown, f"{report}\n"))
    assert doctest.OutputChecker().check_output(shown_words, words, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    shown_figures, figures = (re.findall(r"\d+\.\d+", text) for text in (shown.partition("...")[0], report))
    assert_allclose(np.float64(shown_figures), np.float64(figures[: len(shown_figures)]), rtol=0.01)


def write_texts(folder):
    """Write docstrings of SciPy to files, for the page on documents."""
    folder.mkdir()
    for module in ("fft", "linalg", "ndimage", "spatial"):
        source = import_module(f"scipy.{module}")
        for name in source.__all__[:40]:
            (folder / f"{module}.{name}.txt").write_text(getattr(source, name).__doc__ or name, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["index", "guide", "manifold", "graph", "spectrum", "mixtures", "cuts", "supervision"])
def test_python_blocks_of_a_page_run(name, tmp_path, monkeypatch, capsys):
    digits = fiedler.datasets.load("digits", normalize="unit")
    X, y = digits.X[:400], digits.y[:400]
    names = {"X": X, "X_new": digits.X[400:420], "partial_labels": np.where(np.arange(400) % 10 == 0, y, -1)}
    names["n_copies"] = 1 + np.arange(400) % 3
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks(DOCS / f"{name}.md", "python")
    assert blocks
    exec("\n".join(blocks), names)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
def test_python_blocks_of_the_page_on_documents_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "folder-of-texts")
    names = {}
    exec("\n".join(code_blocks(DOCS / "documents.md", "python")), names)
    assert "documents)" in capsys.readouterr().out
    assert 2 <= names["choice"].n_clusters < 16


def test_python_blocks_of_the_page_on_model_files_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0, 0], [9, 9]], 20, axis=0)
    names = {"model": fiedler.GaussianMixture(2, random_state=0).fit(X)}
    exec("\n".join(code_blocks(DOCS / "models.md", "python")), names)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_install_from_a_clone_until_the_first_release(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"pip install \"?fiedler", text)


# ------------------------------------------------------------------------------------------------ the command line


@pytest.fixture(scope="module")
def commands():
    """The commands of the command line by name."""
    typer = pytest.importorskip("typer", reason="the command line needs typer")
    pytest.importorskip("rich", reason="the command line needs rich")
    return typer.main.get_command(import_module("fiedler.cli.app").app).commands


def sections_by_command():
    """Return the pages on the command line in parts, each with the command that its options belong to."""
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    introduction, *sections = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)
    reproduce = (DOCS / "reproduce.md").read_text(encoding="utf-8")
    return [("cluster", introduction), *zip(sections[::2], sections[1::2], strict=True), ("reproduce", reproduce)]


def assert_options_exist(text, command):
    """Assert that all options in a text, such as ``--out`` and ``-k``, are options of a command or its subcommands."""
    if command.context_settings.get("ignore_unknown_options"):
        pytest.skip("fiedler-papers is not installed")
    parameters = [
        parameter
        for part in (command, *getattr(command, "commands", {}).values())
        for parameter in part.params
        if parameter.param_type_name == "option"
    ]
    known = {name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)}
    assert set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)) - known == set()


def test_every_command_has_a_section(commands):
    assert {name for name, _ in sections_by_command()} == set(commands)


@pytest.mark.parametrize(("name", "text"), sections_by_command(), ids=lambda value: value.split("\n")[0][:20])
def test_options_of_a_section_exist(name, text, commands):
    assert_options_exist(text, commands[name])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page, commands):
    lines = [line for block in code_blocks(page, "bash") for line in block.splitlines() if line.startswith("fiedler ")]
    for line in lines:
        assert_options_exist(line.partition("#")[0], commands[line.split()[1]])


# --------------------------------------------------------------------------------------------------------- references

NAME = r"[A-Z][\w-]+"
CITATION = rf"({NAME})(?:, {NAME})*(?: & {NAME}| et al\.) ((?:19|20)\d\d)\b"  # "Zhou & Saad 2007"
BRACKETS = r"\[([A-Z][a-z]+) ((?:19|20)\d\d)\b"  # "[Joachims 1999]"


def docstrings():
    """Yield the docstrings of all modules of the library, and of their classes, methods and functions."""
    for found in pkgutil.walk_packages(fiedler.__path__, "fiedler."):
        if found.name in ("fiedler.baselines", "fiedler.cli.__main__"):  # the one needs fiedler-papers, the other runs
            continue
        module = import_module(found.name)
        values = [value for value in vars(module).values() if getattr(value, "__module__", None) == found.name]
        methods = [method for value in values if inspect.isclass(value) for method in vars(value).values()]
        yield from filter(None, (inspect.getdoc(value) for value in [module, *values, *methods]))


def test_cited_works_are_on_the_page_of_references():
    """A citation, in a docstring or on a page, is found by its first author and year."""
    listed = re.findall(rf"\*\*({NAME}).*? (\d{{4}})\.?\*\*", (DOCS / "references.md").read_text(encoding="utf-8"))
    pages = [path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")]
    texts = [" ".join(text.split()) for text in [*pages, *docstrings()]]
    cited = {work for text in texts for pattern in (CITATION, BRACKETS) for work in re.findall(pattern, text)}
    assert len(cited) > 20
    assert cited - set(listed) == set()
