"""Bad input gives one clear sentence and a non-zero exit code, and leaves no incomplete files."""

import errno
import json
import pickle
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file

import fiedler
from fiedler.persistence import read_notes
from file_fuzzing import build, parse


def rows(n=6, header="a,b"):
    return header + "\n" + "\n".join(f"{i},{i % 3}.5" for i in range(n)) + "\n"


def file(name, content):
    """Write a file, and return it as the input."""

    def make(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return [path]

    return make


def arguments(*more, content=None, name="t.csv"):
    """Write a file, and return it with more arguments."""
    return lambda folder: [*file(name, content or rows())(folder), *more]


def array(value, name="t.npy", **options):
    def make(folder):
        np.save(folder / name, value, **options)
        return [folder / name]

    return make


def folder_of(*files):
    def make(folder):
        inside = folder / "many"
        inside.mkdir()
        for name, content in files:
            file(name, content)(inside)
        return [inside]

    return make


def pairs(content, table=None, *more):
    def make(folder):
        file("pairs.csv", content)(folder)
        return [*file("t.csv", table or rows())(folder), "--pairs", folder / "pairs.csv", *more]

    return make


def images(*sizes):
    def make(folder):
        pillow = pytest.importorskip("PIL.Image")
        inside = folder / "many"
        inside.mkdir()
        for i, size in enumerate(sizes):
            pillow.new("L", size, i).save(inside / f"{i}.png")
        return [inside]

    return make


def sparse(matrix):
    def make(folder):
        sp.save_npz(folder / "t.npz", sp.csr_array(matrix))
        return [folder / "t.npz"]

    return make


PAIRS = "first,second,kind\n"
SOME_KNOWN = "a,b,c\n1,2,x\n3,4,\n5,6,y\n9,8,z\n"
ROLE = "give the column a role with --labels, --id or --text, or leave it out with --drop"
FILL = "fill it, or leave out the row or the column"

# The arguments, and parts of the sentence: what is wrong, and what to do.
BAD = {
    # ------------------------------------------------------------------------------------------------- files
    "no such file": (lambda at: [at / "nothing.csv"], "no file, folder or data set", "check the path"),
    "no such data set": (lambda at: ["digitss"], "data set 'digitss'", "did you mean 'digits'?"),
    "no name at all": (lambda at: [""], "the name of the input is empty", "give"),
    "an empty file": (file("t.csv", ""), "'t.csv' is an empty file", "check that it was written completely"),
    "an unknown ending": (
        file("t.docx", "x"),
        "'t.docx' has none of the known endings .csv, .tsv",
        "convert it to one of these formats",
    ),
    # ------------------------------------------------------------------------------------------------- tables
    "a header alone": (file("t.csv", "a,b\n"), "contains no rows below its header", "add some"),
    "no header": (file("t.csv", "1,2\n3,4\n"), "begins with numbers", "add a line of names"),
    "two columns of one name": (file("t.csv", "a,a\n1,2\n"), "several columns 'a'", "rename them"),
    "a line before the header": (
        file("t.csv", "# exported\na,b\n1,2\n3,4\n"),
        "'t.csv', line 2 has 2 fields where the header has 1",
        "the first line must contain the names of the columns, and no other line may precede it",
    ),
    "numbers in two notations": (
        file("t.csv", "a;b\n" + "".join(f"{i}{'.,'[i % 2]}5;{i % 7}\n" for i in range(30))),
        "column 'a' has numbers in several notations: '1,5' ('t.csv', line 3), '3,5' ('t.csv', line 5)",
        "correct these cells or empty them, or choose categories for the columns (--as-category), or drop them",
    ),
    "text in a number column": (
        arguments(content=rows(30) + "four,7\n"),
        "column 'a': 'four' ('t.csv', line ",
        "or choose categories for the columns (--as-category), or drop them",
    ),
    "a number to Python alone": (
        arguments(content=rows(30) + "1_0,7\n"),
        "'1_0' ('t.csv', line ",
        "correct these cells",
    ),
    "infinity": (
        arguments(content=rows(30) + "-Infinity,7\n"),
        "'-Infinity' ('t.csv', line ",
        "is not a finite number",
    ),
    "an overflow": (arguments(content=rows(30) + "1e999,7\n"), "'1e999' ('t.csv', line ", "is not a finite number"),
    "no column to compare": (file("t.csv", "a\n1\n1\n"), "no column is left to compare rows by", "check the data"),
    "ragged rows": (file("t.csv", "a,b\n1,2\n3\n"), "line 3 has 1 fields where the header has 2", "in quotes"),
    "a blank line within": (
        file("t.csv", "a,b\n1,2\n\n3,4\n"),
        "line 3 is empty",
        "only the end of a table may have empty lines",
    ),
    "another delimiter": (
        file("t.csv", "a b\n1 2\n3 4\n"),
        "'1 2' in it is not a number",
        "separate columns by a comma",
    ),
    "a quote that never ends": (file("t.csv", 'a,b\n1,"2\n3,4\n'), "is not CSV", "close every quote"),
    "binary as a table": (file("t.csv", b"a,b\n1,\x002\n"), "it contains binary data", "save it as CSV"),
    "an image as a table": (file("t.csv", b"\x89PNG\0\0"), "not UTF-8 text", "save it as UTF-8"),
    "a damaged Parquet": (file("t.parquet", b"PAR1 no"), "cannot be read as Parquet", "write the file again"),
    "a column that is not there": (arguments("--labels", "class"), "no column 'class'", "its columns are 'a', 'b'"),
    "labels that are all unknown": (
        arguments("--labels", "c", content="a,b,c\n1,2,\n3,4,\n"),
        "column 'c' contains no label",
        "choose another column of labels, or none",
    ),
    "one column in two roles": (
        arguments("--labels", "a", "--id", "a"),
        "column 'a' is given two roles",
        "give it one",
    ),
    "no column left": (arguments("--drop", "a", "--drop", "b"), "no column left", "drop fewer columns"),
    # ------------------------------------------------------------------------------------------------- arrays
    "NaN in an array": (array(np.array([[1.0, np.nan], [0.0, 1.0]])), "row 0 contains NaN or infinity", "fill"),
    "a damaged NPZ": (file("t.npz", b"PK\x03\x04 and no more"), "not a NumPy file, or it is damaged", "numpy.save"),
    "a pickled array": (array(np.array([{}], dtype=object), allow_pickle=True), "not a NumPy file", "as numbers"),
    "a pickle by another name": (file("t.npy", pickle.dumps({"a": 1})), "not a NumPy file", "numpy.save"),
    "an empty array": (array(np.zeros((0, 4))), "contains an empty array of shape (0, 4)", "with rows and columns"),
    "an array of words": (array(np.array(["a", "b"])), "which are not numbers", "use an array of numbers"),
    "a cube": (
        array(np.zeros((2, 2, 2, 2, 2))),
        "of shape (2, 2, 2, 2, 2)",
        "rows have shape (n, d), images (n, height, width)",
    ),
    "columns of an array": (
        lambda at: [*array(np.eye(4))(at), "--id", "a"],
        "--id is for tables, but 't.npy' has no named columns",
        "leave --id out",
    ),
    "a weight of a column of an array": (
        lambda at: [*array(np.eye(4))(at), "--weight", "a=2"],
        "--weight is for tables, but 't.npy' has no named columns",
        "leave --weight out",
    ),
    "sparse rows to be filled": (
        lambda at: [*sparse(np.eye(6))(at), "--scale", "standard"],
        "--scale standard would make sparse rows dense",
        "use unit or none",
    ),
    "one sparse column": (
        lambda at: [*sparse(np.arange(8.0)[:, None])(at), "--method", "gmm"],
        "needs at least two columns",
        "use another --method",
    ),
    # ------------------------------------------------------------------------------------------------- folders
    "an empty folder": (folder_of(), "contains no images and no .txt files", "choose a folder that does"),
    "texts and images": (
        folder_of(("a.txt", "x"), ("b.png", "x")),
        "contains 1 images and 1 texts",
        "put them into separate folders",
    ),
    "an unreadable image": (
        folder_of(("a.png", "no image")),
        "'a.png' cannot be read",
        "repair or remove such files, or use --skip-broken",
    ),
    "images of two sizes": (images((4, 4), (5, 4)), "'1.png' is 5x4, but '0.png' is 4x4", "such as --size 32"),
    "a size for a table": (
        arguments("--size", "8"),
        "--size is for folders of images, but 't.csv' is not one of these",
        "leave --size out",
    ),
    "binary as text": (folder_of(("a.txt", b"a\0b"), ("b.txt", "x")), "'a.txt' is not text", "remove it"),
    "texts without a word": (
        folder_of(("a.txt", "1 2 3"), ("b.txt", "the of")),
        "no term remains in 2 document(s)",
        "use longer texts",
    ),
    "one document": (folder_of(("a.txt", "bread and butter")), "there is only one row", "use at least two rows"),
    "JSON lines that are none": (file("t.jsonl", "{]\n"), "line 1 is not JSON", "Expecting property name"),
    "JSON lines that differ": (
        file("t.jsonl", '{"a": 1}\n[2]\n'),
        "'t.jsonl', line 2 is not an object with fields",
        "write one object per line",
    ),
    "JSON lines without that text": (
        arguments("--text", "c", content='{"a": "x", "b": "y"}\n', name="t.jsonl"),
        "has no column 'c'",
        "its columns are 'a', 'b'",
    ),
    # ------------------------------------------------------------------------------------------------- clusters
    "one row": (file("t.csv", "a,b\n1,2\n"), "there is only one row", "use at least two rows"),
    "rows that are all the same": (file("t.csv", "a,b\n" + "1,2\n" * 9), "all values are equal", "check the data"),
    "the same for k-means": (
        arguments("--method", "kmeans", content="a,b\n" + "1,2\n" * 9),
        "no column is left to compare rows by: 'a' (all values are equal)",
        "check the data",
    ),
    "more clusters than rows": (arguments("-k", "40"), "-k 40 is more than the 6 rows", "choose at most 6"),
    "no clusters": (arguments("-k", "0"), "-k must be an integer of at least 1, or auto", "got '0'"),
    "less than none": (arguments("-k", "-3"), "-k must be an integer of at least 1, or auto", "got '-3'"),
    "a word for a number": (arguments("-k", "ten"), "-k must be an integer of at least 1, or auto", "got 'ten'"),
    "an unknown method": (arguments("--method", "lapgm"), "--method 'lapgm' is not known", "did you mean 'lapgmm'?"),
    "an unknown scale": (
        arguments("--scale", "log"),
        "--scale 'log' is not known",
        "choose one of auto, standard, range",
    ),
    "too few rows for neighbours": (
        arguments("--method", "spectral"),
        "a graph of 8 neighbours needs more rows than there are (6 rows)",
        "use another --method",
    ),
    "one column for directions": (
        arguments("--method", "lpi", content="a\n1\n2\n3\n4\n"),
        "with 1 column(s) all rows of unit length have the same direction",
        "pass more features",
    ),
    "a constant column for directions": (
        arguments("--method", "lpi", "-k", "3", content="a,b\n" + "".join(f"{i},7\n" for i in range(12))),
        "with 1 column(s) all rows of unit length have the same direction",
        "pass more features",
    ),
    # ------------------------------------------------------------------------------------------------- labels and pairs
    "labels for a method that takes none": (
        arguments("--method", "kmeans", "--labels", "c", "-k", "3", content=SOME_KNOWN),
        "--method kmeans does not accept labels",
        "use one that does: auto, lapgmm",
    ),
    "more classes than clusters": (
        arguments("--labels", "c", content=SOME_KNOWN),
        "-k 2 is less than the 3 classes of the known labels (x, y, z)",
        "choose at least 3, or -k auto",
    ),
    "no file of pairs": (arguments("--pairs", "nothing.csv"), "cannot read pairs from 'nothing.csv'", "No such file"),
    "pairs that are binary": (pairs(b"\xff\xfe\0"), "is not encoded in UTF-8", "save it as UTF-8"),
    "pairs without their header": (pairs("0,1,must-link\n"), "must begin with the line", "first,second,kind"),
    "pairs of other columns": (pairs("a,b\n0,1\n"), "must begin with the line", "first,second,kind"),
    "pairs by another word": (
        pairs(PAIRS + "0,1,maybe\n"),
        "line 2: expected two row numbers",
        "must-link or cannot-link",
    ),
    "pairs of no names": (
        pairs(
            PAIRS + "r0,r9,must-link\n", "id,a,b\n" + "\n".join(f"r{i % 3},{i},{i * i}" for i in range(6)), "--id", "id"
        ),
        "line 2: expected two",
        "must-link or cannot-link, got ['r0', 'r9'",
    ),
    "pairs of names": (pairs(PAIRS + "r0,r1,must-link\n"), "line 2: expected two row numbers", "got ['r0', 'r1'"),
    "a pair of a row that is not there": (
        pairs(PAIRS + "0,99,must-link\n"),
        "--pairs contains the pair (0, 99), but rows are numbered 0 to 5",
        "correct or remove it",
    ),
    "a pair of a row with itself": (
        pairs(PAIRS + "3,3,cannot-link\n"),
        "--pairs contains 1 pair(s) of a row with itself",
        "remove them",
    ),
    "pairs against each other": (
        pairs(PAIRS + "0,1,must-link\n0,1,cannot-link\n"),
        "1 cannot-link(s) contradict the must-links: (0, 1)",
        "remove one of the pairs",
    ),
    "pairs against labels": (
        lambda at: [*pairs(PAIRS + "0,2,must-link\n", SOME_KNOWN.replace("z", "y"))(at), "--labels", "c"],
        "rows 0 and 2 are a must-link, but their labels are 'x' and 'y'",
        "correct one of them",
    ),
}
PYTHON = re.compile(r"\w=|\bn_\w+|\bX\b|max_iter|\(\)")  # Python, which does not exist on the command line


def test_at_least_twenty_kinds_of_bad_input_are_covered():
    assert len(BAD) >= 20


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_sentence_and_writes_nothing(case, run_fiedler, tmp_path, monkeypatch):
    make, *sentence = BAD[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    command_line = make(tmp_path / "in")
    before = sorted(tmp_path.rglob("*"))
    k = [] if "-k" in command_line else ["-k", "2"]

    result = run_fiedler("cluster", *command_line, *k)

    lines = [line for line in result.err.splitlines() if not line.startswith("note: ")]
    assert (result.code, result.out) == (1, "")
    assert len(lines) == 1, result.err
    assert lines[0].startswith("fiedler: ")
    for part in sentence:
        assert part in lines[0]
    assert not PYTHON.search(lines[0]), lines[0]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [("pyarrow.parquet", file("t.parquet", b"PAR1"), "text"), ("PIL.Image", folder_of(("a.png", b"x")), "image")],
)
def test_a_missing_extra_is_named(module, make, extra, run_fiedler, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)

    result = run_fiedler("cluster", *make(tmp_path), "-k", 2, "--out", tmp_path / "out")

    assert result.code == 1
    assert f"need '{module}'; install it with: pip install \"fiedler[{extra}]\"" in result.err
    assert not (tmp_path / "out").exists()


def test_no_permission_to_read(run_fiedler, table, tmp_path, monkeypatch):
    def refuse(self, *args, **options):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)

    result = run_fiedler("cluster", table, "-k", 3, "--out", tmp_path / "out")

    assert (result.code, result.out, result.err) == (1, "", f"fiedler: Permission denied: '{table}'\n")
    assert not (tmp_path / "out").exists()


def test_missing_write_permission_is_found_before_the_work(run_fiedler, table, tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("fiedler.cli.results.tempfile.mkdtemp", refuse)
    monkeypatch.setattr("fiedler.cli.fitting.read_input", None)  # not reached

    result = run_fiedler("cluster", table, "-k", 3, "--out", tmp_path / "a" / "b")

    place = tmp_path / "a" / "b"
    assert (result.code, result.out) == (1, "")
    assert result.err == f"fiedler: '{place}' cannot be written to (permission denied); choose another --out\n"
    assert not (tmp_path / "a").exists()


def test_results_cannot_be_written_below_a_file(run_fiedler, table, tmp_path, monkeypatch):
    monkeypatch.setattr("fiedler.cli.fitting.read_input", None)  # not reached
    result = run_fiedler("cluster", table, "-k", 3, "--out", table / "below")
    assert result.code == 1
    assert result.err == f"fiedler: '{table / 'below'}' cannot be written to (not a directory); choose another --out\n"


def test_a_model_of_an_earlier_version_needs_all_columns(run_fiedler, table, tmp_path):
    options = ["--id", "name", "--drop", "class", "--method", "kmeans"]
    run_fiedler("cluster", table, "-k", 3, *options, "--out", tmp_path / "out")
    path = tmp_path / "out" / "model.safetensors"
    notes = {name: value for name, value in read_notes(path).items() if name != "written_by"}
    fiedler.save(fiedler.load(path)[1:], path, notes=notes)  # without the step that completes rows
    (tmp_path / "new.csv").write_text("x,y,z\n1,2,\n")

    dropped = run_fiedler("predict", tmp_path / "out", table, "--drop", "x")
    empty = run_fiedler("predict", tmp_path / "out", tmp_path / "new.csv")

    assert (dropped.code, dropped.err) == (1, "fiedler: the model needs the column 'x'; do not drop it\n")
    assert "column 'z', line 2: the cell is empty; fill it" in empty.err


def test_results_cannot_replace_a_file(run_fiedler, table, tmp_path):
    (tmp_path / "out").write_text("mine")

    result = run_fiedler("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out")

    assert result.code == 1
    assert f"'{tmp_path / 'out'}' is a file, not a folder for results; choose another --out" in result.err
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["results.save_csv", "results.save", "results.write_summary", "results.write_report"])
def test_a_full_disk_leaves_no_files(part, run_fiedler, table, tmp_path, monkeypatch):
    before = sorted(tmp_path.rglob("*"))

    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"fiedler.cli.{part}", full)

    result = run_fiedler(
        "cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out" / "deep"
    )

    assert (result.code, result.out, result.err) == (1, "", "fiedler: No space left on device\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_failed_second_run_keeps_the_first_results(run_fiedler, table, tmp_path, monkeypatch):
    options = ("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out")
    run_fiedler(*options)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fiedler.cli.results.write_report", full)
    assert run_fiedler(*options[:-2], "--seed", 3, *options[-2:]).code == 1

    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_debug_shows_a_traceback(run_fiedler, tmp_path):
    with pytest.raises(FileNotFoundError):
        run_fiedler("cluster", tmp_path / "nothing.csv", "-k", 2, "--debug")
    with pytest.raises(FileNotFoundError, match="wines"):
        run_fiedler("data", "get", "wines", "--debug")
    assert run_fiedler("cluster", "--", "--debug").code == 1  # a file of that name, not the option


def test_an_invalid_command_line_exits_with_2(run_fiedler):
    assert run_fiedler("cluster").code == 2
    assert run_fiedler("cluster", "digits", "--no-such-option").code == 2
    assert run_fiedler("no-such-command").code == 2


# ------------------------------------------------------------------------------------------------- models and new rows


def assert_one_sentence(result, sentence):
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("fiedler: ")
    assert sentence in result.err
    assert result.err.count("\n") == 1


@pytest.fixture
def fitted(run_fiedler, table, tmp_path):
    run_fiedler("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "fit")
    return tmp_path / "fit"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("new.csv", "a,b\n1,2\n", "the table has none of the columns 'x', 'y', 'z'; use a table with the columns"),
        ("new.txt", "some words", "the model was fitted to a table, but the input is texts"),
        (
            "new.csv",
            "x,y,z\n1,2,red\n",
            "'new.csv', column 'z', line 2: 'red' is not a number, as in the fit; write it",
        ),
        ("new.csv", "", "'new.csv' is an empty file"),
    ],
)
def test_new_rows_that_do_not_match_the_model(name, content, sentence, run_fiedler, fitted, tmp_path):
    result = run_fiedler("predict", fitted, *file(name, content)(tmp_path), "--out", tmp_path / "new_labels.csv")

    assert_one_sentence(result, sentence)
    assert not (tmp_path / "new_labels.csv").exists()


def test_new_rows_of_another_width(run_fiedler, clouds, tmp_path):
    np.save(tmp_path / "x.npy", clouds[0])
    np.save(tmp_path / "wide.npy", np.hstack([clouds[0], clouds[0]]))
    run_fiedler("cluster", tmp_path / "x.npy", "-k", 3, "--method", "kmeans", "--out", tmp_path / "fit")

    result = run_fiedler("predict", tmp_path / "fit", tmp_path / "wide.npy")

    assert (result.code, result.out) == (1, "")
    assert result.err == ("fiedler: the model was fitted to 3 columns, but the input has 6; use the same columns\n")


def from_the_future(path):
    """Give a model file a newer format version."""
    content, arrays = parse(path.read_bytes())
    path.write_bytes(build({**content, "version": 99}, arrays))


MODELS = {
    "none": (lambda path: path.unlink(), "there is no model file"),
    "an empty file": (lambda path: path.write_bytes(b""), "is not a model file, or it is damaged"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps([1])), "is not a model file, or it is damaged"),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-200]), "is not a model file, or it is damaged"),
    "other arrays": (lambda path: save_file({"X": np.eye(2)}, path), "was not written by fiedler.save"),
    "from the future": (from_the_future, "has format 99, written by fiedler"),
}


@pytest.mark.parametrize("case", MODELS)
def test_invalid_model_files(case, run_fiedler, table, fitted, tmp_path):
    damage, sentence = MODELS[case]
    damage(fitted / "model.safetensors")

    result = run_fiedler("predict", fitted, table, "--out", tmp_path / "new_labels.csv")

    assert_one_sentence(result, sentence)
    assert not (tmp_path / "new_labels.csv").exists()


def test_a_model_that_cannot_predict(run_fiedler, table, tmp_path):
    fiedler.save(fiedler.KNNGraph(5), tmp_path / "graph.safetensors")

    result = run_fiedler("predict", tmp_path / "graph.safetensors", table)

    assert (result.code, result.out) == (1, "")
    assert "contains a KNNGraph, which cannot predict; choose the model of a clustering" in result.err


@pytest.mark.parametrize("command", ["predict", "compare"])
def test_a_missing_output_folder_is_found_before_the_work(command, run_fiedler, table, fitted, tmp_path):
    options = (fitted, table) if command == "predict" else (table, "-k", 3)

    result = run_fiedler(command, *options, "--id", "name", "--out", tmp_path / "no" / "such.csv")

    assert (result.code, result.out) == (1, "")
    assert "cannot be written: there is no folder" in result.err
    assert "choose another --out" in result.err


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        (",", "--methods is empty; choose some of auto, lapgmm"),
        ("gmm,kmean", "--methods 'kmean' is not known (did you mean 'kmeans'?); choose one of auto"),
        ("no.such.module:KMeans", "'no.such.module:KMeans' cannot be imported: No module named 'no'; write it as"),
        ("sklearn.cluster:KMean", "'sklearn.cluster:KMean' cannot be imported: module 'sklearn.cluster' has no"),
        ("sklearn.cluster:k_means", "'sklearn.cluster:k_means' is not a class with a method fit"),
    ],
)
def test_unknown_methods(methods, sentence, run_fiedler, table):
    result = run_fiedler("compare", table, "-k", 3, "--methods", methods)

    assert (result.code, result.out) == (1, "")
    assert sentence in result.err


def test_an_unknown_data_set(run_fiedler):
    result = run_fiedler("data", "get", "wines")

    assert (result.code, result.out) == (1, "")
    assert "there is no data set 'wines' (did you mean 'wine'?); choose one of" in result.err


def test_an_unexpected_exception_gives_one_sentence(run_fiedler, table, monkeypatch):
    def fails(*args, **options):
        raise KeyError("surprise")

    monkeypatch.setattr("fiedler.cli.fitting.fit", fails)

    result = run_fiedler("cluster", table, "-k", 3, "--id", "name", "--drop", "class")

    assert (result.code, result.err) == (
        1,
        "fiedler: unexpected KeyError ('surprise'); rerun with --debug to see where\n",
    )


@pytest.mark.parametrize("part", ["truth", "thumbnails", "n_clusters", "title", "rows"])
def test_a_damaged_summary(part, run_fiedler, fitted):
    path = fitted / "summary.json"
    summary = json.loads(path.read_text())
    for damaged in ({**summary, part: 5.5}, {key: value for key, value in summary.items() if key != part}):
        path.write_text(json.dumps(damaged))
        result = run_fiedler("report", fitted)
        assert result.code == 1
        assert "is damaged" in result.err
        assert part in result.err


def test_a_folder_without_results(run_fiedler, tmp_path):
    result = run_fiedler("report", tmp_path)

    assert result.code == 1
    assert result.err.startswith("fiedler: ")
    assert list(tmp_path.iterdir()) == []
