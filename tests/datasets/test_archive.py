from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from fiedler.datasets import archive
from fiedler.datasets.archive import fingerprint

X = np.array([[0.5, 0.0, np.nan], [0.0, 2.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
Y = np.array([0, 0, 1, 1])


def test_fingerprint_ignores_order_numbering_type_and_container():
    known = np.nan_to_num(X)
    order = [2, 0, 3, 1]

    expected = fingerprint(known, Y)

    assert fingerprint(known[order], 1 - Y[order]) == expected
    assert fingerprint(known.astype(np.float32), Y) == expected
    assert fingerprint(-known * -1.0 - 0.0 + 1e-9, Y) == expected
    assert fingerprint(sp.csr_array(known), Y) == fingerprint(sp.csc_array(known), Y)


def test_fingerprint_of_a_sparse_matrix_ignores_stored_zeros_and_index_order():
    tidy = sp.csr_array(([1.0, 2.0], [0, 2], [0, 2]), shape=(1, 3))
    untidy = sp.csr_array(([2.0, 0.0, 1.0], [2, 1, 0], [0, 3]), shape=(1, 3))

    assert fingerprint(untidy, np.zeros(1)) == fingerprint(tidy, np.zeros(1))
    assert untidy.nnz == 3


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
def test_fingerprint_sees_every_change_of_content(other):
    assert fingerprint(*other) != fingerprint(X, Y)


@pytest.mark.parametrize("data", [X, sp.csr_array(np.nan_to_num(X))], ids=["dense", "sparse"])
def test_an_archive_comes_back_as_written(data, tmp_path):
    archive.write(tmp_path / "a.npz", archive.pack(data) | {"y": Y})

    arrays = archive.read(tmp_path / "a.npz")

    again = archive.matrix(arrays)
    assert type(again) is type(data)
    assert_array_equal(again.toarray() if sp.issparse(again) else again, np.nan_to_num(X) if sp.issparse(again) else X)
    assert_array_equal(arrays["y"], Y)


def test_a_sparse_archive_is_one_that_scipy_reads(tmp_path):
    archive.write(tmp_path / "a.npz", archive.pack(sp.csr_array(np.nan_to_num(X))) | {"y": Y})

    assert_array_equal(sp.load_npz(tmp_path / "a.npz").toarray(), np.nan_to_num(X))


def _cut_short(path):
    np.savez_compressed(path, X=X, y=Y)
    path.write_bytes(path.read_bytes()[:200])


def _a_single_array(path):
    with path.open("wb") as file:
        np.save(file, X)


BROKEN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("<html>not found</html>"),
    "cut short": _cut_short,
    "a single array": _a_single_array,
    "pickled": lambda path: np.savez(path, X=X, y=np.array([{}, {}, {}, {}], dtype=object)),
    "no labels": lambda path: np.savez(path, X=X),
    "no data": lambda path: np.savez(path, y=Y),
    "too few labels": lambda path: np.savez(path, X=X, y=Y[:2]),
    "labels with a fraction": lambda path: np.savez(path, X=X, y=Y + 0.5),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_archive_is_named_in_one_sentence(kind, tmp_path):
    path = tmp_path / "broken.npz"
    BROKEN[kind](path)

    with pytest.raises(ValueError, match=r"broken\.npz' is not a data set that can be read \(.*replace it") as caught:
        archive.read(path)

    assert "\n" not in str(caught.value)
