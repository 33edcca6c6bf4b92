"""Input that is rarely seen: every branch of the readers that no other test reaches."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.utils import Bunch

from fiedler.errors import FiedlerError, FileFormatError, InputError
from fiedler.io import read_blocks, read_input
from fiedler.io.arrays import _read_image
from fiedler.io.blocks import Arrow, read_rows


def table(tmp_path, content, name="rows.csv"):
    (tmp_path / name).write_text(content)
    return tmp_path / name


def denied(*_, **__):
    raise PermissionError(13, "Permission denied")


def test_integers_of_an_array_become_floats(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))

    assert read_input(tmp_path / "a.npy").X.dtype == np.float64


def test_labels_of_an_archive_are_one_per_row(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)), short=np.zeros(2, int), square=np.zeros((3, 3), int))

    with pytest.raises(FileFormatError, match="contains 3 rows but 2 labels"):
        read_input(tmp_path / "a.npz", labels="short")
    with pytest.raises(FileFormatError, match=r"the labels 'square' have shape \(3, 3\)"):
        read_input(tmp_path / "a.npz", labels="square")


def test_an_archive_of_objects_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([{}], dtype=object))

    with pytest.raises(FileFormatError, match="its array 'X' does not contain numbers"):
        read_input(tmp_path / "a.npz")


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_sparse_matrices_are_checked_before_they_are_converted(form, tmp_path):
    matrix = sp.random_array((4, 4), density=0.5, random_state=0).asformat(form)
    sp.save_npz(tmp_path / "a.npz", matrix)
    assert read_input(tmp_path / "a.npz").X.shape == (4, 4)
    with np.load(tmp_path / "a.npz") as file:
        arrays = dict(file)
    arrays["indices"] = arrays["indices"] + 2**20
    np.savez(tmp_path / "a.npz", **arrays)

    with pytest.raises(FileFormatError, match="does not contain a valid sparse matrix"):
        read_input(tmp_path / "a.npz")


def test_a_sparse_matrix_of_coordinates_is_read(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.coo_array(np.eye(3)))

    assert_array_equal(read_input(tmp_path / "a.npz").X.toarray(), np.eye(3))


def test_files_that_may_not_be_read_raise_the_error_of_the_system(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setattr(np, "load", denied)
    monkeypatch.setattr(image, "open", denied)

    with pytest.raises(PermissionError):
        read_input(tmp_path / "a.npy")
    with pytest.raises(PermissionError):
        _read_image(tmp_path / "a.png")


def test_pixels_that_have_no_range_of_8_or_16_bits(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.full((2, 2), 10**6, np.int32)).save(tmp_path / "a.tiff")
    image.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "b.tiff")
    images = np.ones((2, 3, 3))
    images[0, 0, 0] = np.nan
    np.save(tmp_path / "c.npy", images)

    for name, message in (("a", "more than 16 bits per pixel"), ("b", "floating-point pixels of unknown range")):
        with pytest.raises(InputError, match=message):
            read_input(tmp_path / f"{name}.tiff")
    with pytest.raises(InputError, match="the images contain NaN or infinity"):
        read_input(tmp_path / "c.npy")


def test_compressed_json_lines_are_a_table(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1, "b": 2}\n{"a": 3, "b": 5}\n'))

    assert read_input(tmp_path / "a.jsonl.gz").X.shape == (2, 2)


def test_a_data_set_without_names_of_features_is_an_array(monkeypatch):
    data = Bunch(X=np.ones((3, 2)), y=np.zeros(3, int), target_names=["a"], feature_names=None)
    monkeypatch.setattr("fiedler.io.read.load", lambda *_, **__: data)

    assert read_input("wine").kind == "array"


def test_texts_have_no_columns(tmp_path):
    with pytest.raises(InputError, match=r"texts\.txt"):
        read_input(table(tmp_path, "one\ntwo\n", "texts.txt"), labels="a")


def test_features_of_a_table_are_numbers_in_the_order_that_is_given(tmp_path):
    path = table(tmp_path, "a,b,c\n1,x,2\n3,y,4\n")

    assert_array_equal(read_input(path, features=["c", "a"]).X, [[2, 1], [4, 3]])


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("a,b\n1,2\n1_0,3\n", "not_a_number", "'1_0' is not a number; give the column a role"),
        ("a,b\n1,2\ninf,3\n", "missing_value", "the value is inf"),
        ("a,b\n1,2\nNA,3\n", "missing_value", r"the value is missing \(NA\)"),
        ("a,b\n1,2\n,3\n", "missing_value", "the cell is empty"),
        ('a,b\n1,2\n"1,5",3\n', "decimal_comma", "write decimals with a point"),
        ("a\n1\nx\n", "single_column_not_numeric", "separate columns by a comma"),
        (f"a,b\n1,2\n{'x' * 200},3\n", "not_a_number", r"x\.\.\.' is not a number"),
    ],
)
def test_features_that_are_not_numbers_are_located(content, code, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        read_input(table(tmp_path, content), features=["a"])
    assert error.value.code == code
    assert error.value.fields["column"] == "a"


def test_lists_are_not_numbers(tmp_path):
    path = table(tmp_path, '{"a": [1], "b": 2}\n{"a": [3], "b": 5}\n', "rows.jsonl")

    with pytest.raises(InputError, match="column 'a' contains lists"):
        read_input(path, features=["a"])


def test_blocks_of_files_without_names_or_rows(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("dask.array")
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "empty.parquet")
    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "one.parquet")

    with pytest.raises(FileFormatError, match=r"the columns of 'a\.npy' have no names"):
        read_blocks(tmp_path / "a.npy", columns=["a"])
    with pytest.raises(FileFormatError, match=r"'empty\.parquet' has no rows"):
        read_blocks(tmp_path / "empty.parquet")
    with pytest.raises(FileFormatError, match="has no column 'b'"):
        read_blocks(tmp_path / "one.parquet", drop=["b"])
    with pytest.raises(FileFormatError, match="no columns are left"):
        read_blocks(tmp_path / "one.parquet", drop=["a"])


def test_batches_before_the_first_row_are_skipped(tmp_path):
    pa = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(pa.table({"a": np.arange(8.0)}), tmp_path / "a.feather", "uncompressed", chunksize=2)

    assert_array_equal(read_rows(str(tmp_path / "a.feather"), Arrow, [0, 1, 2, 3], ["a"], 5, 7)[:, 0], [5, 6])


@pytest.mark.parametrize(
    ("name", "function"), [("a.npy", "numpy.load"), ("a.npz", "numpy.lib.npyio.NpzFile.__getitem__")]
)
def test_a_lack_of_memory_is_not_taken_for_a_damaged_array(name, function, tmp_path, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    if name.endswith("npy"):
        np.save(tmp_path / name, np.ones((4, 2)))
    else:
        np.savez(tmp_path / name, X=np.ones((4, 2)))
    monkeypatch.setattr(function, fail)

    with pytest.raises(FiedlerError, match="memory"):
        read_input(tmp_path / name)


def test_a_lack_of_memory_is_not_taken_for_a_damaged_sparse_matrix(tmp_path, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    sp.save_npz(tmp_path / "a.npz", sp.csr_array(np.eye(4)))
    monkeypatch.setattr(sp, "load_npz", fail)

    with pytest.raises(FiedlerError, match="memory"):
        read_input(tmp_path / "a.npz")
