"""The data sets, one row each: what they hold, where they come from, and which parts of them have a name.

A row's ``fingerprint`` (see :func:`fiedler.datasets.archive.fingerprint`) identifies the content, not the container: a
public home may repack its files as it likes, but other numbers are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets

from . import make, names, parse
from .archive import Arrays

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
ESL = "https://hastie.su.domains/ElemStatLearn/datasets/"
CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/"
CAMBRIDGE = "https://www.cl.cam.ac.uk/Research/DTG/attarchive/pub/data/"

RowFilter = Callable[[Mapping[str, Any]], np.ndarray]


@dataclass(frozen=True)
class Remote:
    """A public home: the addresses of the raw files, and the parser that takes them all."""

    urls: tuple[str, ...]
    parse: Callable[[Sequence[Path]], Arrays]


@dataclass(frozen=True)
class Image:
    """``X[i].reshape(shape, order=order)`` is the picture of sample i, upright."""

    shape: tuple[int, int]
    order: str


@dataclass(frozen=True)
class Dataset:
    """One data set; made on the spot by ``builtin``, fetched from ``remote``, or, with neither, only ever found."""

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
        """The set in one line."""
        n_samples, n_features = self.shape
        return f"{self.description}: {n_samples} x {n_features}, {self.n_classes} classes"


def _first_classes(n_classes: int) -> RowFilter:
    return lambda fields: fields["y"] < n_classes


def _flagged(flag: str) -> RowFilter:
    return lambda fields: fields[flag] != 0


def _not_flagged(flag: str) -> RowFilter:
    return lambda fields: fields[flag] == 0


def _without_missing(fields: Mapping[str, Any]) -> np.ndarray:
    return ~np.isnan(fields["X"]).any(axis=1)


def _made(maker: Callable[..., make.Labelled]) -> Callable[[], Arrays]:
    """A synthetic set with the maker's own defaults and a fixed seed."""

    def build() -> Arrays:
        X, y = maker(random_state=0)
        return {"X": X, "y": y}

    return build


def _bundled(loader: Callable[[], Any]) -> Callable[[], Arrays]:
    """A set that comes with scikit-learn."""

    def build() -> Arrays:
        bunch = loader()
        named = {key: np.asarray(bunch[key]).astype(str) for key in ("target_names", "feature_names")}
        return {"X": bunch.data, "y": bunch.target.astype(np.int64), **named}

    return build


def _uci(*files: str, **layout: Any) -> Remote:
    return Remote(tuple(UCI + file for file in files), partial(parse.table, **layout))


def _cai(file: str, dtype: str) -> Remote:
    return Remote((CAI + file,), partial(parse.matlab, dtype=dtype))


def _numbered(n_classes: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, n_classes + 1))


SPLIT: Mapping[str, RowFilter] = {"train": _not_flagged("is_test"), "test": _flagged("is_test")}

ROWS = (
    Dataset("two_moons", "two interleaved half circles", (500, 2), 2, builtin=_made(make.two_moons)),
    Dataset("circles", "a circle inside another", (500, 2), 2, builtin=_made(make.circles)),
    Dataset("swiss_roll", "a rolled-up sheet, cut into segments", (1000, 3), 4, builtin=_made(make.swiss_roll)),
    Dataset("blobs", "round Gaussian clusters in the plane", (500, 2), 3, builtin=_made(make.blobs)),
    Dataset("iris", "flowers of three iris species", (150, 4), 3, builtin=_bundled(sklearn_datasets.load_iris)),
    Dataset("wine", "chemical analysis of three wines", (178, 13), 3, builtin=_bundled(sklearn_datasets.load_wine)),
    Dataset(
        "breast_cancer",
        "cell nuclei of breast tumours, malignant or benign",
        (569, 30),
        2,
        builtin=_bundled(sklearn_datasets.load_breast_cancer),
    ),
    Dataset(
        "digits",
        "handwritten digits of 8 x 8 pixels, 0 to 16",
        (1797, 64),
        10,
        builtin=_bundled(sklearn_datasets.load_digits),
        image=Image((8, 8), "C"),
    ),
    Dataset(
        "usps",
        "USPS handwritten digits of 16 x 16 pixels, -1 to 1",
        (9298, 256),
        10,
        fingerprint="a6fa6957a646beec129d3758cc8c3576c6b48e6372a87dedecf7dfe2922d1082",
        remote=Remote((ESL + "zip.train.gz", ESL + "zip.test.gz"), parse.zip_codes),
        target_names=names.USPS_CLASSES,
        image=Image((16, 16), "C"),
        subsets=SPLIT,
    ),
    Dataset(
        "coil20",
        "COIL-20, objects on a turntable in 32 x 32 pixels, 0 to 1",
        (1440, 1024),
        20,
        fingerprint="878a8944b424ae8ed9671be21ada3c87b7be852081e049ac0418258d6cb79c6b",
        remote=_cai("COIL20/COIL20.mat", "float64"),
        target_names=names.COIL20_CLASSES,
        image=Image((32, 32), "F"),
    ),
    Dataset(
        "orl",
        "ORL (AT&T) faces, cropped and aligned in 32 x 32 pixels",
        (400, 1024),
        40,
        fingerprint="b5cf6561004ef270aceca7254240cf1fb5c2ea13500a248a4208576d97d05efb",
        remote=_cai("ORL/ORL_32x32.mat", "uint8"),
        image=Image((32, 32), "F"),
    ),
    Dataset(
        "orl_112x92",
        "ORL (AT&T) faces, the original 112 x 92 pixels",
        (400, 10304),
        40,
        fingerprint="a94b55bf0b7edfd93df39bfe91a83cdd90e0baf9d59cd85b883028e464ece42a",
        remote=Remote((CAMBRIDGE + "att_faces.zip",), parse.portraits),
        image=Image((112, 92), "C"),
    ),
    Dataset(
        "yale",
        "Yale faces in 32 x 32 pixels",
        (165, 1024),
        15,
        fingerprint="9de7f935c6197a1abe55d0985fcaee34f7980a3548c11752bb2135acab67299f",
        remote=_cai("Yale/Yale_32x32.mat", "uint8"),
        image=Image((32, 32), "F"),
    ),
    Dataset(
        "umist",
        "UMIST (Sheffield) faces from profile to front, in 32 x 32 pixels",
        (575, 1024),
        20,
        fingerprint="68790fcdfda1240d59f6c125d9e14b4648cd70823d7fa5d7e34173299a7a2fce",
        image=Image((32, 32), "F"),
        subsets={"unique": _not_flagged("is_duplicate")},
    ),
    Dataset(
        "tdt2",
        "TDT2 news stories, term counts, classes by falling size",
        (10212, 36771),
        96,
        fingerprint="3bfb3f191c71d751679f44b68e7455255bb841b121d2da76ca2fce8a635e212e",
        remote=_cai("TDT2/TDT2_all.mat", "uint8"),
        subsets={"top30": _first_classes(30)},
    ),
    Dataset(
        "reuters21578",
        "Reuters-21578 news stories with one topic, term counts, classes by falling size",
        (8293, 18933),
        65,
        fingerprint="d9551ecfe440dce617fc73b074548805795a22dc25c18c44d09897eea60e6b34",
        remote=_cai("Reuters21578/Reuters21578.mat", "uint8"),
        target_names=names.REUTERS_CLASSES,
        subsets={"top30": _first_classes(30), **SPLIT},
    ),
    Dataset(
        "ecoli",
        "where proteins sit in E. coli cells",
        (336, 7),
        8,
        fingerprint="61edadc38dd42cd2b3c5698387249ecbec7c3da0a5ec9d4eb025d31b8d6d668f",
        remote=_uci("ecoli/ecoli.data", codes=names.ECOLI_CLASSES, delimiter=None, skip=(0,)),
        target_names=names.ECOLI_CLASSES,
        feature_names=names.ECOLI_FEATURES,
    ),
    Dataset(
        "glass",
        "kinds of glass by refraction and chemistry",
        (214, 9),
        6,
        fingerprint="ef8f41194398dd1f7cacaec4436cf5c7491a1866b0b8eaf5920890bf3efab98d",
        remote=_uci("glass/glass.data", codes=tuple("123567"), skip=(0,)),  # UCI's type 4 has no sample
        target_names=names.GLASS_CLASSES,
        feature_names=names.GLASS_FEATURES,
    ),
    Dataset(
        "haberman",
        "survival after breast cancer surgery",
        (306, 3),
        2,
        fingerprint="dce40aae78c4350c77b856b7ea1c4904bddf71f5ef0578992c77f026f848618d",
        remote=_uci("haberman/haberman.data", codes=_numbered(2), dtype="uint8"),
        target_names=names.HABERMAN_CLASSES,
        feature_names=names.HABERMAN_FEATURES,
    ),
    Dataset(
        "libras",
        "hand movements of Brazilian sign language, 45 positions each",
        (360, 90),
        15,
        fingerprint="7502b655ac4aef5d8da493cc87a9d89cde3e10c5dc8bda49b10d7b8b4a7a3bb1",
        remote=_uci("libras/movement_libras.data", codes=_numbered(15)),
        target_names=names.LIBRAS_CLASSES,
        feature_names=names.LIBRAS_FEATURES,
    ),
    Dataset(
        "letter",
        "printed capital letters by sixteen measures of their shape",
        (20000, 16),
        26,
        fingerprint="6d67e61289d6984026fc8855a888889664cb0823d57d963ff8a91039058716e2",
        remote=_uci("letter-recognition/letter-recognition.data", codes=names.LETTER_CLASSES, label=0, dtype="uint8"),
        target_names=names.LETTER_CLASSES,
        feature_names=names.LETTER_FEATURES,
        subsets={"ABCD": _first_classes(4)},
    ),
    Dataset(
        "dermatology",
        "skin diseases by symptoms; the age is missing (NaN) in 8 rows",
        (366, 34),
        6,
        fingerprint="fffc3baa283a12b2c6113d837f80101dba2649001fcb03abc40b83c3128deef0",
        remote=_uci("dermatology/dermatology.data", codes=_numbered(6), dtype="float32"),
        target_names=names.DERMATOLOGY_CLASSES,
        feature_names=names.DERMATOLOGY_FEATURES,
        subsets={"complete": _without_missing},
    ),
    Dataset(
        "soybean_small",
        "soybean diseases by nominal codes",
        (47, 35),
        4,
        fingerprint="e0a54e00418d4179130483fcdc3db53094af82fbbc3e366a6942f71ff088872c",
        remote=_uci("soybean/soybean-small.data", codes=names.SOYBEAN_CLASSES, dtype="uint8"),
        target_names=names.SOYBEAN_CLASSES,
        feature_names=names.SOYBEAN_FEATURES,
    ),
    Dataset(
        "vehicle",
        "silhouettes of four vehicles (Statlog)",
        (846, 18),
        4,
        fingerprint="79484ea4a1f920f9eafb648d0b0aff12142d156ada3c5bbe8cff533e4f660361",
        remote=_uci(
            *(f"statlog/vehicle/xa{part}.dat" for part in "abcdefghi"),
            codes=names.VEHICLE_CLASSES,
            delimiter=None,
            dtype="int16",
        ),
        target_names=names.VEHICLE_CLASSES,
        feature_names=names.VEHICLE_FEATURES,
    ),
    Dataset(
        "zoo",
        "animals by sixteen traits",
        (101, 16),
        7,
        fingerprint="e49b9d8135caddfdc6c41a6bde87f826eb0276f5be3fe40e4dbec2ea5b9538d1",
        remote=_uci("zoo/zoo.data", codes=_numbered(7), skip=(0,), dtype="uint8"),
        target_names=names.ZOO_CLASSES,
        feature_names=names.ZOO_FEATURES,
    ),
)

DATASETS: dict[str, Dataset] = {row.name: row for row in ROWS}
