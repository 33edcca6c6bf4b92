"""The numbers behind the figures that show one fit rather than an average: rows of `ILLUSTRATIONS`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD

from fiedler.core.backend import to_numpy
from fiedler.embedding.lpi import LPI
from fiedler.embedding.nle import LIFT, NLE, Update, unit_columns
from fiedler.graph.cuts import cut_problem
from fiedler.graph.recipes import FullGraph, KNNGraph
from fiedler.metrics import clustering_accuracy
from fiedler.mixture.gaussian import GaussianMixture
from fiedler.mixture.lapgmm import LapGMM

from .protocol import Cell
from .rows import Rows
from .starts import UPDATES, spectral, the_cut

SHOWN = (1, 10, 50, 300)  # updates of [nle, Fig. 2]
PEOPLE, IMAGES = 3, 10


def two_moons(cell: Cell, rows: Rows) -> dict[str, Any]:
    """The toy data, and the clusters of a plain and a Laplacian mixture. [lapgmm, Fig. 1]"""
    models = {"GMM": GaussianMixture(2, random_state=0), "LapGMM": LapGMM(2, random_state=0)}
    clusters = {name: to_numpy(model.fit(rows.X).labels_) for name, model in models.items()}
    return {"X": rows.X, "truth": rows.y, **clusters}


def text_embeddings(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Two dimensions of LSI and of LPI. [lpi, Fig. 1]"""
    models = {
        "LSI": TruncatedSVD(2, random_state=0),
        "LPI": LPI(2, KNNGraph(15, weight="dot"), random_state=0),
    }
    return {"truth": rows.y} | {name: model.fit_transform(rows.X) for name, model in models.items()}


def _faces(rows: Rows) -> np.ndarray:
    """Ten images each of three people, then one image each of ten others, centred."""
    own = [np.flatnonzero(rows.y == person)[:IMAGES] for person in range(PEOPLE)]
    others = [np.flatnonzero(rows.y == PEOPLE + i)[i] for i in range(IMAGES)]
    chosen = np.concatenate([*own, others])
    return rows.X[chosen] - rows.X[chosen].mean(axis=0)


def nle_evolution(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Q of thirty faces after some updates from a random start, and the objective after each. [nle, Fig. 2]

    Similarities are cosines of centred images: with plain inner products of pixels, which are all alike, the update
    moves no label.
    """
    X = _faces(rows)[: PEOPLE * IMAGES]
    update = Update(cut_problem(FullGraph("cosine", signed=True).build(X), "ratio", "shift"), np.random.RandomState(0))
    Q = unit_columns(np.random.RandomState(1).uniform(size=(len(X), PEOPLE)))
    shown, objective = {}, []
    for step in range(1, max(SHOWN) + 1):
        Q, value = update.step(Q)
        objective.append(value)
        if step in SHOWN:
            shown[str(step)] = Q
    return {"Q": shown, "objective": objective, "truth": np.repeat(np.arange(PEOPLE), IMAGES)}


def nle_strangers(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Memberships of thirty faces of three people and ten of strangers. [nle, Fig. 3]"""
    model = NLE(PEOPLE, FullGraph("cosine", signed=True), signed="shift", init="auto", random_state=0)
    return {"memberships": model.fit(_faces(rows)).memberships_}


def nle_progress(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Objective and accuracy of one run from spectral clustering, update by update. [nle, Figs 4 and 5]"""
    cut, _ = the_cut(cell, rows)
    Q = unit_columns(np.eye(cut.k)[spectral(cut, cell.draw)[0]] + LIFT)
    objective, accuracy = [], []
    for _ in range(UPDATES):
        Q, value = cut.update.step(Q)
        objective.append(value)
        accuracy.append(clustering_accuracy(rows.y, Q.argmax(axis=1)))
    return {"objective": objective, "accuracy": accuracy}


ILLUSTRATIONS = {
    "two_moons": two_moons,
    "text_embeddings": text_embeddings,
    "nle_evolution": nle_evolution,
    "nle_strangers": nle_strangers,
    "nle_progress": nle_progress,
}
