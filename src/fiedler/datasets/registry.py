"""Registry of the data sets, one row each: content, source, and named subsets.

A row's ``fingerprint`` (see :func:`fiedler.datasets.archive.fingerprint`) identifies the content and not the container:
a source may repackage its files, but files with other values are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn import datasets as sklearn_datasets

from . import make, parse
from .archive import Arrays
from .names import CLASS_NAMES, FEATURE_NAMES

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
ESL = "https://hastie.su.domains/ElemStatLearn/datasets/"
CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/"
CAMBRIDGE = "https://www.cl.cam.ac.uk/Research/DTG/attarchive/pub/data/"

RowFilter = Callable[[Mapping[str, Any]], np.ndarray]


@dataclass(frozen=True)
class Remote:
    """Public source: the addresses of the raw files, and the parser for all of them."""

    urls: tuple[str, ...]
    parse: Callable[[Sequence[Path]], Arrays]


@dataclass(frozen=True)
class Image:
    """Layout of images: ``X[i].reshape(shape, order=order)`` is the upright image of sample i."""

    shape: tuple[int, int]
    order: Literal["C", "F"]


@dataclass(frozen=True)
class Dataset:
    """One data set: generated or bundled (``builtin``), downloadable (``remote``), or with neither a local file."""

    name: str
    description: str
    shape: tuple[int, int]
    n_classes: int
    fingerprint: str = ""
    builtin: Callable[[], Arrays] | None = None
    remote: Remote | None = None
    target_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    image: Image | None = None
    subsets: Mapping[str, RowFilter] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """Description, shape and number of classes in one line."""
        n_samples, n_features = self.shape
        return f"{self.description}: {n_samples} x {n_features}, {self.n_classes} classes"


# ------------------------------------------------------------------------------------------------------ kinds of rows


def _synthetic(
    name: str, description: str, shape: tuple[int, int], n_classes: int, maker: Callable[..., make.PointsAndLabels]
) -> Dataset:
    """Make a row for a synthetic set with the defaults of its generator and a fixed seed."""

    def build() -> Arrays:
        X, y = maker(random_state=0)
        return {"X": X, "y": y}

    return Dataset(name, description, shape, n_classes, builtin=build)


def _bundled(
    name: str,
    description: str,
    shape: tuple[int, int],
    n_classes: int,
    loader: Callable[[], Any],
    image: Image | None = None,
) -> Dataset:
    """Make a row for a set that comes with scikit-learn."""

    def build() -> Arrays:
        bunch = loader()
        names = {key: np.asarray(bunch[key]).astype(str) for key in ("target_names", "feature_names")}
        return {"X": bunch.data, "y": bunch.target.astype(np.int64), **names}

    return Dataset(name, description, shape, n_classes, builtin=build, image=image)


def _stored(
    name: str,
    description: str,
    shape: tuple[int, int],
    n_classes: int,
    remote: Remote | None,
    *,
    image: Image | None = None,
    subsets: Mapping[str, RowFilter] | None = None,
) -> Dataset:
    """Make a row for a set in a file; its fingerprint and the names of its classes and features are looked up."""
    return Dataset(
        name,
        description,
        shape,
        n_classes,
        FINGERPRINTS[name],
        remote=remote,
        target_names=CLASS_NAMES.get(name, ()),
        feature_names=FEATURE_NAMES.get(name, ()),
        image=image,
        subsets=subsets or {},
    )


def _uci(*files: str, **layout: Any) -> Remote:
    return Remote(tuple(UCI + file for file in files), partial(parse.parse_table, **layout))


def _cai(file: str, dtype: str) -> Remote:
    return Remote((CAI + file,), partial(parse.parse_matlab, dtype=dtype))


def _numbered(n_classes: int) -> tuple[str, ...]:
    """Return the labels "1", "2", ..."""
    return tuple(str(number) for number in range(1, n_classes + 1))


# ------------------------------------------------------------------------------------------------------------- subsets


def _first_classes(n_classes: int) -> RowFilter:
    return lambda fields: fields["y"] < n_classes


def _flagged(flag: str) -> RowFilter:
    return lambda fields: fields[flag] != 0


def _not_flagged(flag: str) -> RowFilter:
    return lambda fields: fields[flag] == 0


def _without_missing(fields: Mapping[str, Any]) -> np.ndarray:
    return ~np.isnan(fields["X"]).any(axis=1)


SPLIT: Mapping[str, RowFilter] = {"train": _not_flagged("is_test"), "test": _flagged("is_test")}

# ---------------------------------------------------------------------------------------------------------------- rows

FINGERPRINTS = {  # SHA-256 of the content, see archive.fingerprint
    "usps": "a6fa6957a646beec129d3758cc8c3576c6b48e6372a87dedecf7dfe2922d1082",
    "coil20": "878a8944b424ae8ed9671be21ada3c87b7be852081e049ac0418258d6cb79c6b",
    "orl": "b5cf6561004ef270aceca7254240cf1fb5c2ea13500a248a4208576d97d05efb",
    "orl_112x92": "a94b55bf0b7edfd93df39bfe91a83cdd90e0baf9d59cd85b883028e464ece42a",
    "yale": "9de7f935c6197a1abe55d0985fcaee34f7980a3548c11752bb2135acab67299f",
    "umist": "68790fcdfda1240d59f6c125d9e14b4648cd70823d7fa5d7e34173299a7a2fce",
    "tdt2": "3bfb3f191c71d751679f44b68e7455255bb841b121d2da76ca2fce8a635e212e",
    "reuters21578": "d9551ecfe440dce617fc73b074548805795a22dc25c18c44d09897eea60e6b34",
    "ecoli": "61edadc38dd42cd2b3c5698387249ecbec7c3da0a5ec9d4eb025d31b8d6d668f",
    "glass": "ef8f41194398dd1f7cacaec4436cf5c7491a1866b0b8eaf5920890bf3efab98d",
    "haberman": "dce40aae78c4350c77b856b7ea1c4904bddf71f5ef0578992c77f026f848618d",
    "libras": "7502b655ac4aef5d8da493cc87a9d89cde3e10c5dc8bda49b10d7b8b4a7a3bb1",
    "letter": "6d67e61289d6984026fc8855a888889664cb0823d57d963ff8a91039058716e2",
    "dermatology": "fffc3baa283a12b2c6113d837f80101dba2649001fcb03abc40b83c3128deef0",
    "soybean_small": "e0a54e00418d4179130483fcdc3db53094af82fbbc3e366a6942f71ff088872c",
    "vehicle": "79484ea4a1f920f9eafb648d0b0aff12142d156ada3c5bbe8cff533e4f660361",
    "zoo": "e49b9d8135caddfdc6c41a6bde87f826eb0276f5be3fe40e4dbec2ea5b9538d1",
}

SQUARE_32 = Image((32, 32), "F")  # images of 32 x 32 pixels, column by column
VEHICLE_FILES = [f"statlog/vehicle/xa{part}.dat" for part in "abcdefghi"]

ROWS = (
    _synthetic("two_moons", "two interleaved half circles", (500, 2), 2, make.two_moons),
    _synthetic("circles", "two concentric circles", (500, 2), 2, make.circles),
    _synthetic("swiss_roll", "a rolled-up sheet, cut into segments", (1000, 3), 4, make.swiss_roll),
    _synthetic("blobs", "round Gaussian clusters in the plane", (500, 2), 3, make.blobs),
    _bundled("iris", "flowers of three iris species", (150, 4), 3, sklearn_datasets.load_iris),
    _bundled("wine", "chemical analysis of three wines", (178, 13), 3, sklearn_datasets.load_wine),
    _bundled(
        "breast_cancer",
        "cell nuclei of breast tumours, malignant or benign",
        (569, 30), 2,
        sklearn_datasets.load_breast_cancer,
    ),
    _bundled(
        "digits",
        "handwritten digits of 8 x 8 pixels, 0 to 16",
        (1797, 64), 10,
        sklearn_datasets.load_digits,
        Image((8, 8), "C"),
    ),
    _stored(
        "usps",
        "USPS handwritten digits of 16 x 16 pixels, -1 to 1",
        (9298, 256), 10,
        Remote((ESL + "zip.train.gz", ESL + "zip.test.gz"), parse.parse_zip_codes),
        image=Image((16, 16), "C"),
        subsets=SPLIT,
    ),
    _stored(
        "coil20",
        "COIL-20, objects on a turntable in 32 x 32 pixels, 0 to 1",
        (1440, 1024), 20,
        _cai("COIL20/COIL20.mat", "float64"),
        image=SQUARE_32,
    ),
    _stored(
        "orl",
        "ORL (AT&T) faces, cropped and aligned in 32 x 32 pixels",
        (400, 1024), 40,
        _cai("ORL/ORL_32x32.mat", "uint8"),
        image=SQUARE_32,
    ),
    _stored(
        "orl_112x92",
        "ORL (AT&T) faces, the original 112 x 92 pixels",
        (400, 10304), 40,
        Remote((CAMBRIDGE + "att_faces.zip",), parse.parse_portraits),
        image=Image((112, 92), "C"),
    ),
    _stored(
        "yale",
        "Yale faces in 32 x 32 pixels",
        (165, 1024), 15,
        _cai("Yale/Yale_32x32.mat", "uint8"),
        image=SQUARE_32,
    ),
    _stored(
        "umist",
        "UMIST (Sheffield) faces from profile to front, in 32 x 32 pixels",
        (575, 1024), 20,
        None,  # no public source of this version
        image=SQUARE_32,
        subsets={"unique": _not_flagged("is_duplicate")},
    ),
    _stored(
        "tdt2",
        "TDT2 news stories, term counts, classes in descending order of size",
        (10212, 36771), 96,
        _cai("TDT2/TDT2_all.mat", "uint8"),
        subsets={"top30": _first_classes(30)},
    ),
    _stored(
        "reuters21578",
        "Reuters-21578 news stories with one topic, term counts, classes in descending order of size",
        (8293, 18933), 65,
        _cai("Reuters21578/Reuters21578.mat", "uint8"),
        subsets={"top30": _first_classes(30), **SPLIT},
    ),
    _stored(
        "ecoli",
        "protein localisation sites in E. coli",
        (336, 7), 8,
        _uci("ecoli/ecoli.data", codes=CLASS_NAMES["ecoli"], delimiter=None, skip=(0,)),
    ),
    _stored(
        "glass",
        "types of glass by refractive index and composition",
        (214, 9), 6,
        _uci("glass/glass.data", codes=tuple("123567"), skip=(0,)),  # type 4 of UCI has no samples
    ),
    _stored(
        "haberman",
        "survival after breast cancer surgery",
        (306, 3), 2,
        _uci("haberman/haberman.data", codes=_numbered(2), dtype="uint8"),
    ),
    _stored(
        "libras",
        "hand movements of Brazilian sign language, 45 positions each",
        (360, 90), 15,
        _uci("libras/movement_libras.data", codes=_numbered(15)),
    ),
    _stored(
        "letter",
        "printed capital letters by sixteen measures of their shape",
        (20000, 16), 26,
        _uci("letter-recognition/letter-recognition.data", codes=CLASS_NAMES["letter"], label=0, dtype="uint8"),
        subsets={"ABCD": _first_classes(4)},
    ),
    _stored(
        "dermatology",
        "skin diseases by symptoms; the age is missing (NaN) in 8 rows",
        (366, 34), 6,
        _uci("dermatology/dermatology.data", codes=_numbered(6), dtype="float32"),
        subsets={"complete": _without_missing},
    ),
    _stored(
        "soybean_small",
        "soybean diseases by nominal codes",
        (47, 35), 4,
        _uci("soybean/soybean-small.data", codes=CLASS_NAMES["soybean_small"], dtype="uint8"),
    ),
    _stored(
        "vehicle",
        "silhouettes of four vehicles (Statlog)",
        (846, 18), 4,
        _uci(*VEHICLE_FILES, codes=CLASS_NAMES["vehicle"], delimiter=None, dtype="int16"),
    ),
    _stored(
        "zoo",
        "animals described by sixteen traits",
        (101, 16), 7,
        _uci("zoo/zoo.data", codes=_numbered(7), skip=(0,), dtype="uint8"),
    ),
)  # fmt: skip

DATASETS: dict[str, Dataset] = {row.name: row for row in ROWS}
