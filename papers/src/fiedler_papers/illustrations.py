"""The numbers behind the figures that show a single fit rather than an average."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD

from fiedler.core.backend import to_numpy
from fiedler.embedding.lpi import LPI
from fiedler.embedding.nle import NLE, Update, unit_columns
from fiedler.graph.cuts import cut_problem
from fiedler.graph.recipes import FullGraph, KNNGraph
from fiedler.metrics import clustering_accuracy
from fiedler.mixture.gaussian import GaussianMixture
from fiedler.mixture.lapgmm import LapGMM

from .protocol import Cell
from .rows import Rows
from .starts import NLE_MAX_ITER, graph_cut, lifted_indicators

SNAPSHOT_UPDATES = (1, 10, 50, 300)  # after which [nle, Fig. 2] shows Q
N_PEOPLE, IMAGES_PER_PERSON = 3, 10  # of [nle, Figs 2 and 3]


def two_moons(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return the toy data and the labels of GMM and LapGMM. [lapgmm, Fig. 1]"""
    models = {"GMM": GaussianMixture(2, random_state=0), "LapGMM": LapGMM(2, random_state=0)}
    clusters = {name: to_numpy(model.fit(rows.X).labels_) for name, model in models.items()}
    return {"X": rows.X, "truth": rows.y, **clusters}


def text_embeddings(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return two dimensions of LSI and of LPI. [lpi, Fig. 1]"""
    models = {
        "LSI": TruncatedSVD(2, random_state=0),
        "LPI": LPI(2, KNNGraph(15, weight="dot"), random_state=0),
    }
    return {"truth": rows.y} | {name: model.fit_transform(rows.X) for name, model in models.items()}


def _faces(rows: Rows) -> np.ndarray:
    """Return ten images each of three people, then one image each of ten others, centred."""
    people = [np.flatnonzero(rows.y == person)[:IMAGES_PER_PERSON] for person in range(N_PEOPLE)]
    outliers = [np.flatnonzero(rows.y == N_PEOPLE + i)[i] for i in range(IMAGES_PER_PERSON)]
    faces = rows.X[np.concatenate([*people, outliers])]
    return faces - faces.mean(axis=0)


def nle_evolution(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return Q of thirty faces after some updates from a random start, and the objective after each. [nle, Fig. 2]

    Similarities are cosines of centred images: inner products of pixels are nearly equal for all pairs.
    """
    X = _faces(rows)[: N_PEOPLE * IMAGES_PER_PERSON]
    update = Update(cut_problem(FullGraph("cosine", signed=True).build(X), "ratio", "shift"), np.random.RandomState(0))
    Q = unit_columns(np.random.RandomState(1).uniform(size=(len(X), N_PEOPLE)))
    snapshots, objective = {}, []
    for step in range(1, max(SNAPSHOT_UPDATES) + 1):
        Q, value = update.step(Q)
        objective.append(value)
        if step in SNAPSHOT_UPDATES:
            snapshots[str(step)] = Q
    return {"Q": snapshots, "objective": objective, "truth": np.repeat(np.arange(N_PEOPLE), IMAGES_PER_PERSON)}


def nle_outliers(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return memberships of thirty faces of three people and ten outliers, faces of other people. [nle, Fig. 3]"""
    model = NLE(N_PEOPLE, FullGraph("cosine", signed=True), signed="shift", init="auto", random_state=0)
    return {"memberships": model.fit(_faces(rows)).memberships_}


def nle_progress(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return objective and accuracy after each update of a run from spectral clustering. [nle, Figs 4 and 5]"""
    cut, _ = graph_cut(cell, rows)
    Q = lifted_indicators(cut, cell.draw)
    objective, accuracy = [], []
    for _ in range(NLE_MAX_ITER):
        Q, value = cut.update.step(Q)
        objective.append(value)
        accuracy.append(clustering_accuracy(rows.y, Q.argmax(axis=1)))
    return {"objective": objective, "accuracy": accuracy}


# By the names that protocols use; these are part of the digests of the records.
ILLUSTRATIONS = {
    "two_moons": two_moons,
    "text_embeddings": text_embeddings,
    "nle_evolution": nle_evolution,
    "nle_strangers": nle_outliers,
    "nle_progress": nle_progress,
}
