from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.io import savemat

from fiedler.errors import FileFormatError
from fiedler_papers.datasets import DATASETS, files, parse


def parse_text(name, tmp_path, *texts):
    """Parse raw files with these texts by the parser of the registry."""
    remote = DATASETS[name].remote
    paths = [tmp_path / f"part{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_text(text)
    return remote.parse(paths)


RAW = {
    "ecoli": (
        "AAT_ECOLI   0.49  0.29  0.48  0.50  0.56  0.24  0.35   cp\n"
        "ACEA_ECOLI  0.07  0.40  0.48  0.50  0.54  0.35  0.44   imS\n",
        [[0.49, 0.29, 0.48, 0.5, 0.56, 0.24, 0.35], [0.07, 0.4, 0.48, 0.5, 0.54, 0.35, 0.44]],
        [0, 7],
    ),
    "glass": (
        "1,1.52101,13.64,4.49,1.10,71.78,0.06,8.75,0.00,0.00,1\n214,1.51711,14.23,0.00,2.08,73.36,0.00,8.62,1.67,0.00,7\n",
        [[1.52101, 13.64, 4.49, 1.1, 71.78, 0.06, 8.75, 0, 0], [1.51711, 14.23, 0, 2.08, 73.36, 0, 8.62, 1.67, 0]],
        [0, 5],
    ),
    "haberman": ("30,64,1,1\n34,59,0,2\n", [[30, 64, 1], [34, 59, 0]], [0, 1]),
    "letter": (
        "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\nA,1,1,3,2,1,8,2,2,2,8,2,8,1,6,2,7\n",
        [[2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8], [1, 1, 3, 2, 1, 8, 2, 2, 2, 8, 2, 8, 1, 6, 2, 7]],
        [19, 0],
    ),
    "dermatology": (
        ",".join(["2"] * 33 + ["55", "2"]) + "\n" + ",".join(["0"] * 33 + ["?", "6"]) + "\n",
        [[2] * 33 + [55], [0] * 33 + [np.nan]],
        [1, 5],
    ),
    "zoo": (
        "aardvark,1,0,0,1,0,0,1,1,1,1,0,0,4,0,0,1,1\nwren,0,1,1,0,1,0,0,0,1,1,0,0,2,1,0,0,2\n",
        [[1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 4, 0, 0, 1], [0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 2, 1, 0, 0]],
        [0, 1],
    ),
    "soybean_small": (
        ",".join(["4"] * 35 + ["D1"]) + "\n" + ",".join(["0"] * 35 + ["D4"]) + "\n",
        [[4] * 35, [0] * 35],
        [0, 3],
    ),
    "libras": (",".join(["0.5"] * 90 + ["15"]) + "\n", [[0.5] * 90], [14]),
}


@pytest.mark.parametrize("name", RAW)
def test_raw_text_is_parsed_to_values_and_class_numbers(name, tmp_path):
    text, X, y = RAW[name]

    arrays = parse_text(name, tmp_path, text)

    assert_array_equal(arrays["X"], np.array(X).astype(arrays["X"].dtype))
    assert_array_equal(arrays["y"], y)
    assert arrays["X"].shape[1] == DATASETS[name].shape[1] == len(DATASETS[name].feature_names)


def test_several_files_are_concatenated(tmp_path):
    first = "95 48 83 178 72 10 162 42 20 159 176 379 184 70 6 16 187 197 van \n"
    second = "\n104 50 106 209 66 10 207 32 23 158 223 635 220 73 14 9 188 196 saab \n"

    arrays = parse_text("vehicle", tmp_path, first, second)

    assert_array_equal(arrays["X"][:, 0], [95, 104])
    assert_array_equal(arrays["y"], [3, 1])
    assert arrays["X"].dtype == np.int16


def test_unknown_label_raises(tmp_path):
    with pytest.raises(ValueError, match="label='3' is not known; choose one of"):
        parse_text("haberman", tmp_path, "30,64,1,3\n")


def test_zip_codes_combine_train_and_test(tmp_path):
    train, test = tmp_path / "zip.train.gz", tmp_path / "zip.test.gz"
    train.write_bytes(gzip.compress(b"6.0000 -1.0000 -0.6310 0.8620 \n5.0000 1.0000 0.3040 -1.0000 \n"))
    test.write_bytes(gzip.compress(b"9 -1 -0.5 1\n"))

    arrays = parse.parse_zip_codes([train, test])

    assert_array_equal(arrays["X"], np.float32([[-1, -0.631, 0.862], [1, 0.304, -1], [-1, -0.5, 1]]))
    assert_array_equal(arrays["y"], [6, 5, 9])
    assert_array_equal(arrays["is_test"], [False, False, True])


@pytest.mark.parametrize("container", [np.asarray, sp.csc_matrix], ids=["dense", "sparse"])
def test_matlab_rows_are_sorted_by_class(container, tmp_path):
    fea = np.array([[0.0, 3.0], [1.0, 0.0], [2.0, 2.0], [0.0, 5.0]])
    savemat(tmp_path / "a.mat", {"fea": container(fea), "gnd": [[2], [1], [2], [1]], "testIdx": [[1], [4]]})

    arrays = parse.parse_matlab([tmp_path / "a.mat"], dtype="uint8")

    X = files.matrix(arrays)
    assert X.dtype == np.uint8
    assert_array_equal(X.toarray() if sp.issparse(X) else X, fea[[1, 3, 0, 2]])
    assert_array_equal(arrays["y"], [0, 0, 1, 1])
    assert_array_equal(arrays["is_test"], [False, True, True, False])


def test_matlab_without_a_split_has_no_is_test(tmp_path):
    savemat(tmp_path / "a.mat", {"fea": np.eye(2), "gnd": [[1], [2]]})

    assert parse.parse_matlab([tmp_path / "a.mat"], dtype="float64").keys() == {"X", "y"}


def test_portraits_are_sorted_by_the_numbers_of_person_and_image(tmp_path):
    with zipfile.ZipFile(tmp_path / "faces.zip", "w") as faces:
        faces.writestr("README", "faces")
        for person, image in [(10, 1), (2, 10), (2, 9), (1, 1)]:
            faces.writestr(f"att_faces/s{person}/{image}.pgm", b"P5\n2 1\n255\n" + bytes([person, image]))

    arrays = parse.parse_portraits([tmp_path / "faces.zip"])

    assert_array_equal(arrays["X"], [[1, 1], [2, 9], [2, 10], [10, 1]])
    assert_array_equal(arrays["y"], [0, 1, 1, 9])


def test_pgm_skips_comments_and_keeps_pixels_equal_to_white_space():
    assert_array_equal(parse.parse_pgm(b"P5 # a comment\n# twice\n2 2 255\n\n\x00\x20\xff"), [[10, 0], [32, 255]])


@pytest.mark.parametrize("content", [b"P2\n1 1\n255\n7\n", b"P5\n1 1\n65535\n\x00\x07", b"GIF89a"])
def test_other_images_raise(content):
    with pytest.raises(FileFormatError, match="not a PGM image of type P5"):
        parse.parse_pgm(content)
