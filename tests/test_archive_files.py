"""Archives of arrays: what `write_archive` writes is read, and everything else is refused before it is used."""

import struct
import tracemalloc
import zipfile
import zlib
from io import BytesIO

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from fiedler import AffinityGraph, GaussianMixture, load, save
from fiedler._archive import Archive, OversizeError, SizeLimit, write_archive
from fiedler.errors import FileFormatError
from fiedler.persistence import read_notes
from file_fuzzing.mutate import build, encode, parse, with_header

ARRAYS = {
    "floats": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "scalar": np.array(True),
    "words": np.array(["a", "bc"]),
    "nothing": np.zeros((0, 2)),
    "swapped": np.arange(3, dtype=">i4"),
}


@pytest.fixture
def content(tmp_path):
    """The bytes of an archive."""
    write_archive(tmp_path / "arrays.npz", ARRAYS)
    return (tmp_path / "arrays.npz").read_bytes()


def read_all(content):
    archive = Archive(BytesIO(content))
    return {name: archive.read(name) for name in archive.names}


def one_member(content, name="a.npy"):
    return build([(name, content)])


def test_arrays_of_all_types_and_orders_are_read(content):
    read = read_all(content)

    assert list(read) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype.newbyteorder("=")
        assert read[name].flags.writeable
    assert_array_equal(read_all(build(parse(content)))["words"], ARRAYS["words"])  # stored without compression


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content + b"\0", "not an archive|bytes before or after"),
        (lambda content: content + content, "bytes before or after|header of its member"),
        (lambda content: b"\0" + content, "bytes before or after"),
        (lambda content: content[:-1], "not an archive"),
        (lambda content: b"", "not an archive"),
        (lambda content: content[:-2] + b"\2\0hi", "bytes before or after"),  # a comment
    ],
)
def test_bytes_before_and_after_an_archive_are_refused(change, reason, content):
    with pytest.raises(ValueError, match=reason):
        Archive(BytesIO(change(content)))


def test_bytes_between_members_are_refused(content):
    with zipfile.ZipFile(BytesIO(content)) as archive:
        first, start = archive.infolist()[1].header_offset, archive.start_dir
    moved = bytearray(content[:first] + b"gap!" + content[first:])
    end = len(moved) - 22
    struct.pack_into("<L", moved, end + 16, start + 4)
    entry = start + 4
    for _ in range(len(ARRAYS)):
        name_length, offset = (
            struct.unpack_from("<H", moved, entry + 28)[0],
            struct.unpack_from("<L", moved, entry + 42)[0],
        )
        if offset:
            struct.pack_into("<L", moved, entry + 42, offset + 4)
        entry += 46 + name_length
    with zipfile.ZipFile(BytesIO(bytes(moved))) as archive:
        assert archive.testzip() is None  # other readers accept it

    with pytest.raises(ValueError, match="bytes between its members"):
        Archive(BytesIO(bytes(moved)))


def patched(content, offset, value):
    """An archive of which two bytes of the first header and of the directory entry are changed alike."""
    changed = bytearray(content)
    struct.pack_into("<H", changed, 4 + offset, value)
    struct.pack_into("<H", changed, content.index(b"PK\x01\x02") + 6 + offset, value)
    return bytes(changed)


def test_members_that_are_encrypted_or_compressed_in_another_way_are_refused():
    content = one_member(encode(np.arange(3)))

    for offset, value in ((2, 1), (2, 8), (4, 12)):  # flags: encrypted, sizes after the data; method: bzip2
        with pytest.raises(ValueError, match="encrypted or compressed in an unknown way"):
            Archive(BytesIO(patched(content, offset, value)))


def test_comments_and_extra_fields_of_members_are_refused():
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("a.npy")
        info.comment = b"hello"
        with archive.open(info, "w", force_zip64=True) as member:
            member.write(encode(np.arange(3)))

    with pytest.raises(ValueError, match="has a comment or another field"):
        Archive(BytesIO(out.getvalue()))


@pytest.mark.parametrize("position", [10, 14, 18, 40])  # time, checksum, size, size in the extra field
def test_headers_that_contradict_the_directory_are_refused(position, content):
    changed = bytearray(content)
    changed[position] ^= 1

    with pytest.raises(ValueError, match=r"the header of its member 'floats\.npy' is damaged"):
        Archive(BytesIO(bytes(changed)))


@pytest.mark.parametrize("name", ["a", "a.txt", "../a.npy", "a/b.npy", ".npy", "1a.npy", "a b.npy"])
def test_members_that_are_not_arrays_are_refused(name):
    with pytest.raises(ValueError, match="one of its members is not an array"):
        Archive(BytesIO(one_member(encode(np.arange(3)), name)))


def test_two_members_of_one_name_are_refused():
    member = ("a.npy", encode(np.arange(3)))

    with pytest.raises(ValueError, match="two of its members have the same name"):
        Archive(BytesIO(build([member, member])))


def test_too_many_members_are_refused(content, monkeypatch):
    monkeypatch.setattr("fiedler._archive.MAX_MEMBERS", 3)

    with pytest.raises(ValueError, match="too many members"):
        Archive(BytesIO(content))


def test_an_array_that_is_not_there():
    with pytest.raises(ValueError, match="it has no array 'b'"):
        Archive(BytesIO(one_member(encode(np.arange(3))))).read("b")


THREE = np.arange(3.0).tobytes()


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (b"\x93NUMPY", "it ends too early"),
        (b"\x93NUMPY\x02\x00" + encode(np.arange(3))[8:], "it is not an array"),
        (b"\x93NUMPY\x01\x00\xff\xff", "it is not an array"),
        (with_header("|O", False, (1,), b"\x80\x04N."), "numbers or strings"),
        (with_header("<c16", False, (1,), bytes(16)), "numbers or strings"),
        (with_header("<M8[s]", False, (1,), bytes(8)), "numbers or strings"),
        (with_header([("a", "<f8")], False, (3,), THREE), "numbers or strings"),
        (with_header("<f8", False, (-3,), THREE), "numbers or strings"),
        (with_header("<f8", False, "[3].__len__()", THREE), "numbers or strings"),
        (with_header("<U0", False, (3,), b""), "numbers or strings"),
        (with_header("<f16", False, (3,), THREE * 2), "unknown type f16"),
        (with_header("<i3", False, (8,), THREE), "unknown type i3"),
        (with_header("<f8", False, (4,), THREE), "does not agree with its size"),
        (with_header("<f8", False, (2,), THREE), "does not agree with its size"),
        (with_header("<f8", False, (10**17, 10**17), THREE), "does not agree with its size"),
        (with_header("<f8", False, (10**12, 0), b""), "it is empty, but has the shape"),
        (with_header("|b1", False, (3,), b"\0\1\2"), "neither true nor false"),
    ],
)
def test_members_are_refused_unless_they_are_exactly_an_array(member, reason):
    with pytest.raises(ValueError, match=f"its array 'a' is damaged: .*{reason}"):
        read_all(one_member(member))


def deflated(member, stored, size=None):
    """An archive of one compressed member, whose compressed bytes are given."""
    out = bytearray(build([("a.npy", stored)]))
    n_bytes, at = len(member) if size is None else size, out.index(b"PK\x01\x02")
    for offset, position in ((8, 8), (14, 14)):
        value = 8 if offset == 8 else zlib.crc32(member)
        struct.pack_into("<H" if offset == 8 else "<L", out, position, value)
        struct.pack_into("<H" if offset == 8 else "<L", out, at + position + 2, value)
    struct.pack_into("<Q", out, 30 + 5 + 4, n_bytes)
    struct.pack_into("<L", out, at + 24, n_bytes)
    return bytes(out)


def test_compressed_bytes_end_where_the_array_ends():
    member = encode(np.arange(3))
    stored = zlib.compress(member)[2:-4]

    assert_array_equal(read_all(deflated(member, stored))["a"], np.arange(3))
    for wrong, reason in [
        (stored + b"more", "do not end where its array does"),
        (stored[:-3], "ends too early|do not end"),
        (zlib.compress(member + b"more")[2:-4], "more bytes than its array"),
        (zlib.compress(bytes(200))[2:-4], "not an array"),
        (b"\xff" * 20, "invalid"),
    ]:
        with pytest.raises(ValueError, match=reason):
            read_all(deflated(member, wrong))


def test_a_changed_entry_does_not_have_the_checksum(content):
    stored = bytearray(one_member(encode(np.arange(3))))
    stored[stored.index(b"PK\x01\x02") - 1] ^= 1

    with pytest.raises(ValueError, match="its checksum is wrong"):
        read_all(bytes(stored))


def test_archives_above_the_limits_are_refused_unread(content, monkeypatch):
    monkeypatch.setattr("fiedler._archive._Member", lambda *_: pytest.fail("it was read"))
    with pytest.raises(OversizeError):
        Archive(BytesIO(content), {"floats": SizeLimit(10, 0)})
    monkeypatch.setattr("fiedler._archive.TOTAL_LIMIT", SizeLimit(10, 0))
    with pytest.raises(OversizeError):
        Archive(BytesIO(content))


# ----------------------------------------------------------------------------------------------------------- memory


def peak_of(call):
    tracemalloc.start()
    try:
        result = call()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def decompressed_size(path):
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def test_loading_a_graph_takes_at_most_twice_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr("fiedler.graph.affinity.CHUNK", 2**12)
    n, steps = 10_000, np.arange(1, 21)
    rows = np.repeat(np.arange(n), 20)
    columns = (np.arange(n)[:, None] + steps).ravel() % n
    weights = np.random.RandomState(0).uniform(size=len(rows))
    W = sp.coo_array((weights, (rows, columns)), shape=(n, n)).tocsr()
    AffinityGraph.from_matrix(W + W.T).save(tmp_path / "graph.npz")

    peak, _ = peak_of(lambda: AffinityGraph.load(tmp_path / "graph.npz"))

    assert peak < 2.3 * decompressed_size(tmp_path / "graph.npz")  # and some small chunks


def test_loading_a_model_takes_at_most_twice_its_size(tmp_path, rng):
    X = rng.normal(size=(10_000, 40))
    save(GaussianMixture(3, max_iter=2, random_state=0, ridge=0.1).fit(X), tmp_path / "model.npz")

    peak, _ = peak_of(lambda: load(tmp_path / "model.npz"))

    assert peak < 2 * decompressed_size(tmp_path / "model.npz")


def test_reading_notes_reads_no_other_array(tmp_path, rng):
    X = rng.normal(size=(10_000, 20))
    save(GaussianMixture(3, max_iter=2, random_state=0).fit(X), tmp_path / "model.npz", notes={"a": 1})

    peak, notes = peak_of(lambda: read_notes(tmp_path / "model.npz"))

    assert notes["a"] == 1
    assert peak < 1_000_000


def test_files_that_are_missing_folders_or_unreadable_have_codes(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"no archive")

    for read in (load, AffinityGraph.load):
        with pytest.raises(FileNotFoundError, match="there is no"):
            read(tmp_path / "nothing.npz")
        with pytest.raises(FileFormatError, match="is a folder, not a"):
            read(tmp_path)
        with pytest.raises(FileFormatError, match="or it is damaged: it is not an archive of arrays"):
            read(tmp_path / "bad.npz")
