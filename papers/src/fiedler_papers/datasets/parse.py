"""Parsers of the raw files from public sources, which return the arrays of an archive.

Every parser takes the paths of the files of a data set, in the order of its addresses, and returns at least ``X`` (or
its CSR parts) and ``y``.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.io import loadmat

from fiedler._validation import choose
from fiedler.errors import FileFormatError

from .files import Arrays, pack

PORTRAIT = re.compile(r"(?:^|/)s(\d+)/(\d+)\.pgm$")
PGM_HEADER = re.compile(rb"P5\s+(?:#[^\n]*\n\s*)*(\d+)\s+(\d+)\s+(\d+)\s")


def parse_table(
    paths: Sequence[Path],
    *,
    codes: Sequence[str],
    delimiter: str | None = ",",
    label: int = -1,
    skip: Sequence[int] = (),
    dtype: DTypeLike = np.float64,
) -> Arrays:
    """Parse text with one sample per line and ``?`` for missing values; several files are concatenated.

    ``codes`` are the raw labels in the order of the classes, ``label`` is their column, the columns in ``skip`` are
    left out, and ``delimiter=None`` means white space.
    """
    lines = [line for path in paths for line in path.read_text(encoding="latin-1").splitlines() if line.strip()]
    fields = np.array([[field.strip() for field in line.split(delimiter)] for line in lines])
    class_numbers = {code: number for number, code in enumerate(codes)}
    y = np.array([choose(class_numbers, str(field), option="label") for field in fields[:, label]], dtype=np.int64)
    values = np.delete(fields, [label, *skip], axis=1)
    X = np.where(values == "?", "nan", values).astype(np.float64)
    return {"X": X.astype(dtype), "y": y}


def parse_zip_codes(paths: Sequence[Path]) -> Arrays:
    """Parse the USPS digits, ``zip.train.gz`` and ``zip.test.gz``; a line contains the digit and its 256 pixels."""
    parts = [np.loadtxt(path, dtype=np.float32, ndmin=2) for path in paths]
    digits = np.concatenate(parts)
    is_test = np.repeat([False, True], [len(part) for part in parts])
    return {"X": digits[:, 1:], "y": digits[:, 0].astype(np.int64), "is_test": is_test}


def parse_matlab(paths: Sequence[Path], *, dtype: DTypeLike) -> Arrays:
    """Parse a MATLAB 5 file with the samples in ``fea``, their classes from 1 in ``gnd`` and, if split, ``testIdx``.

    Rows are sorted by class, as in our archives; the order within a class is kept.
    """
    (path,) = paths
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the sparse type may change, and is converted below
        content = loadmat(path, variable_names=["fea", "gnd", "testIdx"])
    y = content["gnd"].ravel().astype(np.int64) - 1
    order = np.argsort(y, kind="stable")
    X = content["fea"]
    X = sp.csr_array(X) if sp.issparse(X) else X
    arrays = pack(X[order].astype(dtype)) | {"y": y[order]}
    if "testIdx" in content:
        is_test = np.isin(np.arange(1, len(y) + 1), content["testIdx"])
        arrays["is_test"] = is_test[order]
    return arrays


def parse_portraits(paths: Sequence[Path]) -> Arrays:
    """Parse a zip archive with the images ``s<person>/<image>.pgm``, both numbered from 1."""
    (path,) = paths
    with zipfile.ZipFile(path) as archive:
        matches = ((PORTRAIT.search(name), name) for name in archive.namelist())
        names = sorted((int(match[1]), int(match[2]), name) for match, name in matches if match)
        X = np.array([parse_pgm(archive.read(name)).ravel() for _, _, name in names])
    return {"X": X, "y": np.array([person - 1 for person, _, _ in names], dtype=np.int64)}


def parse_pgm(content: bytes) -> np.ndarray:
    r"""Return the pixels of a binary grey-scale image (PGM, magic number P5) with one byte per pixel.

    Examples
    --------
    >>> parse_pgm(b"P5\n3 2\n255\n" + bytes(range(6)))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """
    header = PGM_HEADER.match(content)
    if header is None or int(header[3]) > 255:
        raise FileFormatError("not a PGM image of type P5 with one byte per pixel", code="invalid_pgm")
    columns, rows = int(header[1]), int(header[2])
    return np.frombuffer(content, dtype=np.uint8, count=rows * columns, offset=header.end()).reshape(rows, columns)
