"""Rows of files as Dask arrays."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fiedler.errors import DataNotFoundError, FileFormatError
from fiedler.io import read_blocks

pytest.importorskip("dask.array")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def rows(rng):
    return rng.normal(size=(100, 4)).astype(np.float32)


def test_an_array_in_a_file_is_read_in_blocks(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)

    blocks = read_blocks(tmp_path / "rows.npy", block_rows=30)

    assert (blocks.chunks, blocks.dtype) == (((30, 30, 30, 10), (4,)), np.float32)
    assert_array_equal(blocks.compute(scheduler="synchronous"), rows)
    assert read_blocks(tmp_path / "rows.npy").chunks == ((100,), (4,))


def test_a_folder_of_tables_with_vectors_is_read_in_row_groups(rows, tmp_path):
    for number, part in enumerate(np.split(rows, [60])):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(part[:, 1:].ravel()), 3)
        table = pa.table({"name": ["a"] * len(part), "x": part[:, 0], "vector": vectors})
        parquet.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=20)

    blocks = read_blocks(tmp_path, columns=["x", "vector"], block_rows=40)

    assert blocks.chunks == ((40, 20, 40), (4,))
    assert_array_equal(blocks.compute(scheduler="synchronous"), rows)
    smaller = read_blocks(tmp_path, columns=["x", "vector"], block_rows=15)  # than row groups
    assert smaller.chunks[0] == (15, 5) * 5
    assert_array_equal(smaller.compute(scheduler="synchronous"), rows)
    with pytest.raises(FileFormatError, match=r"column 'name' of 'part-0\.parquet' contains string, .* columns="):
        read_blocks(tmp_path)


@pytest.mark.parametrize(("suffix", "compression"), [("feather", "zstd"), ("arrow", "uncompressed")])
def test_nested_folders_of_arrow_files_are_read_in_record_batches(suffix, compression, rows, tmp_path):
    feather = pytest.importorskip("pyarrow.feather")
    for name, part in zip(("year=1", "year=2"), np.split(rows, [60])):
        (tmp_path / name).mkdir()
        table = pa.table({"name": ["a"] * len(part), **{f"x{j}": part[:, j] for j in range(4)}})
        feather.write_feather(table, tmp_path / name / f"part.{suffix}", compression, chunksize=20)
    (tmp_path / "_metadata.parquet").write_bytes(b"")  # left out, as every name with an underscore

    blocks = read_blocks(tmp_path, drop=["name"], block_rows=40)

    assert blocks.chunks == ((40, 20, 40), (4,))
    assert_array_equal(blocks.compute(scheduler="synchronous"), rows)


def test_an_arrow_data_set_is_read(rows, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    table = pa.table({f"x{j}": rows[:, j] for j in range(4)})
    dataset.write_dataset(table, tmp_path, format="parquet", max_rows_per_file=50, max_rows_per_group=50)

    blocks = read_blocks(dataset.dataset(tmp_path), columns=["x2", "x0"])

    assert_array_equal(blocks.compute(scheduler="synchronous"), rows[:, [2, 0]])
    for other in (dataset.dataset(tmp_path).filter(dataset.field("x0") > 0), dataset.dataset(table)):
        with pytest.raises(FileFormatError, match=r"the Arrow data set .* write it to Parquet files"):
            read_blocks(other)


def test_integers_and_lists_become_numbers_and_vectors(tmp_path):
    table = pa.table({"count": [1, 2, None], "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]})
    parquet.write_table(table, tmp_path / "table.parquet")

    assert_array_equal(
        read_blocks(tmp_path / "table.parquet").compute(scheduler="synchronous"), [[1, 1, 2], [2, 3, 4], [np.nan, 5, 6]]
    )


def test_columns_are_read_by_name_and_must_be_the_same_in_all_files(tmp_path):
    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": [10.0, 20.0]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"b": [30.0, 40.0], "a": [3.0, 4.0]}), tmp_path / "2.parquet")

    blocks = read_blocks(tmp_path)

    assert_array_equal(blocks.compute(scheduler="synchronous"), [[1, 10], [2, 20], [3, 30], [4, 40]])
    with pytest.raises(FileFormatError, match=r"'1\.parquet' has no column 'c'"):
        read_blocks(tmp_path, columns=["a", "c"])
    parquet.write_table(pa.table({"a": [5, 6], "b": [50.0, 60.0]}), tmp_path / "3.parquet")
    with pytest.raises(FileFormatError, match=r"'3\.parquet' has no column 'a', or one of another type"):
        read_blocks(tmp_path)


def test_a_changed_file_is_another_array(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    before = read_blocks(tmp_path / "rows.npy")
    np.save(tmp_path / "rows.npy", np.concatenate([rows, rows]))

    assert before.name != read_blocks(tmp_path / "rows.npy").name


def test_zarr_arrays_are_opened(rows, tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(tmp_path / "rows.zarr"), rows)
    zarr.save_array(str(tmp_path / "flat.zarr"), rows.ravel())
    with pytest.raises(FileFormatError, match=r"array of shape \(400,\)"):
        read_blocks(tmp_path / "flat.zarr")

    assert_array_equal(read_blocks(tmp_path / "rows.zarr", block_rows=50).compute(scheduler="synchronous"), rows)


def test_mistakes_give_one_sentence(rows, tmp_path):
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    (tmp_path / "broken.feather").write_bytes(b"nothing")
    (tmp_path / "rows.txt").write_text("1 2")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "flat.npy", rows.ravel())
    ragged = pa.table({"vector": [[1.0], [2.0, 3.0]]})
    parquet.write_table(ragged, tmp_path / "ragged.parquet")

    with pytest.raises(DataNotFoundError, match="there is no file or folder"):
        read_blocks(tmp_path / "nothing.npy")
    for name, sentence in [
        ("broken.npy", "is not an array of numbers"),
        ("rows.txt", "is neither"),
        ("flat.npy", r"shape \(400,\)"),
        ("ragged.parquet", "differ in length"),
        ("broken.parquet", "cannot be read as Parquet"),
        ("broken.feather", "cannot be read as Arrow"),
        ("empty", "the folder 'empty' has no tables"),
    ]:
        with pytest.raises(FileFormatError, match=sentence):
            read_blocks(tmp_path / name).compute(scheduler="synchronous")  # cells are looked at when they are read
