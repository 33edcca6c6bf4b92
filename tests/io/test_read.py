"""Read every kind of source; what cannot be read raises an error that says why."""

import bz2
import datetime
import gzip
import io
import json
import lzma
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.datasets import load
from fiedler.errors import FiedlerError, FiedlerWarning, InputError
from fiedler.io import Input, read_documents, read_input
from fiedler.io.formats import FORMATS, Format
from fiedler.io.record import Table, encode_labels
from fiedler.table.columns import Requests
from fiedler.table.values import read_values


def write_file(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def class_of_rows(data):
    """The class names of all rows, None where unknown."""
    return [None if code < 0 else data.class_names[code] for code in data.labels]


# ------------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("name", "content", "style"),
    [
        ("a.csv", "x,n\n1.5,a\n2,b\n", (",", ".")),
        ("a.csv", "x;n\n1,5;a\n2;b\n", (";", ",")),
        ("a.csv", 'x,n\n"1,5",a\n2,b\n', (",", ",")),
        ("a.csv", "x;n\n1;a,b\n2;b\n", (";", ".")),  # words with commas are no numbers
        ("a.tsv", "x\tn\n1.234,5\ta\n2\tb\n", ("\t", ",")),
        ("a.jsonl", '{"x": 1, "n": {"y": "1,5"}}\n{"x": 2, "n": null}\n', (",", ".")),
    ],
)
def test_the_style_of_a_table_is_that_of_its_file(name, content, style, tmp_path):
    data = read_input(write_file(tmp_path / name, content), drop=["n"])

    assert data.style == style


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_columns_of_a_table_have_roles(delimiter, tmp_path):
    lines = ["name,height,class,remark,width", "a,1,dog,x,2", "b,1.5,,y,3e1", "c,-2,cat,z,0"]
    path = write_file(tmp_path / "boxes.csv", "\n".join(lines).replace(",", delimiter))

    data = read_input(path, id="name", labels="class", drop=["remark"])

    assert data.kind == "table"
    assert data.feature_names == ["height", "width"]
    assert data.row_names == ["a", "b", "c"]
    assert_array_equal(data.X, [[1, 2], [1.5, 30], [-2, 0]])
    assert (data.labels.tolist(), data.class_names) == ([1, -1, 0], ["cat", "dog"])
    assert data.is_partially_labeled


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow", "ipc"])
def test_parquet_and_arrow_files_are_the_same_table(ending, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    feather = pytest.importorskip("pyarrow.feather")
    table = pyarrow.table({"name": ["a", "b"], "height": [1, 2], "width": [0.5, 3.0], "class": ["dog", None]})
    write = parquet.write_table if ending == "parquet" else feather.write_feather
    write(table, tmp_path / f"boxes.{ending}")

    data = read_input(tmp_path / f"boxes.{ending}", id="name", labels="class")

    assert data.feature_names == ["height", "width"]
    assert_array_equal(data.X, [[1, 0.5], [2, 3]])
    assert (data.labels.tolist(), data.class_names) == ([0, -1], ["dog"])


def write_with_pandas(columns, path):
    pandas = pytest.importorskip("pandas")
    integers = pandas.array(columns["class"], dtype="Int64")
    pandas.DataFrame({**columns, "class": integers}).to_parquet(path)


def write_with_polars(columns, path):
    pytest.importorskip("polars").DataFrame(columns).write_parquet(path)


@pytest.mark.parametrize("write", [write_with_pandas, write_with_polars])
def test_integers_with_missing_values_stay_integers(write, tmp_path):
    """In labels and row names; in a feature the value is missing."""
    pytest.importorskip("pyarrow.parquet")
    columns = {"a": [0.5, 1.5, 2.5], "class": [1, None, 12_345_678_901_234_567]}
    write(columns, tmp_path / "t.parquet")

    assert class_of_rows(read_input(tmp_path / "t.parquet", labels="class")) == ["1", None, "12345678901234567"]
    assert read_input(tmp_path / "t.parquet", id="class").row_names == ["1", "", "12345678901234567"]
    data = read_input(tmp_path / "t.parquet")
    assert np.isfinite(data.encoder.fit_transform(data.X)).all()


def test_integer_labels_read_as_floats_are_integers_again(tmp_path):
    """A data frame without nullable columns stores 1 and a missing value as 1.0 and NaN."""
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    pandas.DataFrame({"a": [1, 2, 3], "class": [1, None, 2]}).to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=[1.0, -1.0, np.nan])

    assert class_of_rows(read_input(tmp_path / "t.parquet", labels="class")) == ["1", None, "2"]
    assert class_of_rows(read_input(tmp_path / "t.npz", labels="y")) == ["1", None, None]


def test_row_names_are_kept_as_they_are(tmp_path):
    path = write_file(tmp_path / "t.csv", 'name,a,class\n" x ",1, dog\n007,2,dog \n1_0,3,\n')

    data = read_input(path, id="name", labels="class")

    assert data.row_names == [" x ", "007", "1_0"]
    assert class_of_rows(data) == ["dog", "dog", None]


def test_a_column_of_texts_is_clustered_instead_of_the_numbers(tmp_path):
    path = write_file(tmp_path / "letters.csv", 'id,text,n\n7,"dear, sir",1\n8,good bye,2\n')

    data = read_input(path, id="id", text="text")

    assert (data.kind, data.X, data.row_names) == ("texts", ["dear, sir", "good bye"], ["7", "8"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "'t.csv' is an empty file; check that it was written completely"),
        ("a,b\n", "contains no rows below its header"),
        (
            "a,b\n" + "".join(f"{i},2\n" for i in range(30)) + "1_0,3\n",
            r"column 'a': '1_0' \('t.csv', line 32\) is not a",
        ),
        (
            "a,b\n" + "".join(f"{i},2\n" for i in range(30)) + "1e999,3\n",
            r"'1e999' \('t.csv', line 32\) is not a finite",
        ),
        ("a,b\n1,2\n1,2\n", "no column is left to compare rows by: 'a' \\(all values are equal\\), 'b'"),
        ("a,b\n1,2\n1,2,3\n", r"line 3 has 3 fields where the header has 2"),
        ("a,a\n1,2\n", "several columns 'a'; rename them"),
        ("1,2\n3,4\n", "begins with numbers instead of column names"),
        (",5.1\n0,4\n", "begins with numbers instead of column names"),
        ("a,b\n1,2\n\n3,4\n", "line 3 is empty; remove it; only the end of a table may have empty lines"),
        ("a b c\n1 2 3\n4 5 6\n", r"single column, 'a b c', and '1 2 3' in it is not a number; separate columns by"),
        (b"a,b\n\xff\0,2\n", "is not UTF-8 text"),
        (b"a,b\n1,\x002\n", "contains binary data"),
    ],
)
def test_errors_in_a_table_name_their_location(content, message, tmp_path):
    path = write_file(tmp_path / "t.csv", content)

    with pytest.raises(ValueError, match=message):
        read_input(path)


def test_quoted_names_may_contain_a_delimiter_and_a_table_may_end_in_blank_lines(tmp_path):
    path = write_file(tmp_path / "t.csv", '\ufeff"len, cm";"w, cm"\r\n1;2\r\n3;4\r\n\r\n\r\n')

    data = read_input(path)

    assert data.feature_names == ["len, cm", "w, cm"]
    assert_array_equal(data.X, [[1, 2], [3, 4]])


def test_a_missing_column_no_labels_and_no_features(tmp_path):
    path = write_file(tmp_path / "t.csv", "a\n1\n")

    with pytest.raises(ValueError, match="has no column 'b'; its columns are 'a'"):
        read_input(path, labels="b")
    with pytest.raises(ValueError, match="column 'b' contains no label"):
        read_input(write_file(tmp_path / "u.csv", "a,b\n1,\n2,\n"), labels="b")
    with pytest.raises(ValueError, match="no column left as a feature"):
        read_input(path, drop=["a"])


def test_a_new_format_is_one_row_of_the_table_of_formats(tmp_path, monkeypatch):
    def read_pairs(content, name):
        keys, values = zip(*(line.split(" is ") for line in content.splitlines()))
        return Table({"key": list(keys), "text": list(values)}, list(range(1, len(keys) + 1)), "line")

    monkeypatch.setitem(FORMATS, ".pairs", Format(read_pairs, is_text=True))
    write_file(tmp_path / "t.pairs", "sky is blue\ngrass is green\n")
    write_file(tmp_path / "t.pairs.gz", gzip.compress(b"sky is blue\ngrass is green\n"))

    for name in ("t.pairs", "t.pairs.gz"):
        assert read_input(tmp_path / name, id="key", text="text").X == ["blue", "green"]
        assert read_documents(tmp_path / name).texts == ["blue", "green"]
    with pytest.raises(FiedlerError, match=r"known endings .*, \.pairs"):
        read_input(write_file(tmp_path / "t.other", "x"))


# ------------------------------------------------------------------------------------------------------------- arrays


def test_arrays_dense_sparse_and_with_labels(tmp_path, rng):
    X = rng.normal(size=(6, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "xy.npz", X=X, y=[0, 1, -1, 0, 1, -1])
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_array(X * (X > 0)))

    dense, labeled, sparse = (read_input(tmp_path / name) for name in ("x.npy", "xy.npz", "sparse.npz"))

    assert_array_equal(dense.X, X)
    assert dense.X.dtype == np.float32
    assert dense.row_names == ["0", "1", "2", "3", "4", "5"]
    assert labeled.labels is None
    assert read_input(tmp_path / "xy.npz", labels="y").labels.tolist() == [0, 1, -1, 0, 1, -1]
    assert sp.issparse(sparse.X)
    assert_array_equal(sparse.X.toarray(), X * (X > 0))


def test_an_array_of_images(tmp_path):
    images = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3)
    np.save(tmp_path / "images.npy", images)

    data = read_input(tmp_path / "images.npy")

    assert (data.kind, data.image_shape) == ("images", (4, 3))
    assert_allclose(data.X, images.reshape(2, 12) / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((0, 3)), r"an empty array of shape \(0, 3\)"),
        (np.array(["a", "b"]), "which are not numbers"),
        (np.zeros(5), r"of shape \(5,\); rows have shape \(n, d\)"),
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), "row 1 contains NaN or infinity"),
    ],
)
def test_arrays_that_are_not_rows(array, message, tmp_path):
    np.save(tmp_path / "a.npy", array)

    with pytest.raises(ValueError, match=message):
        read_input(tmp_path / "a.npy")


def test_pickles_and_damaged_files_are_refused(tmp_path):
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "many.npz", a=np.ones(2), b=np.ones(2))
    write_file(tmp_path / "no.npz", "PK nothing")
    np.savez(tmp_path / "bad.npz", format=b"csr", shape=(2, 2), data=[1.0], indices=[9], indptr=[0, 1, 1])

    refused = {"pickled.npy": "not a NumPy file", "no.npz": "damaged", "bad.npz": "not contain a valid sparse matrix"}
    for name, message in refused.items():
        with pytest.raises(ValueError, match=message):
            read_input(tmp_path / name)
    with pytest.raises(ValueError, match=r"contains the arrays \['a', 'b'\]; name the one with the rows 'X'"):
        read_input(tmp_path / "many.npz")
    np.savez(tmp_path / "x.npz", X=np.ones((2, 2)))
    with pytest.raises(ValueError, match="no array 'y' of labels"):
        read_input(tmp_path / "x.npz", labels="y")


# ------------------------------------------------------------------------------------------------------------- folders


@pytest.fixture
def image():
    """Write an image of one colour."""
    pillow = pytest.importorskip("PIL.Image")

    def write(path, color, size=(5, 4), mode="L"):
        pillow.new(mode, size, color).save(path)

    return write


def test_a_folder_of_images(tmp_path, image):
    (tmp_path / "cats").mkdir()
    image(tmp_path / "cats" / "b.png", 51)
    image(tmp_path / "a.bmp", 255)

    data = read_input(tmp_path)

    assert data.row_names == ["a.bmp", "cats/b.png"]
    assert data.image_shape == (4, 5)
    assert_allclose(data.X[:, 0], [1, 0.2])


def test_one_image_in_colour_makes_all_images_colour(tmp_path, image):
    image(tmp_path / "a.png", 255)
    image(tmp_path / "b.png", (255, 0, 0), mode="RGB")

    data = read_input(tmp_path)

    assert data.image_shape == (4, 5, 3)
    assert_allclose(data.X[1, :3], [1, 0, 0])


def test_16_bit_pixels_are_scaled_and_not_truncated(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.array([[0, 13107], [39321, 65535]], dtype=np.uint16)
    for name in ("a.png", "b.png"):
        pillow.fromarray(pixels).save(tmp_path / name)
    pillow.fromarray(pixels.astype(np.float32)).save(tmp_path / "c.tiff")

    with pytest.raises(ValueError, match=r"'c.tiff' cannot be read as an image \(floating-point"):
        read_input(tmp_path)
    (tmp_path / "c.tiff").unlink()
    assert_allclose(read_input(tmp_path).X[0], [0, 0.2, 0.6, 1], atol=1e-6)


def test_images_of_two_sizes_and_a_broken_one(tmp_path, image):
    image(tmp_path / "a.png", 1)
    image(tmp_path / "b.png", 2, size=(9, 9))

    with pytest.raises(
        ValueError, match=r"'b.png' is 9x9, but 'a.png' is 5x4; resize all to the same size, such as size=32"
    ):
        read_input(tmp_path)
    assert read_input(tmp_path, size=6).image_shape == (6, 6)
    write_file(tmp_path / "c.png", (tmp_path / "a.png").read_bytes()[:40])
    with pytest.raises(ValueError, match=r"'c.png' cannot be read as an image"):
        read_input(tmp_path, size=6)


def test_all_broken_images_are_named_or_skipped_on_request(tmp_path, image):
    image(tmp_path / "a.png", 51)
    image(tmp_path / "b.png", 255)
    for name in ("c.png", "d.jpg", "e.png", "f.png"):
        write_file(tmp_path / name, (tmp_path / "a.png").read_bytes()[:40])

    with pytest.raises(
        InputError, match=r"^4 of 6 images cannot be read: 'c.png' \(.*, \.\.\.; .*skip_broken=True$"
    ) as error:
        read_input(tmp_path)
    with pytest.warns(FiedlerWarning, match=r"^4 of 6 images cannot be read and are skipped: .*'f.png' \(\w+\)$"):
        data = read_input(tmp_path, skip_broken=True)

    assert list(data.skipped) == error.value.fields["files"] == ["c.png", "d.jpg", "e.png", "f.png"]
    assert data.row_names == ["a.png", "b.png"]
    assert_allclose(data.X[:, 0], [0.2, 1])
    for name in data.row_names:
        (tmp_path / name).unlink()
    with pytest.raises(InputError, match=r"^4 of 4 images cannot be read"):
        read_input(tmp_path, skip_broken=True)


@pytest.mark.parametrize(("shape", "expected"), [((4, 5), [0.2, 76 / 255]), ((4, 5, 3), [0.2, 1])])
def test_new_images_get_the_colours_of_the_model(shape, expected, tmp_path, image):
    image(tmp_path / "a.png", 51)
    image(tmp_path / "b.png", (255, 0, 0), mode="RGB")  # of luma 0.299, which is 76 of 255

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_input(tmp_path, image_shape=shape)

    assert data.image_shape == shape
    assert_allclose(data.X[:, 0], expected, rtol=1e-6)
    lost = ["1 image(s) are in colour, but those of the model are grey (b.png); they are converted to grey"]
    assert [str(one.message) for one in caught] == (lost if len(shape) == 2 else [])


def test_new_images_are_resized_to_the_size_of_the_model(tmp_path, image):
    image(tmp_path / "a.png", 51, size=(5, 4))
    image(tmp_path / "b.png", 102, size=(50, 60))

    with pytest.warns(FiedlerWarning, match=r"1 image\(s\) have another size .*\(b.png\); they are resized to 5x4"):
        data = read_input(tmp_path, image_shape=[4, 5])

    assert data.image_shape == (4, 5)
    assert_allclose(data.X, np.repeat([[0.2], [0.4]], 20, axis=1), rtol=1e-6)


def test_a_single_image(tmp_path, image):
    image(tmp_path / "a.png", 51)

    data = read_input(tmp_path / "a.png", size=3)

    assert (data.row_names, data.image_shape) == (["a.png"], (3, 3))


@pytest.mark.parametrize("kind", ["images", "texts"])
def test_classes_are_the_subfolders(kind, tmp_path, image):
    for i, name in enumerate(("NA/a", "cats/deep/b", "cats/c", "d")):
        path = tmp_path / f"{name}.{'png' if kind == 'images' else 'txt'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        image(path, i) if kind == "images" else path.write_text(f"word{'abcd'[i]}")

    data = read_input(tmp_path, labels_from_folders=True)

    names = ["NA", "cats"]
    found = {Path(name).stem: code for name, code in zip(data.row_names, data.labels.tolist())}
    assert (data.kind, data.class_names) == (kind, names)
    assert found == {"a": 0, "b": 1, "c": 1, "d": -1}
    assert read_input(tmp_path).labels is None
    with pytest.raises(InputError, match=r"'deep' has no subfolders .* leave labels_from_folders out"):
        read_input(tmp_path / "cats" / "deep", labels_from_folders=True)


def test_options_of_folders_are_refused_for_other_inputs(tmp_path):
    table, folder = write_file(tmp_path / "t.csv", "a,b\n1,2\n3,4\n"), tmp_path / "tables"
    folder.mkdir()
    write_file(folder / "t.csv", "a,b\n1,2\n3,4\n")

    with pytest.raises(
        InputError, match=r"labels_from_folders is for folders of images or texts, but 't.csv' is not one"
    ):
        read_input(table, labels_from_folders=True)
    with pytest.raises(InputError, match=r"skip_broken is for folders of images, but 't.csv' is not one"):
        read_input(table, skip_broken=True)
    with pytest.raises(InputError, match=r"size is for folders of images, but 'wine' is not one"):
        read_input("wine", size=8)
    with pytest.raises(InputError, match=r"skip_broken is for folders of images, but 'tables' is not one"):
        read_input(folder, skip_broken=True)
    (folder / "t.csv").rename(folder / "t.txt")
    with pytest.raises(InputError, match=r"skip_broken is for folders of images, but 'tables' is not one"):
        read_input(folder, skip_broken=True)
    with pytest.raises(FileNotFoundError, match="no file, folder or data set 'photoss'"):
        read_input("photoss", size=8, skip_broken=True, labels_from_folders=True)


def test_folders_that_are_empty_contain_texts_or_mix_texts_and_images(tmp_path, image):
    with pytest.raises(ValueError, match="contains no images and no"):
        read_input(tmp_path)
    write_file(tmp_path / "a.txt", "stars and planets")
    write_file(tmp_path / "b.txt", "bread and butter")
    assert read_input(tmp_path).X == ["stars and planets", "bread and butter"]
    with pytest.raises(ValueError, match=r"labels is for tables, but the folder '.*' has no named columns"):
        read_input(tmp_path, labels="class")
    image(tmp_path / "c.png", 1)
    with pytest.raises(ValueError, match="contains 1 images and 2 texts; put them into separate folders"):
        read_input(tmp_path)


def test_json_lines_and_a_binary_file(tmp_path):
    path = write_file(tmp_path / "t.jsonl", "\n".join(json.dumps({"text": text}) for text in ("one", "two")))
    assert read_input(path).X == ["one", "two"]

    for more in ({"labels": "class"}, {"id": "name"}, {"drop": ["a"]}, {"size": 8}):
        with pytest.raises(ValueError, match=r"'t.jsonl' has no column|size is for folders of images"):
            read_input(path, **more)
    write_file(tmp_path / "b.txt", b"PK\x00\x01\x00")
    with pytest.raises(ValueError, match=r"'b.txt' is not text: it contains binary data"):
        read_input(tmp_path / "b.txt")


# ------------------------------------------------------------------------------------------------------------ data sets


def test_a_data_set_has_its_own_labels():
    data, digits = read_input("digits"), load("digits")

    assert (data.kind, data.image_shape) == ("images", (8, 8))
    assert_array_equal(data.X, digits.X)
    assert_array_equal(data.labels, digits.y)
    assert data.class_names == [str(digit) for digit in range(10)]
    assert not data.is_partially_labeled
    wine = read_input("wine")
    assert (wine.kind, wine.feature_names[0]) == ("table", "alcohol")


def test_unknown_sources(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no file, folder or data set 'digit' \(did you mean 'digits'\?\); check the path"
    ):
        read_input("digit")
    with pytest.raises(
        ValueError,
        match=r"'t.docx' has none of the known endings .csv, .tsv, .parquet, .* .npy, .npz, .txt, .h5ad; convert",
    ):
        read_input(write_file(tmp_path / "t.docx", "x"))


def test_words_for_missing_values_are_unknown_labels(tmp_path):
    (tmp_path / "t.csv").write_text("a,c\n1,x\n2,NA\n3,?\n4,none\n")
    data = read_input(tmp_path / "t.csv", labels="c")
    assert class_of_rows(data) == ["x", None, None, "none"]  # "none" may be a class
    assert data.is_partially_labeled


@pytest.mark.parametrize("missing", ["TBD", ["tbd", "-999"]])
def test_further_words_for_missing_values(missing, tmp_path):
    path = write_file(tmp_path / "t.csv", "a,b,c\n1,x,p\nTbd,tbd,q\n-999,y,tbd\n4,not tbd,p\n5,x,q\n")
    data = read_input(path, labels="c", missing=missing)
    cells = data.encoder.read(data.X)
    expected = [1, np.nan, -999 if missing == "TBD" else np.nan, 4, 5]
    assert_array_equal(cells[0].values.cells, expected)
    assert cells[1].values.cells.tolist() == ["x", None, "y", "not tbd", "x"]
    assert class_of_rows(data) == ["p", "q", None, "p", "q"]
    assert data.columns["b"][1] is None  # as the report describes clusters
    assert data.table.columns["b"][1] == "tbd"  # as it is in the file
    with pytest.raises(InputError, match="missing is for tables"):
        read_input(write_file(tmp_path / "t.txt", "text"), missing=missing)


def test_numbers_for_missing_values_in_typed_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.5, -999.0, 3.0], "b": [1, 2, -999], "c": ["x", "y", "x"]})
    frame.to_parquet(tmp_path / "t.parquet")
    plan = read_input(tmp_path / "t.parquet", missing="-999").plan
    assert_array_equal(plan[0].values.cells, [1.5, np.nan, 3.0])
    assert_array_equal(plan[1].values.cells, [1, 2, np.nan])


def test_hidden_folders_are_ignored(tmp_path):
    for name in ("a.txt", "b.txt", ".checkpoints/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"the text of {name}")
    assert read_input(tmp_path).row_names == ["a.txt", "b.txt"]


def test_labels_are_encoded_once():
    codes, class_names = encode_labels(["b", "", "a", 3.0, "-1"], unknown=("-1",))
    assert (codes.tolist(), class_names) == ([2, -1, 1, 0, -1], ["3", "a", "b"])
    assert not Input("texts", ["x"], ["0"]).is_partially_labeled


def test_errors_carry_codes_and_locations(tmp_path):
    path = write_file(tmp_path / "t.csv", "a,b\n1,2\n1,x\n")
    with pytest.raises(FiedlerError) as caught:
        read_input(path, features=["b"])
    assert caught.value.code == "not_a_number"
    assert caught.value.fields == {"value": "x", "file": "t.csv", "column": "b", "line": 3}
    with pytest.raises(FiedlerError) as caught:
        read_input(path, labels="c")
    assert caught.value.code == "no_such_column"
    assert caught.value.fields == {"file": "t.csv", "column": "c", "columns": ["a", "b"]}


# ------------------------------------------------------------------------------------------------- tables of any kind

CUSTOMERS = "id;city;since;amount;vip;country\n" + "".join(
    f"C{i};{('Zürich', 'Köln', '')[i % 3]};2024-01-{1 + i % 28:02d};{i},5;{('true', 'false')[i % 2]};CH\n"
    for i in range(40)
)


def make_excel(path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    header, *rows = [line.split(";") for line in CUSTOMERS.splitlines()]
    book.active.append(header)
    for id_, city, since, amount, vip, country in rows:
        when = datetime.date.fromisoformat(since)
        book.active.append([id_, city or None, when, float(amount.replace(",", ".")), vip == "true", country])
    book.save(path)


def zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("customers.csv", content)
    return buffer.getvalue()


FORMS = {
    "UTF-8": ("t.csv", lambda: CUSTOMERS.encode()),
    "tabs": ("t.tsv", lambda: CUSTOMERS.replace(";", "\t").encode()),
    "UTF-16": ("t.csv", lambda: CUSTOMERS.encode("utf-16")),
    "Latin-1": ("t.csv", lambda: CUSTOMERS.encode("latin-1")),
    "gzip": ("t.csv.gz", lambda: gzip.compress(CUSTOMERS.encode())),
    "bzip2": ("t.csv.bz2", lambda: bz2.compress(CUSTOMERS.encode())),
    "xz": ("t.csv.xz", lambda: lzma.compress(CUSTOMERS.encode())),
    "zip": ("t.csv.zip", lambda: zipped(CUSTOMERS)),
}


@pytest.mark.filterwarnings("ignore:.*Windows-1252")
@pytest.mark.parametrize("form", [*FORMS, "Excel"])
def test_a_table_is_the_same_in_every_form(form, tmp_path):
    if form == "Excel":
        path = tmp_path / "t.xlsx"
        make_excel(path)
    else:
        name, make = FORMS[form]
        path = write_file(tmp_path / name, make())

    data = read_input(path)

    expected = read_input(write_file(tmp_path / "expected.csv", CUSTOMERS))
    assert (data.kind, data.id_name, data.row_names[:2]) == ("mixed", "id", ["C0", "C1"])
    assert_array_equal(data.encoder.fit_transform(data.X), expected.encoder.fit_transform(expected.X))


def test_columns_are_read_once_to_plan_encode_and_describe_them(tmp_path, monkeypatch):
    calls = []

    def count(cells, **options):
        calls.append(cells)
        return read_values(cells, **options)

    monkeypatch.setattr("fiedler.table.columns.read_values", count)
    data = read_input(write_file(tmp_path / "t.csv", CUSTOMERS), drop=["vip"])
    data.encoder.fit_columns(data.X, data.plan)
    kinds = [column.kind for column in data.read_columns(Requests())]

    assert list(data.columns) == ["city", "since", "amount", "vip", "country"]
    assert kinds == ["category", "date", "id", "category", "constant"]  # the amounts count rows
    assert len(calls) == 6  # each column once, the dropped one to describe it


def test_a_table_that_is_not_utf8_is_read_with_a_warning(tmp_path):
    path = write_file(tmp_path / "t.csv", CUSTOMERS.encode("cp1252"))

    with pytest.warns(FiedlerWarning, match=r"'t\.csv' is not UTF-8, and was read as Windows-1252"):
        assert read_input(path).X["city"][0] == "Zürich"


def test_compressed_files_that_are_damaged_or_have_several_members(tmp_path):
    with pytest.raises(FiedlerError, match=r"'t\.csv\.gz' cannot be decompressed"):
        read_input(write_file(tmp_path / "t.csv.gz", b"no gzip"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    with pytest.raises(FiedlerError, match="contains 2 files; give one of them"):
        read_input(write_file(tmp_path / "t.csv.zip", buffer.getvalue()))
    with pytest.raises(FiedlerError, match="cannot be read as a spreadsheet"):
        read_input(write_file(tmp_path / "t.xlsx", b"no workbook"))
    pytest.importorskip("pyarrow")
    with pytest.raises(FiedlerError, match=r"'t\.feather' cannot be read as Arrow .*; write the file again"):
        read_input(write_file(tmp_path / "t.feather", b"no table"))


def test_json_lines_with_roles_are_a_table(tmp_path):
    lines = [json.dumps({"id": i, "text": f"words {i}", "class": "ab"[i % 2], "size": i}) for i in range(4)]
    path = write_file(tmp_path / "t.jsonl", "\n".join(lines))

    texts = read_input(path, id="id", labels="class", text="text")
    table = read_input(path, id="id", drop=["text"])

    assert (texts.kind, texts.X[1], texts.row_names[1], texts.class_names) == ("texts", "words 1", "1", ["a", "b"])
    assert (table.kind, list(table.X)) == ("mixed", ["class", "size"])


def test_a_folder_of_tables_and_standard_input(tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    write_file(tmp_path / "parts" / "1.csv", "a,b\n1,x\n2,y\n")
    write_file(tmp_path / "parts" / "2.csv", "b,a\nx,3\n")

    data = read_input(tmp_path / "parts")

    assert {name: list(cells) for name, cells in data.X.items()} == {"a": ["1", "2", "3"], "b": ["x", "y", "x"]}
    write_file(tmp_path / "parts" / "3.csv", "a,c\n1,2\n")
    with pytest.raises(FiedlerError, match=r"'3\.csv' and '1\.csv' differ in the columns 'b', 'c'"):
        read_input(tmp_path / "parts")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3,4\n")))
    assert_array_equal(read_input("-").X, [[1, 2], [3, 4]])


@pytest.mark.parametrize("kind", ["list", "fixed_size_list"])
def test_vectors_in_parquet_files_are_arrays(kind, tmp_path, rng):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = rng.normal(size=(30, 4)).astype(np.float32)
    vectors = pa.array(X.tolist(), pa.list_(pa.float32(), 4 if kind == "fixed_size_list" else -1))
    tags = pa.array([["a", "b"], ["c"]] * 15)
    parquet.write_table(pa.table({"embedding": vectors, "tags": tags}), tmp_path / "t.parquet")

    data = read_input(tmp_path / "t.parquet")

    assert_array_equal(data.table.columns["embedding"], X)
    assert data.table.columns["tags"] == [["a", "b"], ["c"]] * 15
    data.encoder.fit(data.X)
    assert data.encoder.uses_ == {"embedding": "vector", "tags": "category"}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (" a , b \n1,2\n3,5\n", ["a", "b"]),
        ("a,b,\n1,2,\n3,5,\n", ["a", "b"]),  # a delimiter at the end of every line
    ],
)
def test_names_of_columns_have_no_blanks_around_them_and_empty_columns_need_none(content, names, tmp_path):
    (tmp_path / "t.csv").write_text(content)

    assert read_input(tmp_path / "t.csv").feature_names == names


def test_columns_without_a_name_are_called_by_their_place(tmp_path):
    """As pandas writes a frame whose columns have numbers, with its index."""
    (tmp_path / "t.csv").write_text(",0,1\n" + "".join(f"{i},{i % 7},{i % 3}.5\n" for i in range(30)))

    with pytest.warns(FiedlerWarning, match="'t.csv' has columns without a name, which are called 'column 1'"):
        data = read_input(tmp_path / "t.csv")

    assert data.feature_names == ["column 1", "0", "1"]
    assert data.id_name == "column 1"
