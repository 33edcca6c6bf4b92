"""Errors and warnings are shown in the words of the library, with options in place of parameters."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")

from fiedler.cli.app import COMMANDS, option_names
from fiedler.cli.output import COMMAND_OPTIONS, IN_WORDS, OPTION_NAME, OPTIONS, Output, render
from fiedler.errors import (
    DataNotFoundError,
    FiedlerWarning,
    FileFormatError,
    InputError,
    MissingDependencyError,
    NotConvergedWarning,
    warn,
)


def options_of(command):
    return option_names(COMMANDS[command])


def render_in(command, error):
    token = COMMAND_OPTIONS.set(options_of(command))
    try:
        return render(error)
    finally:
        COMMAND_OPTIONS.reset(token)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            InputError(
                "method='lapgm' is not known (did you mean 'lapgmm'?)",
                "choose one of ['auto', 'lapgmm']",
                parameter="method",
                options=["auto", "lapgmm"],
            ),
            "--method 'lapgm' is not known (did you mean 'lapgmm'?); choose one of auto, lapgmm",
        ),
        (InputError("n_clusters=12 is too many for n_samples=10"), "-k 12 is too many for 10 rows"),
        (
            InputError("size is for images", "leave size out", parameter="size"),
            "--size is for images; leave --size out",
        ),
        (InputError("the size differs", "resize, such as size=32"), "the size differs; resize, such as --size 32"),
        (
            InputError("'a' is broken", "remove it, or use skip_broken=True"),
            "'a' is broken; remove it, or use --skip-broken",
        ),
        (
            InputError("there is no column 'n_clusters'", "name one with column="),
            "there is no column 'n_clusters'; name one with --text",
        ),
        (InputError("must_link contains the pair (0, 9)"), "--pairs contains the pair (0, 9)"),
        (
            InputError("sample_weight must be numbers", "leave sample_weight out"),
            "--row-weight must be numbers; leave --row-weight out",
        ),
        (
            InputError("there is no 'umap' in obsm", "choose one of ['my_rep', 'X']", options=["my_rep", "X"]),
            "there is no 'umap' in obsm; choose one of my_rep, X",
        ),
        (InputError("all rows of X are equal", "check the data"), "all rows are equal; check the data"),
        (
            InputError("n_neighbors=8 needs more rows than there are", "choose at most 5", parameter="n_neighbors"),
            "a graph of 8 neighbours needs more rows than there are; use another --method",
        ),
    ],
    ids=str,
)
def test_parameters_become_options(error, sentence):
    assert render_in("cluster", error) == sentence


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("increase max_iter or tol", ""),
        ("set bandwidth to a number, or remove the duplicates", "; remove the duplicates"),
        ("use more neighbours, or KNNGraph(connect='mst'), or fewer rows", "; fewer rows"),
        ("its columns are 'first_name', 'size=3'", "; its columns are 'first_name', 'size=3'"),
        ("choose another --out, or replace them with --force", "; choose another --out"),
        ("correct it, or use as_category", "; correct it"),
        ("use fiedler cluster --method auto", "; use fiedler cluster --method auto"),
    ],
)
def test_advice_that_the_command_has_no_option_for_is_left_out(hint, shown):
    assert render_in("predict", InputError("there is a problem", hint)) == f"there is a problem{shown}"


@pytest.mark.parametrize("command", ["predict", "update", "compare", "cluster"])
def test_no_sentence_names_an_option_that_the_command_does_not_have(command):
    for name in [*OPTIONS, *IN_WORDS]:
        hint = f"change {name}, or set {name}=1, or use --out or --force"
        sentence = render_in(command, FiedlerWarning("there is a problem", hint, parameter=name))
        assert set(OPTION_NAME.findall(sentence)) <= options_of(command)


def test_every_option_of_the_table_belongs_to_a_command():
    known = frozenset().union(*map(options_of, COMMANDS))
    assert {option for option in OPTIONS.values() if option.startswith("-")} <= known


def test_errors_without_parameters_are_as_in_python():
    assert render(FileFormatError("'a' is damaged", "write it again", code="no_such_code")) == (
        "'a' is damaged; write it again"
    )
    assert render(DataNotFoundError("there is no file 'a'")) == "there is no file 'a'"
    assert render(MissingDependencyError("images need 'PIL'", "install it")) == "images need 'PIL'; install it"
    assert render(InputError("two\nlines")) == "two lines"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "a.csv"), "Permission denied: 'a.csv'"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "there is not enough memory"),
        (ValueError("  of another\n library"), "of another library"),
        (ConvergenceWarning("stopped\nearly"), "stopped early"),
        (KeyError("x"), "unexpected KeyError ('x'); rerun with --debug to see where"),
        (ValueError(), "unexpected ValueError (); rerun with --debug to see where"),
    ],
    ids=str,
)
def test_foreign_exceptions_are_recognised_by_their_class(error, sentence):
    assert render(error) == sentence


def test_warnings_become_notes_once_each(capsys):
    with Output().working("fitting"):
        for _ in range(2):
            warn("the fit did not converge within max_iter=7 steps", "raise max_iter", category=NotConvergedWarning)
        warn("another did not converge", "use fewer columns", category=NotConvergedWarning)
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)

    assert capsys.readouterr().err.splitlines() == [
        "note: the fit did not converge within 7 steps",
        "note: another did not converge; use fewer columns",
    ]


def test_the_options_of_a_command_are_those_of_its_help():
    assert options_of("update") == {
        *("--id", "--text", "--drop", "--missing", "--size", "--skip-broken", "--on-duplicate", "--undo"),
        *("--quiet", "-q", "--json", "--debug"),
    }
