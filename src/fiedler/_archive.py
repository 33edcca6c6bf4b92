"""Strict reading and writing of ``.npz`` archives: one that :func:`write_archive` could not have written is refused.

:doc:`/file_formats` specifies the bytes. The directory of the archive is compared with the headers of its members,
which follow each other without gaps from the first byte to the last; the size of an array is compared with that of its
member before memory is allocated, and nothing is unpickled or evaluated.

A ValueError raised here says what is wrong with the archive; :func:`open_archive` adds the name of the file.
"""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ._files import atomic_write, check_path
from .errors import DataNotFoundError, FileFormatError, InputError, not_enough_memory_to_read

CHUNK = 2**18  # bytes that are decompressed at a time
MAX_EMPTY_AXIS = 2**20  # of an array without entries, whose size the size of the file does not limit
MAX_MEMBERS = 2**20
ENDING = ".npy"

END_RECORD, END_SIGNATURE, END_64_LOCATOR, END_64_SIZE = "<4s4H2LH", b"PK\x05\x06", b"PK\x06\x07", 76
LOCAL_HEADER, LOCAL_SIGNATURE = "<4s5HL2L2H", b"PK\x03\x04"
EXTRA_64, EXTRA_64_SIZE, IN_EXTRA = "<2H2Q", 20, 0xFFFFFFFF

MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    rb"\{'descr': '([<>|])([biufUS])([1-9]\d{0,7})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18},)?|\d{1,18}(?:, \d{1,18}){1,7})\), \} *\n"
)
# Types of the entries, with their sizes in bytes; None for strings, which have any.
DTYPES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "U": None, "S": None}


class SizeLimit(NamedTuple):
    """Largest decompressed size that is read: ``n_bytes``, or ``ratio`` times the size of the file if that is more."""

    n_bytes: int
    ratio: int


# An archive that decompresses to more is refused unread, in case it was crafted to exhaust the memory.
TOTAL_LIMIT = SizeLimit(100_000_000, 100)
NO_LIMITS: Mapping[str, SizeLimit] = {}


class Archive:
    """The arrays of an archive, each of which is read on request.

    Parameters
    ----------
    file : binary file
        Open for reading, and seekable.
    limits : mapping of str to SizeLimit, optional
        Limits on single members, in addition to that on all of them.

    Attributes
    ----------
    names : tuple of str
        The names of the arrays, in the order of the file.
    """

    def __init__(self, file: BinaryIO, limits: Mapping[str, SizeLimit] = NO_LIMITS) -> None:
        self._file = file
        size = file.seek(0, os.SEEK_END)
        members = _read_directory(file, size)
        if exceeds_limits(size, members, limits):
            raise OversizeError("decompressed size exceeds the limit")
        _check_layout(file, members)
        self._members = {_array_name(member): member for member in members}
        if len(self._members) < len(members):
            raise ValueError("two of its members have the same name")
        self.names = tuple(self._members)

    def read(self, name: str) -> np.ndarray:
        """Read an array; its checksum is compared."""
        if name not in self._members:
            raise ValueError(f"it has no array {name!r}")
        member = _Member(self._file, self._members[name])
        try:
            array = _read_array(member)
            member.finish()
        except (ValueError, zlib.error) as error:
            raise ValueError(f"its array {name!r} is damaged: {error}") from None
        return array


class OversizeError(ValueError):
    """An archive would take more memory than its limits allow."""


@contextmanager
def open_archive(
    path: str | os.PathLike[str], kind: str, *, code: str, limits: Mapping[str, SizeLimit] = NO_LIMITS
) -> Iterator[Archive]:
    """Open the archive of a file of some ``kind``, such as ``"model file"``; errors name the file."""
    check_path(path)
    name = str(path)
    try:
        with open(path, "rb") as file:
            yield check_archive(file, name, kind, code=code, limits=limits)
    except FileNotFoundError:
        raise DataNotFoundError(f"there is no {kind} {name!r}", code="file_not_found", file=name) from None
    except MemoryError:
        raise not_enough_memory_to_read(name) from None
    except (IsADirectoryError, PermissionError) as error:  # Windows denies the permission to open a folder
        if not os.path.isdir(path):
            raise
        raise FileFormatError(f"{name!r} is a folder, not a {kind}", code=code, file=name) from error


def check_archive(
    file: BinaryIO, name: str, kind: str, *, code: str, limits: Mapping[str, SizeLimit] = NO_LIMITS
) -> Archive:
    """Return the archive of an open file; errors call the file ``name``."""
    try:
        return Archive(file, limits)
    except OversizeError as error:
        raise FileFormatError(f"{name!r} is not a valid {kind}: {error}", code="size_limit", file=name) from None
    except ValueError as error:
        raise FileFormatError(f"{name!r} is not a {kind}, or it is damaged: {error}", code=code, file=name) from None


def check_ending(path: str | os.PathLike[str], kind: str) -> None:
    """Raise an error unless the name of a file to be written, such as a "model file", ends in .npz."""
    check_path(path)
    if not str(path).endswith(".npz"):
        raise InputError(
            f"a {kind} must end in .npz; got {str(path)!r}",
            code="wrong_ending",
            parameter="path",
            value=str(path),
            file=str(path),
        )


def write_archive(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], limits: Mapping[str, SizeLimit] = NO_LIMITS
) -> None:
    """Write arrays to a file, completely or not at all.

    They are compressed, unless :class:`Archive` would refuse the file for its ratio of compression, such as that of
    many zeros.
    """
    with atomic_write(path) as draft:
        np.savez_compressed(draft, **arrays)
        with zipfile.ZipFile(draft) as archive:
            is_refused = exceeds_limits(os.path.getsize(draft), archive.infolist(), limits)
        if is_refused:
            np.savez(draft, **arrays)


def exceeds_limits(file_size: int, members: list[zipfile.ZipInfo], limits: Mapping[str, SizeLimit]) -> bool:
    """Whether an archive decompresses to more than the limits; no member is ever read beyond the size it states."""
    sizes = [(member.file_size, limits[name]) for member in members if (name := _array_name(member)) in limits]
    sizes.append((sum(member.file_size for member in members), TOTAL_LIMIT))
    return any(size > max(limit.n_bytes, limit.ratio * file_size) for size, limit in sizes)


# ----------------------------------------------------------------------------------------------- the layout of the file


def _array_name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(ENDING)


def _read_directory(file: BinaryIO, size: int) -> list[zipfile.ZipInfo]:
    """Read the directory at the end of the archive, and check that nothing follows it."""
    try:
        archive = zipfile.ZipFile(file)
    except Exception:  # a damaged directory fails in many ways
        raise ValueError("it is not an archive of arrays") from None
    members, end = archive.infolist(), size - struct.calcsize(END_RECORD)
    if len(members) > MAX_MEMBERS:
        raise ValueError("it has too many members")
    file.seek(end - struct.calcsize("<4sLQL"))
    end_of_directory = end - END_64_SIZE if file.read(4) == END_64_LOCATOR else end
    n_members, directory_size = min(len(members), 0xFFFF), min(end_of_directory - archive.start_dir, IN_EXTRA)
    expected = (END_SIGNATURE, 0, 0, n_members, n_members, directory_size, min(archive.start_dir, IN_EXTRA), 0)
    file.seek(end)
    if struct.unpack(END_RECORD, file.read()) != expected:
        raise ValueError("it has bytes before or after the archive, or its directory is damaged")
    if archive.start_dir != sum(map(_stored_size, members)):
        raise ValueError("it has bytes between its members")
    return members


def _stored_size(member: zipfile.ZipInfo) -> int:
    """Return the bytes of a member and its header, which states the sizes in an extra field."""
    return struct.calcsize(LOCAL_HEADER) + len(member.filename) + EXTRA_64_SIZE + member.compress_size


def _check_layout(file: BinaryIO, members: list[zipfile.ZipInfo]) -> None:
    """Check that members follow each other in the order of the directory, with headers that agree with it."""
    offset = 0
    for member in members:
        name = member.filename
        if not name.isascii() or not name.endswith(ENDING) or not _array_name(member).isidentifier():
            raise ValueError("one of its members is not an array")
        if member.flag_bits or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"its member {name!r} is encrypted or compressed in an unknown way")
        is_large = max(member.file_size, member.compress_size, offset) > zipfile.ZIP64_LIMIT
        if member.comment or bool(member.extra) != is_large:
            raise ValueError(f"its member {name!r} has a comment or another field that is not used")
        file.seek(offset)
        if member.header_offset != offset or file.read(_stored_size(member) - member.compress_size) != _header(member):
            raise ValueError(f"the header of its member {name!r} is damaged")
        offset += _stored_size(member)


def _header(member: zipfile.ZipInfo) -> bytes:
    """Return the header that precedes a member, as the directory describes it."""
    year, month, day, hour, minute, second = member.date_time
    time, date = hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
    name = member.filename.encode()
    fields = (member.extract_version, member.flag_bits, member.compress_type, time, date, member.CRC)
    sizes = (IN_EXTRA, IN_EXTRA, len(name), EXTRA_64_SIZE)
    extra = struct.pack(EXTRA_64, 1, EXTRA_64_SIZE - 4, member.file_size, member.compress_size)
    return struct.pack(LOCAL_HEADER, LOCAL_SIGNATURE, *fields, *sizes) + name + extra


# ------------------------------------------------------------------------------------------------- members and arrays


class _Member:
    """The decompressed bytes of a member, in order."""

    def __init__(self, file: BinaryIO, member: zipfile.ZipInfo) -> None:
        self._file, self._member = file, member
        self._position = member.header_offset + _stored_size(member) - member.compress_size
        self._compressed_left, self._crc = member.compress_size, 0
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.compress_type == zipfile.ZIP_DEFLATED else None
        self.left = member.file_size

    def read(self, n_bytes: int) -> bytes:
        """Read some bytes, all of which must be there."""
        content = bytearray(n_bytes)
        self.read_into(memoryview(content))
        return bytes(content)

    def read_into(self, target: memoryview) -> None:
        """Fill a buffer."""
        filled = 0
        while filled < len(target):
            piece = self._next(min(CHUNK, len(target) - filled))
            if not piece:
                raise ValueError("it ends too early")
            target[filled : filled + len(piece)] = piece
            filled += len(piece)
            self._crc = zlib.crc32(piece, self._crc)
        self.left -= filled

    def finish(self) -> None:
        """Check that the bytes end here and have the checksum of the directory."""
        if self.left or self._next(1) or self._compressed_left:
            raise ValueError("it has more bytes than its array")
        if self._inflate is not None and (not self._inflate.eof or self._inflate.unused_data):
            raise ValueError("its compressed bytes do not end where its array does")
        if self._crc != self._member.CRC:
            raise ValueError("its checksum is wrong")

    def _next(self, limit: int) -> bytes:
        """Return at most ``limit`` of the next bytes, and none at the end."""
        if self._inflate is None:
            return self._stored(limit)
        piece = b""
        while not piece and not self._inflate.eof:
            compressed = self._inflate.unconsumed_tail or self._stored(CHUNK)
            piece = self._inflate.decompress(compressed, limit)
            if not compressed:
                break
        return piece

    def _stored(self, limit: int) -> bytes:
        self._file.seek(self._position)
        content = self._file.read(min(limit, self._compressed_left))
        self._position += len(content)
        self._compressed_left -= len(content)
        return content


def _read_array(member: _Member) -> np.ndarray:
    """Read the array of a member, for which memory is allocated once its size is known to be right."""
    magic, length = member.read(len(MAGIC)), int.from_bytes(member.read(2), "little")
    if magic != MAGIC or length > member.left:
        raise ValueError("it is not an array")
    match = HEADER.fullmatch(member.read(length))
    if match is None:
        raise ValueError("its header is not that of an array of numbers or strings")
    order, kind, digits, fortran, shape_text = (group.decode() for group in match.groups())
    dtype = _dtype(order, kind, int(digits))
    shape = tuple(int(size) for size in shape_text.split(",") if size)
    if dtype.itemsize * math.prod(shape) != member.left:
        raise ValueError(f"its shape {shape} does not agree with its size")
    if not member.left and max(shape) > MAX_EMPTY_AXIS:
        raise ValueError(f"it is empty, but has the shape {shape}")
    array = np.empty(shape, dtype, order="F" if fortran == "True" else "C")
    content = array.ravel(order="K").view(np.uint8)
    member.read_into(content.data)
    if kind == "b" and content.size and content.max() > 1:
        raise ValueError("it has entries that are neither true nor false")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _dtype(order: str, kind: str, size: int) -> np.dtype:
    """Return the type of the entries of an array, of which there are few."""
    sizes = DTYPES[kind]
    if sizes is not None and size not in sizes:
        raise ValueError(f"its entries have an unknown type {kind}{size}")
    return np.dtype(f"{order}{kind}{size}")


def is_storable_dtype(dtype: np.dtype) -> bool:
    """Whether :class:`Archive` reads arrays of this type."""
    sizes = DTYPES.get(dtype.kind, ())
    return dtype.itemsize > 0 and (sizes is None or dtype.itemsize in sizes)
