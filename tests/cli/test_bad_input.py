"""Whatever is wrong with the input is one clear sentence and a non-zero exit, and nothing is left half-written."""

import errno
import json
import pickle

import numpy as np
import pytest

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


def pairs(content):
    def make(folder):
        file("pairs.csv", content)(folder)
        return [*file("t.csv", rows())(folder), "--pairs", folder / "pairs.csv"]

    return make


BAD = {
    "no such file": (lambda folder: [folder / "nothing.csv"], "no file, folder or data set"),
    "no such data set": (lambda folder: ["digitss"], "no file, folder or data set 'digitss'"),
    "an empty file": (file("t.csv", ""), "'t.csv' is empty"),
    "a header alone": (file("t.csv", "a,b\n"), "holds no rows under its header"),
    "text in a number column": (file("t.csv", "a,b\n1,2\n3,four\n"), "column 'b', line 3: 'four' is no number"),
    "an empty cell": (file("t.csv", "a,b\n1,2\n3,\n"), "column 'b', line 3: the cell is empty"),
    "NaN": (file("t.csv", "a,b\n1,2\nnan,4\n"), "column 'a', line 3: the value is nan"),
    "infinity": (file("t.csv", "a,b\n1,2\n-inf,4\n"), "column 'a', line 3: the value is -inf"),
    "NaN in an array": (array(np.array([[1.0, np.nan], [0.0, 1.0]])), "row 0 holds NaN or infinity"),
    "ragged rows": (file("t.csv", "a,b\n1,2\n3\n"), "line 3 has 1 fields where the header has 2"),
    "another delimiter": (file("t.csv", "a b\n1 2\n3 4\n"), "'1 2' is no number"),
    "two columns of one name": (file("t.csv", "a,a\n1,2\n"), "several columns 'a'"),
    "not UTF-8": (file("t.csv", b"a,b\n1,\xff\n"), "not text in UTF-8"),
    "binary as a table": (file("t.csv", b"\x89PNG\0\0"), "not text in UTF-8"),
    "a quote that never ends": (file("t.csv", 'a,b\n1,"2\n3,4\n'), "is not CSV"),
    "one row": (file("t.csv", "a,b\n1,2\n"), "-k 2 clusters were asked of 1 rows"),
    "rows that are all the same": (file("t.csv", "a,b\n" + "1,2\n" * 9), "all rows of X are equal"),
    "more clusters than rows": (words("-k", "40"), "-k 40 clusters were asked of 6 rows; ask for at most 6"),
    "no clusters": (words("-k", "0"), "-k must be a whole number of at least 1"),
    "a word for a number": (words("-k", "ten"), "-k must be a whole number of at least 1; got 'ten'"),
    "an unknown method": (words("--method", "dbscan"), "method='dbscan' is not known; choose one of"),
    "an unknown scale": (words("--scale", "log"), "scale='log' is not known"),
    "a column that is not there": (words("--labels", "class"), "no column 'class'; its columns are 'a', 'b'"),
    "an unknown ending": (file("t.docx", "x"), "'.docx' is not known; choose one of"),
    "a damaged NPZ": (file("t.npz", b"PK\x03\x04 and no more"), "not a NumPy file, or it is damaged"),
    "a pickled array": (array(np.array([{}], dtype=object), allow_pickle=True), "not a NumPy file"),
    "a pickle by another name": (file("t.npy", pickle.dumps({"a": 1})), "not a NumPy file"),
    "a damaged Parquet": (file("t.parquet", b"PAR1 no"), "cannot be read as Parquet"),
    "an empty array": (array(np.zeros((0, 4))), "holds an empty array"),
    "a cube": (array(np.zeros((2, 2, 2, 2, 2))), "rows are (n, d)"),
    "an empty folder": (folder_of(), "holds no images and no .txt files"),
    "texts and images": (folder_of(("a.txt", "x"), ("b.png", "x")), "holds 1 images and 1 texts; part them"),
    "an unreadable image": (folder_of(("a.png", "no image")), "'a.png' cannot be read as an image"),
    "binary as text": (folder_of(("a.txt", b"a\0b"), ("b.txt", "x")), "'a.txt' is not text"),
    "texts without a word": (folder_of(("a.txt", "1 2 3"), ("b.txt", "the of")), "no term is left of 2 document(s)"),
    "JSON lines that are none": (file("t.jsonl", "{]\n"), "line 1 is not JSON"),
    "pairs without their header": (pairs("0,1,must-link\n"), "must begin with the line first,second,kind"),
    "a pair of a row that is not there": (pairs("first,second,kind\n0,99,must-link\n"), "99"),
    "pairs against each other": (
        pairs("first,second,kind\n0,1,must-link\n0,1,cannot-link\n"),
        "conflict|contradict|must-link",
    ),
    "labels for a method that takes none": (
        words("--method", "kmeans", "--labels", "c", content="a,b,c\n1,2,x\n3,4,\n5,6,y\n"),
        "the method 'kmeans' cannot be told labels",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_one_sentence_and_nothing_written(case, fiedler_says, tmp_path):
    make, sentence = BAD[case]
    (tmp_path / "in").mkdir()
    said_words = make(tmp_path / "in")
    k = [] if "-k" in said_words else ["-k", "2"]

    said = fiedler_says("cluster", *said_words, *k, "--out", tmp_path / "out")

    lines = [line for line in said.err.splitlines() if not line.startswith("note: ")]
    assert said.code == 1
    assert said.out == ""
    assert len(lines) == 1, said.err
    assert lines[0].startswith("fiedler: ")
    assert any(part in lines[0] for part in sentence.split("|")), lines[0]
    assert not (tmp_path / "out").exists()


def test_no_permission_to_read(fiedler_says, table, tmp_path, monkeypatch):
    def refuse(self, *args, **options):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)

    said = fiedler_says("cluster", table, "-k", 3, "--out", tmp_path / "out")

    assert (said.code, said.err) == (1, f"fiedler: Permission denied: '{table}'\n")


def test_the_results_cannot_go_where_a_file_is(fiedler_says, table, tmp_path):
    (tmp_path / "out").write_text("mine")

    said = fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out")

    assert said.code == 1
    assert said.err == f"fiedler: '{tmp_path / 'out'}' is a file, where a folder for the results should be\n"
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("part", ["write_labels", "save", "write_summary", "write_report"])
def test_a_full_disk_leaves_nothing(part, fiedler_says, table, tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"fiedler.cli.clustering.{part}", full)

    said = fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "out")

    assert (said.code, said.err) == (1, "fiedler: No space left on device\n")
    assert list((tmp_path / "out").iterdir()) == []


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


def test_a_command_line_that_cannot_be_understood(fiedler_says):
    assert fiedler_says("cluster").code == 2
    assert fiedler_says("cluster", "digits", "--no-such-option").code == 2
    assert fiedler_says("no-such-command").code == 2


# ------------------------------------------------------------------------------------------------- models and new rows


@pytest.fixture
def fitted(fiedler_says, table, tmp_path):
    fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path / "fit")
    return tmp_path / "fit"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("new.csv", "x,y\n1,2\n", "'new.csv' has no column 'z'; its columns are 'x', 'y'"),
        ("new.txt", "some words", "the model was fitted to table, and these rows are texts"),
        ("new.csv", "x,y,z\n1,2,\n", "the cell is empty"),
    ],
)
def test_new_rows_that_do_not_fit(name, content, sentence, fiedler_says, fitted, tmp_path):
    said = fiedler_says("predict", fitted, *file(name, content)(tmp_path))

    assert said.code == 1
    assert sentence in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "there is no model file"), (b"", "not a model file"), (pickle.dumps([1]), "not a model file")],
)
def test_models_that_are_none(content, sentence, fiedler_says, table, tmp_path):
    if content is not None:
        (tmp_path / "model.npz").write_bytes(content)

    said = fiedler_says("predict", tmp_path / "model.npz", table)

    assert said.code == 1
    assert sentence in said.err


def test_a_model_that_predicts_nothing(fiedler_says, table, tmp_path):
    fiedler.save(fiedler.KNNGraph(5), tmp_path / "graph.npz")

    said = fiedler_says("predict", tmp_path / "graph.npz", table)

    assert (said.code, said.out) == (1, "")
    assert "holds a KNNGraph, which cannot predict clusters" in said.err


@pytest.mark.parametrize("command", ["predict", "compare"])
def test_a_place_that_is_none_is_found_before_the_work(command, fiedler_says, table, fitted, tmp_path):
    words = (fitted, table) if command == "predict" else (table, "-k", 3)

    said = fiedler_says(command, *words, "--id", "name", "--out", tmp_path / "no" / "such.csv")

    assert said.code == 1
    assert "cannot be written: there is no folder" in said.err


def test_methods_that_are_none(fiedler_says, table):
    assert "--methods names none" in fiedler_says("compare", table, "-k", 3, "--methods", ",").err


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
