"""Sentences of the command line are made from codes and fields of errors, never from their wording."""

import ast
import inspect
import string
import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")

import fiedler
from fiedler.cli.app import COMMANDS, option_names
from fiedler.cli.output import (
    COMMAND_OPTIONS,
    HINTS,
    OF_ANOTHER_COMMAND,
    OPTION_NAME,
    OTHER_HINTS,
    SENTENCES,
    Output,
    render,
)
from fiedler.errors import (
    DataNotFoundError,
    FileFormatError,
    InputError,
    MissingDependencyError,
    NotConvergedWarning,
    warn,
)

SOURCE = Path(fiedler.__file__).parent
DERIVED = {"option": "parameter", "choices": "options", "suggestion": "options"}  # fields that render adds
WITHOUT_FIELDS = {"no_such_column", "not_converged"}  # their errors may lack fields: then the library's words are used


def fields_by_code():
    """The names of the fields with which each code is raised anywhere in the package, one set per place.

    They are read from the source, since no run raises every error: a template for a code that nobody raises is dead,
    and one that needs a field which some place does not pass is never used for it.
    """
    places = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                keywords = {keyword.arg: keyword.value for keyword in node.keywords}
                code = keywords.get("code")
                if isinstance(code, ast.Constant):
                    places.setdefault(code.value, []).append(set(keywords))
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "default_code":
                places.setdefault(ast.literal_eval(node.value), [])
    return places


FIELDS_BY_CODE = fields_by_code()


def fields_of(template):
    """The fields of errors that a template needs; ``problem`` cannot be a keyword of the exception."""
    names = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    return {DERIVED.get(name, name) for name in names}


@pytest.mark.parametrize("code", sorted({*SENTENCES, *HINTS}))
def test_every_code_is_raised_somewhere(code):
    assert code in FIELDS_BY_CODE


@pytest.mark.parametrize("code", sorted({*SENTENCES, *HINTS}))
def test_errors_have_the_fields_of_their_template(code):
    needed = fields_of(SENTENCES.get(code, "")) | fields_of(HINTS.get(code, ""))
    for fields in FIELDS_BY_CODE.get(code, []):
        has_all = needed <= fields or None in fields  # None: **fields
        assert has_all or code in WITHOUT_FIELDS, f"{code} is raised without {needed - fields}"


@pytest.mark.parametrize("template", [*SENTENCES.values(), *HINTS.values()])
def test_templates_do_not_mention_python(template):
    text = template.format(**dict.fromkeys(fields_of(template) | {*DERIVED}, 1))
    assert "=" not in text
    assert "()" not in text


def test_whole_sentences():
    error = InputError(
        "method='lapgm' is not known",
        code="unknown_option",
        parameter="method",
        value="lapgm",
        options=["auto", "lapgmm"],
    )
    assert render(error) == "--method 'lapgm' is not known (did you mean 'lapgmm'?); choose one of auto, lapgmm"
    error = InputError(
        "...", code="no_such_column", parameter="column", file="t.jsonl", column="text", columns=["a", "b"]
    )
    assert render(error) == "'t.jsonl' has no column 'text'; its columns are 'a', 'b'; choose one with --text"
    error = InputError("...", code="values_too_large", largest=3e300)
    assert "magnitude 3.0e+300, whose squares overflow; use a larger unit" in render(error)


def test_hints_replace_those_of_the_library():
    error = InputError("'t.npy' has no named columns", "labels, id, text and drop are for tables", code="no_columns")
    assert render(error) == "'t.npy' has no named columns; --labels, --id, --text and --drop are for tables"


def test_errors_without_a_template_or_without_its_fields_are_as_in_python():
    assert render(FileFormatError("'a' is damaged", "write it again", code="no_such_code")) == (
        "'a' is damaged; write it again"
    )
    assert render(InputError("too few rows", "add some", code="too_few_rows_for_neighbors")) == "too few rows; add some"
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
            warn(
                "the fit did not converge",
                "raise max_iter",
                code="not_converged",
                category=NotConvergedWarning,
                max_iter=7,
            )
        warn("another did not converge", "raise tol", category=NotConvergedWarning)
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)

    assert capsys.readouterr().err.splitlines() == [
        "note: the fit did not converge within 7 iterations; the result may be less accurate",
        "note: another did not converge; the result may be less accurate",
    ]


def options_named(text):
    return set(OPTION_NAME.findall(OF_ANOTHER_COMMAND.sub("", text)))


@pytest.mark.parametrize("command", ["predict", "update", "compare", "cluster"])
def test_no_sentence_names_an_option_that_the_command_does_not_have(command):
    options = option_names(inspect.signature(COMMANDS[command], eval_str=True))
    for code in {*SENTENCES, *HINTS, *OTHER_HINTS, "results_exist"}:
        names = set.union(set(), *FIELDS_BY_CODE.get(code, [])) - {"code", "parameter", "options", None}
        hint = "choose another --out, or replace them with --force"
        error = InputError("there is a problem", hint, code=code, **dict.fromkeys(names, 1.0))
        token = COMMAND_OPTIONS.set(options)
        try:
            sentence = render(error)
        finally:
            COMMAND_OPTIONS.reset(token)
        assert options_named(sentence) <= options, code
        assert sentence


def test_the_options_of_a_command_are_those_of_its_help():
    options = option_names(inspect.signature(COMMANDS["update"], eval_str=True))

    assert options == {"--id", "--text", "--drop", "--size", "--skip-broken", "--quiet", "-q", "--json", "--debug"}


def test_every_other_hint_is_for_a_code_that_is_raised():
    assert set(OTHER_HINTS) <= set(FIELDS_BY_CODE)
