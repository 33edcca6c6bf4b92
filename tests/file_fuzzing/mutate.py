"""Mutations of files: of bytes, of the directory of an archive, of headers and values of arrays, and of JSON texts.

Mutations of a part write the parts around it anew, so that checksums and sizes agree and the mutation reaches the code
behind these checks.
"""

import json
import math
import re
import struct
import zlib
from random import Random
from typing import Any

import numpy as np

from fiedler._registry import storable_classes

Members = list[tuple[str, bytes]]

PLAIN = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    2**31,
    2**63,
    -(2**63),
    10**30,
    0.5,
    -0.0,
    1e308,
    5e-324,
    math.nan,
    math.inf,
]
PLAIN += ["", "a", "auto", "local", "heat", "precomputed", "\ud800", "\x1b[2J", "../x", "é", [], {}, [[]], "a0", "json"]
NUMBERS = [0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 1e-160, 2.0**53]
INTEGERS = [0, 1, -1, 2, 3, 7, 100, 2**31 - 1, -(2**31), 2**62]
BYTES = [b"\x00", b"\xff", b"\x7f", b"\x80", b"PK", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"{", b'"', b"]"]
OPTIONS = [
    "auto",
    "local",
    "heat",
    "dot",
    "cosine",
    "binary",
    "polynomial",
    "exact",
    "full",
    "tied",
    "diag",
    "spherical",
]
OPTIONS += ["ncut", "ratio", "njw", "split", "shift", "euclidean", "number", "category", "text", "date", "word", "char"]
KINDS = ["dtype", "strings", "array", "scalar", "sparse", "pipeline", "object", "random_state", "tuple", "set", "dict"]


# --------------------------------------------------------------------------------------------------------- any bytes


def flip(data: bytes, rng: Random) -> bytes:
    """Change some bits."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwrite(data: bytes, rng: Random) -> bytes:
    """Overwrite some bytes with unusual ones."""
    piece, at = rng.choice(BYTES), rng.randrange(len(data))
    return data[:at] + piece + data[at + len(piece) :]


def cut(data: bytes, rng: Random) -> bytes:
    """Remove a range of bytes, often the end."""
    start = rng.randrange(len(data))
    stop = len(data) if rng.random() < 0.5 else rng.randrange(start, len(data)) + 1
    return data[:start] + data[stop:]


def repeat(data: bytes, rng: Random) -> bytes:
    """Insert a range of bytes at another place."""
    start, at = rng.randrange(len(data)), rng.randrange(len(data) + 1)
    return data[:at] + data[start : start + rng.choice([1, 4, 64, 1000])] + data[at:]


def extend(data: bytes, rng: Random) -> bytes:
    """Add bytes before or after."""
    extra = rng.choice([b"\x00", b"\n", b"PK\x05\x06", bytes(22), data])
    return data + extra if rng.random() < 0.5 else extra + data


def splice(data: bytes, rng: Random, other: bytes) -> bytes:
    """Join the beginning of one file and the end of another."""
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


# ---------------------------------------------------------------------------------------------------------- archives


def parse(data: bytes) -> Members:
    """Return the members of a valid archive, decompressed."""
    members, offset = [], 0
    while data[offset : offset + 4] == b"PK\x03\x04":
        method, _crc, n_name, n_extra = struct.unpack("<8xH4xL8x2H", data[offset : offset + 30])
        name = data[offset + 30 : offset + 30 + n_name].decode()
        _, _, _size, n_bytes = struct.unpack("<2H2Q", data[offset + 30 + n_name : offset + 50 + n_name])
        start = offset + 30 + n_name + n_extra
        content = data[start : start + n_bytes]
        members.append((name, zlib.decompress(content, -15) if method else content))
        offset = start + n_bytes
    return members


def build(members: Members, rng: Random | None = None) -> bytes:
    """Write an archive; with a generator, some fields of its directory and headers are wrong."""
    out, directory = b"", b""
    for name, content in members:
        method = 8 if rng and rng.random() < 0.2 else 0
        stored = zlib.compress(content, 1)[2:-4] if method else content
        fields = {"version": 45, "flags": 0, "method": method, "time": 0, "date": 33, "crc": zlib.crc32(content)}
        local, central = dict(fields), dict(fields)
        sizes = [len(content), len(stored)]
        if rng and rng.random() < 0.3:
            rng.choice([local, central])[rng.choice(list(fields))] = rng.choice([0, 1, 2, 8, 12, 99, 65535])
        if rng and rng.random() < 0.1:
            sizes[rng.randrange(2)] += rng.choice([1, -1, 10**6, 2**40])
        if rng and rng.random() < 0.1:
            stored += b"more"
        raw = name.encode()
        extra = struct.pack("<2H2Q", 1, 16, *(abs(size) for size in sizes))
        header = struct.pack("<4s5HL2L2H", b"PK\x03\x04", *local.values(), 2**32 - 1, 2**32 - 1, len(raw), len(extra))
        numbers = (min(abs(sizes[1]), 2**32 - 1), min(abs(sizes[0]), 2**32 - 1), len(raw), 0, 0, 0, 0, 0o600 << 16)
        directory += struct.pack("<4s6HL2L5H2L", b"PK\x01\x02", 45, *central.values(), *numbers, len(out)) + raw
        out += header + raw + extra + stored
    n = len(members)
    return out + directory + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, n, n, len(directory), len(out), 0)


def mutate_directory(members: Members, rng: Random) -> bytes:
    """Repeat, drop, rename or reorder members, or write wrong fields."""
    members, i = list(members), rng.randrange(len(members))
    action = rng.randrange(6)
    if action == 0:
        members.insert(rng.randrange(len(members) + 1), members[i])
    elif action == 1:
        del members[i]
    elif action == 2:
        names = ["a999.npy", "../a0.npy", "a0", "json", "é.npy", "", "a/b.npy", "x" * 300 + ".npy", members[0][0]]
        members[i] = (rng.choice(names), members[i][1])
    elif action == 3:
        rng.shuffle(members)
    elif action == 4:
        members.append((f"a{len(members) - 1}.npy", members[i][1]))
    return build(members, rng if action == 5 else None)


# ------------------------------------------------------------------------------------------------------------ arrays


def encode(array: np.ndarray) -> bytes:
    """Return the bytes of an array as NumPy writes it."""
    order = array.flags.f_contiguous and not array.flags.c_contiguous
    return with_header(array.dtype.str, order, array.shape, array.tobytes(order="F" if order else "C"))


def with_header(descr: str, fortran: bool, shape: Any, content: bytes) -> bytes:
    """Return bytes with the header of an array."""
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode("latin-1", "replace")
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def decode(content: bytes) -> np.ndarray:
    """Return the array in the bytes of a valid member."""
    (length,) = struct.unpack("<H", content[8:10])
    descr, fortran, shape = re.findall(rb"'descr': '(.*?)'.*: (True|False).*: \((.*?)\)", content[10 : 10 + length])[0]
    sizes = tuple(int(size) for size in shape.split(b",") if size.strip())
    array = np.frombuffer(content[10 + length :], descr.decode())
    return array.reshape(sizes, order="F" if fortran == b"True" else "C")


def mutate_array(array: np.ndarray, rng: Random) -> bytes:
    """Change the header, the type, the shape or some values of an array."""
    action = rng.randrange(8)
    if action == 0:
        descr = rng.choice(
            ["|O", "<f8", "<i4", "<U0", "<U99", "|S3", "<M8[s]", "|V8", "<c16", "<f2", ">f8", "|b1", "<u8"]
        )
        shape = rng.choice([array.shape, (), (array.size,), (-1,), (2**62, 4), (0, 2**60), (array.size, 1), "(1, x)"])
        return with_header(descr, rng.random() < 0.2, shape, array.tobytes())
    if action == 1:
        kind = rng.choice(["f4", "f8", "i4", "i8", "u1", "b1", "f2", "U4", "i8"])
        with np.errstate(all="ignore"):
            return encode(np.asarray(array).astype(kind))
    if action == 2:
        sizes = list(array.shape) or [1]
        sizes[rng.randrange(len(sizes))] += rng.choice([1, -1, -1, 5])
        return encode(np.resize(array, [max(size, 0) for size in sizes]))
    if action == 3:
        return encode(rng.choice([array.T, array[None], array.ravel(), array.reshape(-1, 1), np.asfortranarray(array)]))
    return encode(_with_other_values(array, rng))


def _with_other_values(array: np.ndarray, rng: Random) -> np.ndarray:
    changed = array.copy()
    flat = changed.reshape(-1)
    if not flat.size:
        return changed
    with np.errstate(all="ignore"):
        for _ in range(rng.choice([1, 1, 3])):
            at = slice(None) if rng.random() < 0.1 else rng.randrange(flat.size)
            if changed.dtype.kind == "f":
                flat[at] = rng.choice([*NUMBERS, flat[rng.randrange(flat.size)] * rng.choice([-1, 1e3, 1e-3])])
            elif changed.dtype.kind in "iu":
                flat[at] = np.array(rng.choice(INTEGERS)).astype(changed.dtype)
            elif changed.dtype.kind == "b":
                flat[at] = ~flat[at]
            else:
                flat[at] = rng.choice(["", "a", "\udfff"]) if changed.dtype.kind == "U" else b"a"
    return changed


# --------------------------------------------------------------------------------------------------------------- JSON


def places(node: Any) -> list[tuple[Any, Any]]:
    """Return every place in a JSON document, as a container and a key."""
    found, open_nodes = [], [node]
    while open_nodes:
        one = open_nodes.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            open_nodes.append(one[key])
    return found


def mutate_json(text: bytes, rng: Random) -> bytes:
    """Replace, remove, copy, rename or repeat some parts of a JSON document."""
    document = json.loads(text)
    every = places(document)
    if every and rng.random() < 0.4:
        container, key = rng.choice([place for place in every if not isinstance(place[0][place[1]], dict | list)])
        container[key] = _similar(container[key], rng)
        return json.dumps(document).encode()
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if every:
            _mutate_place(*rng.choice(every), every, rng)
        every = places(document)
    dumped = json.dumps(document).encode()
    if rng.random() < 0.03:
        dumped = re.sub(rb'("[a-z_]+": [^,{}\[\]]+)', rb"\1, \1", dumped, count=rng.randrange(1, 5))
    return dumped


def _similar(value: Any, rng: Random) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool) or value is None:
        return rng.choice([True, False, None, 1, 0.5, "auto"])
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, value * 1000, 0, 1, 2, 10**9, 2**70])
    if isinstance(value, float):
        return rng.choice([*NUMBERS, value * 2, -value])
    return rng.choice([*OPTIONS, value[::-1]])


def _mutate_place(container: Any, key: Any, every: list[tuple[Any, Any]], rng: Random) -> None:
    action, value = rng.randrange(8), container[key]
    if action == 0:
        container[key] = rng.choice(PLAIN)
    elif action == 1:
        del container[key]
    elif action == 2:
        other, name = rng.choice(every)
        container[key] = (
            json.loads(json.dumps(other[name] if name in other or isinstance(name, int) else None))
            if (isinstance(other, dict) or name < len(other))
            else None
        )
    elif action == 3 and isinstance(container, dict):
        other, name = rng.choice(every)
        container[str(name)] = container.pop(key)
    elif action == 4 and isinstance(container, dict):
        container[rng.choice(["kind", "array", "labels_", "memory", "predict", "__class__", "x_", "n_jobs"])] = (
            rng.choice(PLAIN)
        )
    elif action == 5 and isinstance(value, str):
        container[key] = rng.choice([*storable_classes(), *KINDS, "a0", "a1", "a2", "a5", value + "x"])
    elif action == 6 and isinstance(value, int | float):
        container[key] = rng.choice([value + 1, value - 1, -value, value * 1000, float(value), str(value)])
    elif isinstance(value, list):
        container[key] = rng.choice([value * 2, value[::-1], value[:-1], [value], [*value, None]])
    else:
        container[key] = rng.choice(PLAIN)


# ---------------------------------------------------------------------------------------------------------- together

OF_BYTES = [flip, flip, overwrite, cut, repeat, extend]


def mutate(kind: str, data: bytes, other: bytes, rng: Random) -> bytes:
    """Return a mutation of a file; ``other`` is another file of the same kind."""
    draw = rng.random()
    if draw < 0.1 or not data:
        return (
            splice(data, rng, other)
            if data and other and rng.random() < 0.2
            else rng.choice(OF_BYTES)(data or b"\0", rng)
        )
    if kind == "summary":
        try:
            return mutate_json(data, rng)
        except Exception:
            return flip(data, rng)
    try:
        members = parse(data)
        if draw < 0.2:
            return mutate_directory(members, rng)
        for _ in range(rng.choice([1, 1, 1, 2])):
            members = _mutate_member(kind, members, parse(other) if rng.random() < 0.05 else members, rng)
        return build(members)
    except Exception:  # the file is a mutation itself, and cannot be parsed any more
        return flip(data, rng)


def _mutate_member(kind: str, members: Members, source: Members, rng: Random) -> Members:
    members, at = list(members), rng.randrange(len(members))
    if kind == "model" and rng.random() < 0.6:
        at = 0
    name, content = members[at]
    if name == "json.npy":
        text = mutate_json(decode(content).tobytes(), rng)
        members[at] = (name, encode(np.frombuffer(text, np.uint8)))
    elif rng.random() < 0.1:
        members[at] = (name, rng.choice(source)[1])
    elif rng.random() < 0.05:
        members[at] = (name, rng.choice(OF_BYTES)(content, rng))
    else:
        members[at] = (name, mutate_array(decode(content), rng))
    return members
