"""Whatever is wrong with the input is one clear sentence and a non-zero exit, and nothing is left half-written."""

import errno
import json
import pickle
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import fiedler


def rows(n=6, header="a,b"):
    return header + "\n" + "\n".join(f"{place},{place % 3}.5" for place in range(n)) + "\n"


def file(name, content):
    """Makes a file of this content and names it as the input."""

    def make(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return [path]

    return make


def words(*more, content=None, name="t.csv"):
    """The same with more words on the command line."""
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
        for place, size in enumerate(sizes):
            pillow.new("L", size, place).save(inside / f"{place}.png")
        return [inside]

    return make


def sparse(matrix):
    def make(folder):
        sp.save_npz(folder / "t.npz", sp.csr_array(matrix))
        return [folder / "t.npz"]

    return make


PAIRS = "first,second,kind\n"
SOME_KNOWN = "a,b,c\n1,2,x\n3,4,\n5,6,y\n9,8,z\n"
ROLE = "give it a role with --labels, --id or --text, or leave it out with --drop"
FILL = "fill it, or leave the row or the column out"

# What is given, what is said to be wrong with it, and what to do.
BAD = {
    # ------------------------------------------------------------------------------------------------- files
    "no such file": (lambda at: [at / "nothing.csv"], "no file, folder or data set", "check the path"),
    "no such data set": (lambda at: ["digitss"], "data set 'digitss'", "did you mean 'digits'?"),
    "no name at all": (lambda at: [""], "the name of the input is empty", "give"),
    "an empty file": (file("t.csv", ""), "'t.csv' is an empty file", "was it written to its end?"),
    "an unknown ending": (file("t.docx", "x"), "'t.docx' ends in none of .csv, .tsv", "into one of these forms"),
    # ------------------------------------------------------------------------------------------------- tables
    "a header alone": (file("t.csv", "a,b\n"), "holds no rows under its header", "add some"),
    "no header": (file("t.csv", "1,2\n3,4\n"), "begins with numbers", "add a line of names"),
    "a column without a name": (file("t.csv", ",b\n1,2\n"), "column 1 has no name", "give it one, or take it out"),
    "two columns of one name": (file("t.csv", "a,a\n1,2\n"), "several columns 'a'", "rename them"),
    "text in a number column": (file("t.csv", "a,b\n1,2\n3,four\n"), "column 'b', line 3: 'four' is no number", ROLE),
    "a number to Python alone": (file("t.csv", "a,b\n1,2\n3,1_0\n"), "line 3: '1_0' is no number", ROLE),
    "hexadecimal": (file("t.csv", "a,b\n1,0xff\n3,4\n"), "line 2: '0xff' is no number", ROLE),
    "a decimal comma": (file("t.csv", "a;b\n1;0,5\n3;4\n"), "'0,5' is no number", "write decimals with a point"),
    "an empty cell": (file("t.csv", "a,b\n1,2\n3,\n"), "column 'b', line 3: the cell is empty", FILL),
    "NA": (file("t.csv", "a,b\n1,2\n3,NA\n"), "column 'b', line 3: the value is missing (NA)", FILL),
    "NaN": (file("t.csv", "a,b\n1,2\nnan,4\n"), "column 'a', line 3: the value is missing (nan)", FILL),
    "infinity": (file("t.csv", "a,b\n1,2\n-Infinity,4\n"), "column 'a', line 3: the value is -inf", FILL),
    "an overflow": (file("t.csv", "a,b\n1,2\n1e999,4\n"), "column 'a', line 3: the value is inf", FILL),
    "numbers too large to square": (file("t.csv", "a,b\n1,2\n3e300,4\n"), "whose squares overflow", "a larger unit"),
    "ragged rows": (file("t.csv", "a,b\n1,2\n3\n"), "line 3 has 1 fields where the header has 2", "in quotes"),
    "a blank line within": (file("t.csv", "a,b\n1,2\n\n3,4\n"), "line 3 is empty", "only the end of a table may be"),
    "another delimiter": (file("t.csv", "a b\n1 2\n3 4\n"), "'1 2' is no number", "part columns by a comma"),
    "a quote that never ends": (file("t.csv", 'a,b\n1,"2\n3,4\n'), "is not CSV", "close every quote"),
    "not UTF-8": (file("t.csv", b"a,b\n1,\xff\n"), "not text in UTF-8", "save it as UTF-8"),
    "binary as a table": (file("t.csv", b"a,b\n1,\x002\n"), "it holds binary data", "save it as CSV"),
    "an image as a table": (file("t.csv", b"\x89PNG\0\0"), "not text in UTF-8", "save it as UTF-8"),
    "a damaged Parquet": (file("t.parquet", b"PAR1 no"), "cannot be read as Parquet", "write the file again"),
    "a column that is not there": (words("--labels", "class"), "no column 'class'", "its columns are 'a', 'b'"),
    "labels that are all unknown": (
        words("--labels", "c", content="a,b,c\n1,2,\n3,4,\n"),
        "column 'c': no label is given",
        "leave the column out",
    ),
    "one column in two roles": (words("--labels", "a", "--id", "a"), "column 'a' is given two roles", "give it one"),
    "no column left": (words("--drop", "a", "--drop", "b"), "no column that is left", "leave fewer of them out"),
    # ------------------------------------------------------------------------------------------------- arrays
    "NaN in an array": (array(np.array([[1.0, np.nan], [0.0, 1.0]])), "row 0 holds NaN or infinity", "fill"),
    "a damaged NPZ": (file("t.npz", b"PK\x03\x04 and no more"), "not a NumPy file, or it is damaged", "numpy.save"),
    "a pickled array": (array(np.array([{}], dtype=object), allow_pickle=True), "not a NumPy file", "as numbers"),
    "a pickle by another name": (file("t.npy", pickle.dumps({"a": 1})), "not a NumPy file", "numpy.save"),
    "an empty array": (array(np.zeros((0, 4))), "holds an empty array, of shape (0, 4)", "give it rows and columns"),
    "an array of words": (array(np.array(["a", "b"])), "not of numbers", "give one of numbers"),
    "a cube": (
        array(np.zeros((2, 2, 2, 2, 2))),
        "of shape (2, 2, 2, 2, 2)",
        "rows are (n, d), images (n, height, width)",
    ),
    "columns of an array": (
        lambda at: [*array(np.eye(4))(at), "--id", "a"],
        "'t.npy' has no columns to name",
        "--labels, --id, --text and --drop are for tables",
    ),
    "sparse rows to be filled": (
        lambda at: [*sparse(np.eye(6))(at), "--scale", "standard"],
        "--scale standard would fill sparse rows",
        "give unit or none",
    ),
    "one sparse column": (
        lambda at: [*sparse(np.arange(8.0)[:, None])(at), "--method", "gmm"],
        "two columns or more of sparse rows",
        "take --method auto",
    ),
    # ------------------------------------------------------------------------------------------------- folders
    "an empty folder": (folder_of(), "holds no images and no .txt files", "give one that does"),
    "texts and images": (folder_of(("a.txt", "x"), ("b.png", "x")), "holds 1 images and 1 texts", "part them"),
    "an unreadable image": (folder_of(("a.png", "no image")), "'a.png' cannot be read", "mend it or take it out"),
    "images of two sizes": (images((4, 4), (5, 4)), "'1.png' is 5x4 where '0.png' is 4x4", "such as --size 32"),
    "a size for a table": (words("--size", "8"), "no folder of images, which --size is for", "leave it out"),
    "binary as text": (folder_of(("a.txt", b"a\0b"), ("b.txt", "x")), "'a.txt' is not text", "take it out"),
    "texts without a word": (
        folder_of(("a.txt", "1 2 3"), ("b.txt", "the of")),
        "no word is left of 2 document(s)",
        "give longer texts",
    ),
    "one document": (folder_of(("a.txt", "bread and butter")), "there is one row only", "give more rows"),
    "JSON lines that are none": (file("t.jsonl", "{]\n"), "line 1 is not JSON", "Expecting property name"),
    "JSON lines without a text": (
        file("t.jsonl", '{"a": "x", "b": "y"}\n'),
        "has no column 'text'; its columns are 'a', 'b'",
        "name one with --text",
    ),
    "JSON lines without that text": (
        words("--text", "c", content='{"a": "x", "b": "y"}\n', name="t.jsonl"),
        "line 1 holds no field 'c'",
        "name another with --text",
    ),
    # ------------------------------------------------------------------------------------------------- clusters
    "one row": (file("t.csv", "a,b\n1,2\n"), "there is one row only", "give more rows"),
    "rows that are all the same": (file("t.csv", "a,b\n" + "1,2\n" * 9), "all rows are equal", "check the data"),
    "the same for k-means": (
        words("--method", "kmeans", content="a,b\n" + "1,2\n" * 9),
        "all rows are equal, so there is nothing to cluster",
        "check the data",
    ),
    "more clusters than rows": (words("-k", "40"), "-k 40 clusters were asked of 6 rows", "ask for at most 6"),
    "no clusters": (words("-k", "0"), "-k must be a whole number of at least 1, or auto", "got '0'"),
    "less than none": (words("-k", "-3"), "-k must be a whole number of at least 1, or auto", "got '-3'"),
    "a word for a number": (words("-k", "ten"), "-k must be a whole number of at least 1, or auto", "got 'ten'"),
    "an unknown method": (words("--method", "lapgm"), "--method 'lapgm' is not known", "did you mean 'lapgmm'?"),
    "an unknown scale": (words("--scale", "log"), "--scale 'log' is not known", "choose one of standard, range"),
    "too few rows for neighbours": (
        words("--method", "spectral"),
        "joins every row to 8 others, and there are 6 rows",
        "take --method auto or kmeans",
    ),
    "one column for directions": (
        words("--method", "lpi", content="a\n1\n2\n3\n4\n"),
        "lpi tells rows apart by their direction",
        "take another --method",
    ),
    "a constant column for directions": (
        words("--method", "lpi", "-k", "3", content="a,b\n" + "".join(f"{place},7\n" for place in range(12))),
        "a cluster has lost all its rows",
        "ask for fewer clusters with -k, or take another --method",
    ),
    # ------------------------------------------------------------------------------------------------- what is known
    "labels for a method that takes none": (
        words("--method", "kmeans", "--labels", "c", "-k", "3", content=SOME_KNOWN),
        "--method kmeans cannot be told labels",
        "those that can are auto, lapgmm",
    ),
    "more classes than clusters": (
        words("--labels", "c", content=SOME_KNOWN),
        "the known labels name 3 classes (x, y, z) and -k asks for 2 clusters",
        "ask for 3 or more, or for -k auto",
    ),
    "no file of pairs": (words("--pairs", "nothing.csv"), "--pairs 'nothing.csv' cannot be read", "No such file"),
    "pairs that are binary": (pairs(b"\xff\xfe\0"), "is not text in UTF-8", "save it as UTF-8"),
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
        "line 2: expected two rows by their names, each of one row",
        "got ['r0', 'r9'",
    ),
    "pairs of names": (pairs(PAIRS + "r0,r1,must-link\n"), "line 2: expected two row numbers", "got ['r0', 'r1'"),
    "a pair of a row that is not there": (
        pairs(PAIRS + "0,99,must-link\n"),
        "--pairs holds the must-link (0, 99), but rows are numbered 0 to 5",
        "mend it, or take it out",
    ),
    "a pair of a row with itself": (
        pairs(PAIRS + "3,3,cannot-link\n"),
        "a row with itself, such as (3, 3)",
        "remove them",
    ),
    "pairs against each other": (
        pairs(PAIRS + "0,1,must-link\n0,1,cannot-link\n"),
        "1 cannot-link(s) contradict the must-links: (0, 1)",
        "remove one of the pairs",
    ),
    "pairs against labels": (
        lambda at: [*pairs(PAIRS + "0,2,must-link\n", SOME_KNOWN.replace("z", "y"))(at), "--labels", "c"],
        "rows 0 and 2 are a must-link, and their labels are 'x' and 'y'",
        "mend one of them",
    ),
}
PYTHON = re.compile(r"\w=|\bn_\w+|\bX\b|max_iter|\(\)")  # words that nobody can say on the command line


def test_there_are_many_kinds():
    assert len(BAD) >= 20


@pytest.mark.parametrize("case", BAD)
def test_one_sentence_and_nothing_written(case, fiedler_says, tmp_path, monkeypatch):
    make, *sentence = BAD[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    said_words = make(tmp_path / "in")
    before = sorted(tmp_path.rglob("*"))
    k = [] if "-k" in said_words else ["-k", "2"]

    said = fiedler_says("cluster", *said_words, *k)

    lines = [line for line in said.err.splitlines() if not line.startswith("note: ")]
    assert (said.code, said.out) == (1, "")
    assert len(lines) == 1, said.err
    assert lines[0].startswith("fiedler: ")
    for part in sentence:
        assert part in lines[0]
    assert not PYTHON.search(lines[0]), lines[0]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [("pyarrow.parquet", file("t.parquet", b"PAR1"), "text"), ("PIL.Image", folder_of(("a.png", b"x")), "image")],
)
def test_an_extra_that_is_not_installed_is_named(module, make, extra, fiedler_says, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)

    said = fiedler_says("cluster", *make(tmp_path), "-k", 2, "--out", tmp_path / "out")

    assert said.code == 1
    assert f"need '{module}'; install it with: pip install \"fiedler[{extra}]\"" in said.err
    assert not (tmp_path / "out").exists()


def test_no_permission_to_read(fiedler_says, table, tmp_path, monkeypatch):
    def refuse(self, *args, **options):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)

    said = fiedler_says("cluster", table, "-k", 3, "--out", tmp_path / "out")

    assert (said.code, said.out, said.err) == (1, "", f"fiedler: Permission denied: '{table}'\n")
    assert not (tmp_path / "out").exists()


def test_no_permission_to_write_is_found_before_the_work(fiedler_says, table, tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("fiedler.cli.results.tempfile.mkdtemp", refuse)
    monkeypatch.setattr("fiedler.cli.clustering.read_input", None)  # it does not come to that

    said = fiedler_says("cluster", table, "-k", 3, "--out", tmp_path / "a" / "b")

    place = tmp_path / "a" / "b"
    assert (said.code, said.out) == (1, "")
    assert said.err == f"fiedler: '{place}' cannot be written to (permission denied); give another --out\n"
    assert not (tmp_path / "a").exists()


def test_the_results_cannot_go_below_a_file(fiedler_says, table, tmp_path, monkeypatch):
    monkeypatch.setattr("fiedler.cli.clustering.read_input", None)  # it does not come to that
    said = fiedler_says("cluster", table, "-k", 3, "--out", table / "below")
    assert said.code == 1
    assert said.err == f"fiedler: '{table / 'below'}' cannot be written to (not a directory); give another --out\n"


def test_lists_in_a_parquet_file_are_named(fiedler_says, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": [1, 2], "e": [[1.0, 2.0], [3.0, 4.0]]}), tmp_path / "t.parquet")
    said = fiedler_says("cluster", tmp_path / "t.parquet", "-k", 2, "--out", tmp_path / "out")
    assert said.code == 1
    assert (
        said.err
        == "fiedler: 't.parquet', column 'e' holds lists; save them as an NPY file, or leave it out with --drop\n"
    )


def test_predict_needs_its_columns(fiedler_says, table, tmp_path):
    fiedler_says(
        "cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--method", "kmeans", "--out", tmp_path / "out"
    )
    said = fiedler_says("predict", tmp_path / "out", table, "--drop", "x")
    assert (said.code, said.err) == (1, "fiedler: the model needs the column 'x'; do not leave it out\n")


def test_the_results_cannot_go_where_a_file_is(fiedler_says, table, tmp_path):
    (tmp_path / "out").write_text("mine")

    said = fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out")

    assert said.code == 1
    assert f"'{tmp_path / 'out'}' is a file, where a folder for the results should be; give another --out" in said.err
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("part", ["write_labels", "save", "write_summary", "write_report"])
def test_a_full_disk_leaves_nothing(part, fiedler_says, table, tmp_path, monkeypatch):
    before = sorted(tmp_path.rglob("*"))

    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"fiedler.cli.clustering.{part}", full)

    said = fiedler_says(
        "cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out" / "deep"
    )

    assert (said.code, said.out, said.err) == (1, "", "fiedler: No space left on device\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_second_run_that_fails_leaves_the_first_as_it_was(fiedler_says, table, tmp_path, monkeypatch):
    words = ("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out")
    fiedler_says(*words)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fiedler.cli.clustering.write_report", full)
    assert fiedler_says(*words[:-2], "--seed", 3, *words[-2:]).code == 1

    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_debug_shows_where(fiedler_says, tmp_path):
    with pytest.raises(FileNotFoundError):
        fiedler_says("cluster", tmp_path / "nothing.csv", "-k", 2, "--debug")
    with pytest.raises(ValueError, match="wines"):
        fiedler_says("data", "get", "wines", "--debug")
    assert fiedler_says("cluster", "--", "--debug").code == 1  # a file of that name, and no option


def test_a_command_line_that_cannot_be_understood(fiedler_says):
    assert fiedler_says("cluster").code == 2
    assert fiedler_says("cluster", "digits", "--no-such-option").code == 2
    assert fiedler_says("no-such-command").code == 2


# ------------------------------------------------------------------------------------------------- models and new rows


def assert_one_sentence(said, sentence):
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("fiedler: ")
    assert sentence in said.err
    assert said.err.count("\n") == 1


@pytest.fixture
def fitted(fiedler_says, table, tmp_path):
    fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "fit")
    return tmp_path / "fit"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("new.csv", "x,y\n1,2\n", "'new.csv' has no column 'z'; its columns are 'x', 'y'"),
        ("new.txt", "some words", "the model was fitted to a table, and these are texts"),
        ("new.csv", "x,y,z\n1,2,\n", "column 'z', line 2: the cell is empty; fill it"),
        ("new.csv", "x,y,z\n1,2,red\n", "column 'z', line 2: 'red' is no number"),
        ("new.csv", "", "'new.csv' is an empty file"),
    ],
)
def test_new_rows_that_do_not_fit(name, content, sentence, fiedler_says, fitted, tmp_path):
    said = fiedler_says("predict", fitted, *file(name, content)(tmp_path), "--out", tmp_path / "new_labels.csv")

    assert_one_sentence(said, sentence)
    assert not (tmp_path / "new_labels.csv").exists()


def test_new_rows_of_another_width(fiedler_says, clouds, tmp_path):
    np.save(tmp_path / "x.npy", clouds[0])
    np.save(tmp_path / "wide.npy", np.hstack([clouds[0], clouds[0]]))
    fiedler_says("cluster", tmp_path / "x.npy", "-k", 3, "--method", "kmeans", "--out", tmp_path / "fit")

    said = fiedler_says("predict", tmp_path / "fit", tmp_path / "wide.npy")

    assert (said.code, said.out) == (1, "")
    assert said.err == ("fiedler: the model was fitted to rows of 3 numbers, and these have 6; give the same columns\n")


def from_the_future(path):
    """Gives a model file a format that is not known yet."""
    with np.load(path) as file:
        arrays = dict(file)
    text = json.loads(arrays["json"].tobytes())
    arrays["json"] = np.frombuffer(json.dumps({**text, "version": 99}).encode(), np.uint8)
    np.savez(path, **arrays)


MODELS = {
    "none": (lambda path: path.unlink(), "there is no model file"),
    "an empty file": (lambda path: path.write_bytes(b""), "is not a model file, or it is damaged"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps([1])), "is not a model file, or it is damaged"),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-200]), "is not a model file, or it is damaged"),
    "other arrays": (lambda path: np.savez(path, X=np.eye(2)), "was not written by fiedler.save"),
    "from the future": (from_the_future, "has format 99, written by fiedler"),
}


@pytest.mark.parametrize("case", MODELS)
def test_models_that_are_none(case, fiedler_says, table, fitted, tmp_path):
    damage, sentence = MODELS[case]
    damage(fitted / "model.npz")

    said = fiedler_says("predict", fitted, table, "--out", tmp_path / "new_labels.csv")

    assert_one_sentence(said, sentence)
    assert not (tmp_path / "new_labels.csv").exists()


def test_a_model_that_predicts_nothing(fiedler_says, table, tmp_path):
    fiedler.save(fiedler.KNNGraph(5), tmp_path / "graph.npz")

    said = fiedler_says("predict", tmp_path / "graph.npz", table)

    assert (said.code, said.out) == (1, "")
    assert "holds a KNNGraph, which cannot predict; give a clustering" in said.err


@pytest.mark.parametrize("command", ["predict", "compare"])
def test_a_place_that_is_none_is_found_before_the_work(command, fiedler_says, table, fitted, tmp_path):
    words = (fitted, table) if command == "predict" else (table, "-k", 3)

    said = fiedler_says(command, *words, "--id", "name", "--out", tmp_path / "no" / "such.csv")

    assert (said.code, said.out) == (1, "")
    assert "cannot be written: there is no folder" in said.err
    assert "give another --out" in said.err


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        (",", "--methods names none; there are auto, lapgmm"),
        ("gmm,kmean", "--methods 'kmean' is not known (did you mean 'kmeans'?); choose one of auto"),
    ],
)
def test_methods_that_are_none(methods, sentence, fiedler_says, table):
    said = fiedler_says("compare", table, "-k", 3, "--methods", methods)

    assert (said.code, said.out) == (1, "")
    assert sentence in said.err


def test_a_data_set_that_is_mistyped(fiedler_says):
    said = fiedler_says("data", "get", "wines")

    assert (said.code, said.out) == (1, "")
    assert "the data set 'wines' is not known (did you mean 'wine'?); choose one of" in said.err


def test_what_nobody_foresaw_is_a_sentence_too(fiedler_says, table, monkeypatch):
    def fails(*args, **options):
        raise KeyError("surprise")

    monkeypatch.setattr("fiedler.cli.clustering.fit", fails)

    said = fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class")

    assert (said.code, said.err) == (1, "fiedler: KeyError that was not foreseen ('surprise'); --debug shows where\n")


@pytest.mark.parametrize("part", ["truth", "thumbnails", "n_clusters", "title", "rows"])
def test_a_damaged_summary(part, fiedler_says, fitted):
    path = fitted / "summary.json"
    summary = json.loads(path.read_text())
    for damaged in ({**summary, part: 5.5}, {key: value for key, value in summary.items() if key != part}):
        path.write_text(json.dumps(damaged))
        said = fiedler_says("report", fitted)
        assert said.code == 1
        assert "is damaged" in said.err
        assert part in said.err


def test_results_that_are_none(fiedler_says, tmp_path):
    said = fiedler_says("report", tmp_path)

    assert said.code == 1
    assert said.err.startswith("fiedler: ")
    assert list(tmp_path.iterdir()) == []
