"""Files of blocks: whole or not there, checked when read, and refused by another fit."""

import errno
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from fiedler.errors import InputError, StorageError
from fiedler.out_of_core.run import parse_memory
from fiedler.out_of_core.store import Sliced, Workspace


@pytest.fixture
def workspace(tmp_path):
    workspace = Workspace(tmp_path / "work")
    workspace.claim({"data": "a", "options": {"k": 3}})
    return workspace


def damage(path):
    """Change one byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_dense_and_sparse_arrays_are_read_one_by_one(workspace, rng):
    dense, sparse = rng.normal(size=(5, 3)).astype(np.float32), sp.random_array((4, 6), density=0.5, format="csr")

    workspace.write("step", 7, {"dense": dense, "sparse": sparse})

    found, other = workspace.read("step", 7, "dense", "sparse")
    assert_array_equal(found, dense)
    assert found.dtype == np.float32
    assert_array_equal(other.toarray(), sparse.toarray())
    assert workspace.finished("step") == {7}
    assert workspace.finished("another") == set()


def test_a_damaged_block_is_found_when_it_is_read_and_when_it_is_checked(workspace):
    workspace.write("step", 0, {"values": np.arange(1000)})
    damage(workspace.path("step", 0))

    with pytest.raises(StorageError, match=r"block 0 of the step 'step' .* is damaged") as caught:
        workspace.read_one("step", 0, "values")
    assert caught.value.code == "damaged_block"
    assert not workspace.is_intact("step", 0)
    assert workspace.finished("step") == set()
    with pytest.raises(StorageError, match="block 0 of the step 'step' is missing"):
        workspace.read_one("step", 0, "values")


@pytest.mark.parametrize("kept", [0, 10, 200])
def test_a_block_that_was_cut_off_is_damaged(workspace, kept):
    workspace.write("step", 0, {"values": np.arange(1000)})
    path = workspace.path("step", 0)
    path.write_bytes(path.read_bytes()[:kept])

    assert not workspace.is_intact("step", 0)


def test_a_full_disk_leaves_no_part_of_a_block_and_says_what_to_do(workspace, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(StorageError, match=r"disk of the work directory .* is full; free some space and run") as caught:
        workspace.write("step", 0, {"values": np.arange(10)})
    assert caught.value.code == "disk_full"
    assert os.listdir(workspace.folder / "step") == []


def test_other_data_or_options_are_refused_and_the_same_are_not(workspace, tmp_path):
    again = Workspace(workspace.folder)

    assert again.claim({"data": "a", "options": {"k": 3}})
    with pytest.raises(InputError, match="blocks of a fit with other options; choose another directory"):
        again.claim({"data": "a", "options": {"k": 4}})
    with pytest.raises(InputError, match="other data and options"):
        again.claim({"data": "b", "options": {"k": 4}})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(InputError, match="contains files that are not those of a fit"):
        Workspace(tmp_path / "other").claim({"data": "a"})
    for text in ("[]", "5", "[" * 100_000, "\udcff"):
        (workspace.folder / "manifest.json").write_text(text, errors="surrogateescape")
        with pytest.raises(StorageError, match=r"cannot be used: its manifest\.json is damaged; choose another one"):
            workspace.claim({"data": "a"})
        with pytest.raises(StorageError, match=r"its manifest\.json is damaged"):
            workspace.identity  # noqa: B018
    (workspace.folder / "manifest.json").write_text("{")
    with pytest.raises(StorageError, match="cannot be used"):
        again.claim({"data": "a"})


def test_steps_that_are_not_needed_any_more_are_dropped_and_can_be_made_again(workspace):
    workspace.write("old", 0, {"values": np.arange(3)})

    workspace.drop("old")

    assert workspace.is_dropped("old")
    assert workspace.finished("old") == set()
    workspace.forget_dropped()
    assert not workspace.is_dropped("old")


def test_a_directory_that_cannot_be_written_to_gives_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="cannot be written to: Not a directory; choose another one"):
        Workspace(tmp_path / "file" / "work").write("rows", 0, {"values": np.arange(3)})


def test_a_temporary_directory_ends_with_the_last_object_that_refers_to_it():
    workspace = Workspace.temporary()
    folder, copy = workspace.folder, pickle.loads(pickle.dumps(workspace))

    del copy
    assert folder.exists()
    del workspace
    assert not folder.exists()


@pytest.mark.parametrize(("text", "expected"), [("4GB", 4 * 10**9), ("2 GiB", 2**31), (2**30, 2**30)])
def test_amounts_of_memory(text, expected):
    assert parse_memory(text) == expected


@pytest.mark.parametrize("text", ["4 parsecs", "much", "10MB", "-4GB", ""])
def test_other_amounts_of_memory_are_refused(text):
    with pytest.raises(InputError, match=r"is not an amount of memory of at least 1 GiB; give it as in \"4GB\""):
        parse_memory(text)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_parts_of_an_array_are_read_one_by_one(make, workspace, rng):
    rows, parts = rng.randint(3, size=(20, 4)).astype(np.float32), rng.randint(-1, 3, size=20)

    workspace.write("step", 0, {"rows": Sliced.sorted_by(make(rows), parts, 4)})

    for part in range(4):
        found = workspace.read_part("step", 0, "rows", part)
        found = found.toarray() if sp.issparse(found) else found
        assert found.dtype == np.float32
        assert_array_equal(found, rows[parts == part])


def test_a_damaged_part_is_found(workspace, rng):
    workspace.write("step", 0, {"rows": Sliced(rng.normal(size=(1000, 4)), np.array([0, 400, 1000]))})
    damage(workspace.path("step", 0))

    assert_array_equal(workspace.read_part("step", 0, "rows", 0).shape, (400, 4))
    with pytest.raises(StorageError, match="is damaged: bad checksum of part 1 of 'rows'"):
        workspace.read_part("step", 0, "rows", 1)
