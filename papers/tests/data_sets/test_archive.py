from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from fiedler.errors import FileFormatError
from fiedler_papers.datasets import files
from fiedler_papers.datasets.files import fingerprint

X = np.array([[0.5, 0.0, np.nan], [0.0, 2.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
Y = np.array([0, 0, 1, 1])


def test_fingerprint_ignores_order_numbering_dtype_and_container():
    known = np.nan_to_num(X)
    order = [2, 0, 3, 1]

    expected = fingerprint(known, Y)

    assert fingerprint(known[order], 1 - Y[order]) == expected
    assert fingerprint(known.astype(np.float32), Y) == expected
    assert fingerprint(-known * -1.0 - 0.0 + 1e-9, Y) == expected
    assert fingerprint(sp.csr_array(known), Y) == fingerprint(sp.csc_array(known), Y)


def test_fingerprint_of_a_sparse_matrix_ignores_stored_zeros_and_index_order():
    canonical = sp.csr_array(([1.0, 2.0], [0, 2], [0, 2]), shape=(1, 3))
    unsorted = sp.csr_array(([2.0, 0.0, 1.0], [2, 1, 0], [0, 3]), shape=(1, 3))

    assert fingerprint(unsorted, np.zeros(1)) == fingerprint(canonical, np.zeros(1))
    assert unsorted.nnz == 3


@pytest.mark.parametrize(
    "other",
    [
        (np.where(X == 2, 2.00001, X), Y),
        (X[:, ::-1], Y),
        (np.nan_to_num(X), Y),
        (X[:3], Y[:3]),
        (X, np.array([0, 1, 1, 0])),
        (np.hstack([X, X[:, :1]]), Y),
    ],
    ids=["value", "columns", "missing", "row", "classes", "width"],
)
def test_fingerprint_changes_with_the_content(other):
    assert fingerprint(*other) != fingerprint(X, Y)


@pytest.mark.parametrize("data", [X, sp.csr_array(np.nan_to_num(X))], ids=["dense", "sparse"])
def test_archive_round_trip(data, tmp_path):
    files.write(tmp_path / "a.npz", files.pack(data) | {"y": Y})

    arrays = files.read(tmp_path / "a.npz")

    loaded = files.matrix(arrays)
    assert type(loaded) is type(data)
    sparse = sp.issparse(loaded)
    assert_array_equal(loaded.toarray() if sparse else loaded, np.nan_to_num(X) if sparse else X)
    assert_array_equal(arrays["y"], Y)


def test_sparse_archive_is_readable_by_scipy(tmp_path):
    files.write(tmp_path / "a.npz", files.pack(sp.csr_array(np.nan_to_num(X))) | {"y": Y})

    assert_array_equal(sp.load_npz(tmp_path / "a.npz").toarray(), np.nan_to_num(X))


def _truncated(path):
    np.savez_compressed(path, X=X, y=Y)
    path.write_bytes(path.read_bytes()[:200])


def _single_array(path):
    with path.open("wb") as file:
        np.save(file, X)


BROKEN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("<html>not found</html>"),
    "truncated": _truncated,
    "single array": _single_array,
    "pickled": lambda path: np.savez(path, X=X, y=np.array([{}, {}, {}, {}], dtype=object)),
    "no labels": lambda path: np.savez(path, X=X),
    "no data": lambda path: np.savez(path, y=Y),
    "too few labels": lambda path: np.savez(path, X=X, y=Y[:2]),
    "fractional labels": lambda path: np.savez(path, X=X, y=Y + 0.5),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_archive_raises(kind, tmp_path):
    path = tmp_path / "broken.npz"
    BROKEN[kind](path)

    with pytest.raises(FileFormatError, match=r"broken\.npz' is not a valid data set \(.*replace it") as caught:
        files.read(path)

    assert (caught.value.code, caught.value.fields) == ("invalid_archive", {"file": str(path)})
    assert "\n" not in str(caught.value)


def test_an_index_out_of_bounds_in_an_archive_is_refused(tmp_path):
    arrays = files.pack(sp.csr_array(np.nan_to_num(X))) | {"y": Y}
    files.write(tmp_path / "a.npz", arrays | {"indices": arrays["indices"] + 2**20})

    with pytest.raises(FileFormatError, match="an index of a sparse matrix is out of bounds"):
        files.read(tmp_path / "a.npz")
