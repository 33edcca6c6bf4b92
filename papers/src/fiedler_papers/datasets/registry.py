"""Registry of the papers' data sets, one row each: content, source, named subsets, and names of classes and features.

A row's ``fingerprint`` (see :func:`fiedler_papers.datasets.files.fingerprint`) identifies the content and not the
container: a source may repackage its files, but files with other values are rejected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fiedler.datasets.loading import Dataset, Fields, Image, RowFilter

from . import files, parse
from .files import Arrays

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
ESL = "https://hastie.su.domains/ElemStatLearn/datasets/"
CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/"
CAMBRIDGE = "https://www.cl.cam.ac.uk/Research/DTG/attarchive/pub/data/"


@dataclass(frozen=True)
class Remote:
    """Public source: the addresses of the raw files, and the parser for all of them."""

    urls: tuple[str, ...]
    parse: Callable[[Sequence[Path]], Arrays]


@dataclass(frozen=True)
class StoredDataset(Dataset):
    """A data set in a file, which is downloaded if there is a public source."""

    fingerprint: str = ""
    remote: Remote | None = None
    target_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    def is_local(self, cache: str | os.PathLike[str] | None) -> bool:
        """Return whether there is a file in the data folder or the cache."""
        return files.find_file(self.name, cache) is not None

    def read(self, *, download: bool, cache: str | os.PathLike[str] | None, verbose: bool) -> Fields:
        """Return the arrays of the local file, or of a download."""
        arrays = files.read_or_download(self, download=download, cache=cache, verbose=verbose)
        extras = {key: value for key, value in arrays.items() if key not in files.CSR_PARTS}
        return extras | {"X": files.matrix(arrays)}


def _stored(
    name: str,
    description: str,
    shape: tuple[int, int],
    n_classes: int,
    remote: Remote | None,
    *,
    image: Image | None = None,
    subsets: Mapping[str, RowFilter] | None = None,
) -> StoredDataset:
    """Make a row; its fingerprint and the names of its classes and features are looked up."""
    return StoredDataset(
        name,
        description,
        shape,
        n_classes,
        image=image,
        subsets=subsets or {},
        fingerprint=FINGERPRINTS[name],
        remote=remote,
        target_names=CLASS_NAMES.get(name, ()),
        feature_names=FEATURE_NAMES.get(name, ()),
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

# --------------------------------------------------------------------------------------------------------------- names
# Names of classes, in the order of their numbers, and of features, in the order of the columns, for data sets whose raw
# files lack them.


def _split(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(separator))


CLASS_NAMES = {
    "ecoli": _split("cp im pp imU om omL imL imS"),
    "glass": _split(
        "building_windows_float building_windows_non_float vehicle_windows_float containers tableware headlamps"
    ),
    "haberman": _split("survived_5y_or_more died_within_5y"),
    "libras": _split(
        """curved swing, horizontal swing, vertical swing, anti-clockwise arc, clockwise arc, circle,
        horizontal straight-line, vertical straight-line, horizontal zigzag, vertical zigzag, horizontal wavy,
        vertical wavy, face-up curve, face-down curve, tremble""",
        ",",
    ),
    "letter": tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "dermatology": _split(
        """psoriasis, seborrheic dermatitis, lichen planus, pityriasis rosea, chronic dermatitis,
        pityriasis rubra pilaris""",
        ",",
    ),
    "soybean_small": _split("D1 D2 D3 D4"),
    "vehicle": _split("opel saab bus van"),
    "zoo": _split("mammal bird reptile fish amphibian insect invertebrate"),
    "usps": tuple("0123456789"),
    "coil20": tuple(f"obj{number}" for number in range(1, 21)),
    # Not part of the file: inferred from the train and test counts of the collection's topics, which leaves sixteen of
    # the small classes undetermined between topics of equal counts.
    "reuters21578": _split(
        """earn, acq, crude, trade, money-fx, interest, ship, sugar, coffee, gold, money-supply, gnp, cpi, cocoa, alum,
        grain, copper, jobs, reserves, rubber, iron-steel, ipi, nat-gas, veg-oil, tin, cotton, bop, wpi, pet-chem,
        livestock, gas, orange, retail, strategic-metal, housing, zinc, lumber, fuel, carcass, heat, lei, oilseed, lead,
        meal-feed, yen, one of potato/tea, one of potato/tea, income, one of instal-debt/nickel, silver,
        one of instal-debt/nickel, one of dlr/platinum, one of dlr/platinum, jet, one of cpu/inventories, groundnut,
        one of cpu/inventories, one of l-cattle/rand/wool, one of coconut/hog/naphtha/propane/rice,
        one of l-cattle/rand/wool, one of coconut/hog/naphtha/propane/rice, one of l-cattle/rand/wool,
        one of coconut/hog/naphtha/propane/rice, one of coconut/hog/naphtha/propane/rice,
        one of coconut/hog/naphtha/propane/rice""",
        ",",
    ),
}

FEATURE_NAMES = {
    "ecoli": _split("mcg gvh lip chg aac alm1 alm2"),
    "glass": _split("RI Na Mg Al Si K Ca Ba Fe"),
    "haberman": _split("age year_of_operation positive_nodes"),
    "libras": tuple(f"{axis}{frame}" for frame in range(1, 46) for axis in "xy"),
    "letter": _split("x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"),
    "dermatology": _split(
        """erythema scaling definite_borders itching koebner_phenomenon polygonal_papules follicular_papules
        oral_mucosal_involvement knee_and_elbow_involvement scalp_involvement family_history melanin_incontinence
        eosinophils_in_the_infiltrate PNL_infiltrate fibrosis_of_the_papillary_dermis exocytosis acanthosis
        hyperkeratosis parakeratosis clubbing_of_the_rete_ridges elongation_of_the_rete_ridges
        thinning_of_the_suprapapillary_epidermis
        spongiform_pustule munro_microabcess focal_hypergranulosis disappearance_of_the_granular_layer
        vacuolisation_and_damage_of_basal_layer spongiosis saw-tooth_appearance_of_retes follicular_horn_plug
        perifollicular_parakeratosis inflammatory_monoluclear_inflitrate band-like_infiltrate Age"""
    ),
    "soybean_small": _split(
        """date plant-stand precip temp hail crop-hist area-damaged severity seed-tmt germination plant-growth leaves
        leafspots-halo leafspots-marg leafspot-size leaf-shread leaf-malf leaf-mild stem lodging stem-cankers
        canker-lesion fruiting-bodies external-decay mycelium int-discolor sclerotia fruit-pods fruit-spots seed
        mold-growth seed-discolor seed-size shriveling roots"""
    ),
    "vehicle": _split(
        """COMPACTNESS, CIRCULARITY, DISTANCE CIRCULARITY, RADIUS RATIO, PR.AXIS ASPECT RATIO, MAX.LENGTH ASPECT RATIO,
        SCATTER RATIO, ELONGATEDNESS, PR.AXIS RECTANGULARITY, MAX.LENGTH RECTANGULARITY, SCALED VARIANCE_MAJOR,
        SCALED VARIANCE_MINOR, SCALED RADIUS OF GYRATION, SKEWNESS ABOUT_MAJOR, SKEWNESS ABOUT_MINOR,
        KURTOSIS ABOUT_MAJOR, KURTOSIS ABOUT_MINOR, HOLLOWS RATIO""",
        ",",
    ),
    "zoo": _split(
        """hair feathers eggs milk airborne aquatic predator toothed backbone breathes venomous fins legs tail domestic
        catsize"""
    ),
}

# ---------------------------------------------------------------------------------------------------------------- rows

FINGERPRINTS = {  # SHA-256 of the content, see files.fingerprint
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

DATASETS: dict[str, StoredDataset] = {row.name: row for row in ROWS}
