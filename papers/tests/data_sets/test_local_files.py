"""Tests of every real data set, if the files are available."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.io import savemat

from fiedler.datasets import load
from fiedler_papers.datasets import DATASETS, files, parse

FOLDER = os.environ.get("FIEDLER_DATA", "")

pytestmark = pytest.mark.skipif(not FOLDER, reason="FIEDLER_DATA is not set")

COUNTS = {
    "usps": [1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821],
    "coil20": [72] * 20,
    "orl": [10] * 40,
    "orl_112x92": [10] * 40,
    "yale": [11] * 15,
    "umist": [38, 35, 26, 24, 26, 23, 19, 22, 20, 32, 34, 34, 26, 30, 19, 26, 26, 33, 48, 34],
    "ecoli": [143, 77, 52, 35, 20, 5, 2, 2],
    "glass": [70, 76, 17, 13, 9, 29],
    "haberman": [225, 81],
    "libras": [24] * 15,
    "dermatology": [112, 61, 72, 49, 52, 20],
    "soybean_small": [10, 10, 10, 17],
    "vehicle": [212, 217, 218, 199],
    "zoo": [41, 20, 5, 13, 4, 8, 10],
}
FIRST_COUNTS = {  # sets with many classes
    "letter": [789, 766, 736, 805],
    "tdt2": [1844, 1828, 1222, 811, 441, 407, 272, 238, 226, 167, 160, 145, 141, 140, 131, 123, 123, 120, 104, 98],
    "reuters21578": [3713, 2055, 321, 298, 245, 197, 142, 114, 110, 90, 87, 63, 60, 53, 45, 45, 44, 42, 38, 38],
}


def stored(name):
    return files.read(Path(FOLDER) / f"{name}.npz")


def test_counts_cover_every_set_in_a_file():
    assert DATASETS.keys() == {*COUNTS, *FIRST_COUNTS}


@pytest.mark.parametrize("name", DATASETS)
def test_local_file_matches_the_registry(name):
    row, bunch = DATASETS[name], load(name, download=False)

    assert files.fingerprint(bunch.X, bunch.y) == row.fingerprint
    assert bunch.X.shape == row.shape
    assert len(bunch.target_names) == row.n_classes
    counts = np.bincount(bunch.y)
    assert len(counts) == row.n_classes
    expected = COUNTS.get(name, FIRST_COUNTS.get(name))
    assert_array_equal(counts[: len(expected)], expected)
    if row.target_names:
        assert_array_equal(bunch.target_names, row.target_names)
    if row.feature_names:
        assert_array_equal(bunch.feature_names, row.feature_names)


@pytest.mark.parametrize(
    ("name", "subset", "n_samples", "n_classes"),
    [
        ("usps", "test", 2007, 10),
        ("usps", "train", 7291, 10),
        ("tdt2", "top30", 9394, 30),
        ("reuters21578", "top30", 8067, 30),
        ("reuters21578", "test", 2347, None),
        ("letter", "ABCD", 3096, 4),
        ("umist", "unique", 565, 20),
        ("dermatology", "complete", 358, 6),
    ],
)
def test_subset_has_the_published_size(name, subset, n_samples, n_classes):
    bunch = load(name, subset=subset)

    assert bunch.X.shape == (n_samples, DATASETS[name].shape[1])
    assert_array_equal(np.unique(bunch.y), np.arange(len(bunch.target_names)))
    assert n_classes in (None, len(bunch.target_names))


def test_other_arrays_are_subset_like_the_rows():
    umist = load("umist", subset="unique", classes=2)

    assert umist.X_28x23.shape == (len(umist.y), 28 * 23)
    assert not umist.is_duplicate.any()


def write_table(arrays, folder, *, codes, delimiter=",", label=-1, skip=(), dtype=np.float64):
    """Write the raw text of a data set: sample names in the columns to skip, ``?`` for NaN."""
    lines = []
    for number, (x, y) in enumerate(zip(arrays["X"], arrays["y"])):
        fields = ["?" if np.isnan(value) else str(value) for value in x]
        fields = [*fields, codes[y]] if label == -1 else [codes[y], *fields]
        lines.append((delimiter or "  ").join([*(f"sample{number}" for _ in skip), *fields]))
    (folder / "raw.data").write_text("\n".join(lines) + "\n")
    return [folder / "raw.data"]


def write_matlab(arrays, folder, *, dtype):
    X = files.matrix(arrays)
    split = {"testIdx": np.flatnonzero(arrays["is_test"])[:, None] + 1} if "is_test" in arrays else {}
    fea = sp.csc_matrix(X.astype(np.float64)) if sp.issparse(X) else X
    savemat(folder / "raw.mat", {"fea": fea, "gnd": arrays["y"][:, None] + 1.0, **split})
    return [folder / "raw.mat"]


def write_portraits(arrays, folder):
    with zipfile.ZipFile(folder / "raw.zip", "w") as faces:
        for number, (x, y) in enumerate(zip(arrays["X"], arrays["y"])):
            faces.writestr(f"s{y + 1}/{number % 10 + 1}.pgm", b"P5\n92 112\n255\n" + x.tobytes())
    return [folder / "raw.zip"]


WRITERS = {parse.parse_table: write_table, parse.parse_matlab: write_matlab, parse.parse_portraits: write_portraits}


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in ("usps", "umist")])
def test_raw_files_are_converted_to_the_archive(name, tmp_path):
    row, arrays = DATASETS[name], stored(name)
    parser = getattr(row.remote.parse, "func", row.remote.parse)
    options = getattr(row.remote.parse, "keywords", {})
    paths = WRITERS[parser](arrays, tmp_path, **options)

    converted = files.convert(row, row.remote, paths, tmp_path)

    assert converted.keys() == arrays.keys()
    for key, array in arrays.items():
        assert_array_equal(converted[key], array)
        assert converted[key].dtype == array.dtype


def test_raw_digits_are_converted_to_rows_of_the_archive(tmp_path):
    arrays = stored("usps")
    is_test = arrays["is_test"]
    paths = [tmp_path / "zip.train.gz", tmp_path / "zip.test.gz"]
    rows = [np.flatnonzero(~is_test)[:50], np.flatnonzero(is_test)[:50]]
    for path, part in zip(paths, rows):
        lines = [f"{arrays['y'][i]:.4f} " + " ".join(f"{value:.4f}" for value in arrays["X"][i]) for i in part]
        path.write_bytes(gzip.compress("\n".join(lines).encode()))

    parsed = parse.parse_zip_codes(paths)

    for key in ("X", "y", "is_test"):
        assert_array_equal(parsed[key], arrays[key][np.concatenate(rows)])
        assert parsed[key].dtype == arrays[key].dtype
