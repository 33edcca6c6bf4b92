"""The numbers behind the figures that show a single fit rather than an average."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD

from fiedler.core.arrays import to_numpy
from fiedler.embedding.lpi import LPI
from fiedler.embedding.nle import NLE, Update, unit_columns
from fiedler.graph.cuts import cut_problem
from fiedler.graph.recipes import FullGraph, KNNGraph
from fiedler.metrics import clustering_accuracy
from fiedler.mixture.gaussian import GaussianMixture
from fiedler.mixture.lapgmm import LapGMM

from .protocol import Cell
from .rows import Rows
from .starts import NLE_MAX_ITER, first_embedding, first_labels, graph_cut

SNAPSHOT_UPDATES = (1, 10, 50, 300)  # after which [nle, Fig. 2] shows Q
MOON_STEPS = (1, 4, 16, 64, 256)  # of rule (12), in [lapgmm, Fig. 1]
N_PEOPLE, IMAGES_PER_PERSON = 3, 10  # of [nle, Figs 2 and 3]


def rule_label(init: str, steps: int) -> str:
    """Name the clusters of rule (12) on the two moons, in the records and in the figure.

    Examples
    --------
    >>> rule_label("kmeans", 4)
    'rule (12), kmeans, 4 steps'
    """
    return f"rule (12), {init}, {steps} steps"


def two_moons(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return the toy data, the labels of GMM and LapGMM, and those of rule (12) from two starts. [lapgmm, Fig. 1]"""
    paper: dict[str, Any] = {"graph": KNNGraph(8), "solver": "printed", "lam": 1000.0, "random_state": 0}
    models = {
        "GMM": GaussianMixture(2, random_state=0),
        "LapGMM": LapGMM(2, random_state=0),
        **{
            rule_label(init, steps): LapGMM(2, init=init, n_smooth=steps, **paper)
            for init in ("kmeans", "community")
            for steps in MOON_STEPS
        },
    }
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


class Curves:
    """What is measured at every update of NLE; each list has one entry per update.

    ``objective`` is the trace of Eq. 9 before the update, and ``lagrangian`` the change of Eq. 15 by it, with Λ as it
    was before, in units of σ. After the update, ``stationarity`` is the largest entry of Eq. 14 in units of σ, and
    ``orthogonality`` that of Q'Q - I. [nle, Theorems 3 and 4]
    """

    def __init__(self, update: Update) -> None:
        self.update = update
        self.values: dict[str, list[float]] = {
            name: [] for name in ("objective", "lagrangian", "stationarity", "orthogonality")
        }

    def step(self, Q: np.ndarray) -> np.ndarray:
        """Return Q after one update, and measure it."""
        sigma, multipliers = self.update.sigma, self._multipliers(Q)
        after, objective = self.update.step(Q)
        gain = self._lagrangian(after, multipliers) - self._lagrangian(Q, multipliers)
        excess = np.abs(after.T @ after - np.eye(after.shape[1])).max()
        entries = (objective, gain / sigma, np.abs(self._gradient(after) * after).max() / sigma, excess)
        for values, entry in zip(self.values.values(), entries):
            values.append(float(entry))
        return after

    def _multipliers(self, Q: np.ndarray) -> np.ndarray:
        return self.update.multipliers(Q, *self.update.pulls(Q))

    def _lagrangian(self, Q: np.ndarray, multipliers: np.ndarray) -> float:
        """Tr[Q'(W + σI - D)Q - Λ(Q'Q - I)]. [nle, Eq. 15]"""
        return float(np.trace(self._multipliers(Q)) - np.sum(multipliers * (Q.T @ Q - np.eye(Q.shape[1]))))

    def _gradient(self, Q: np.ndarray) -> np.ndarray:
        """(W + σI - D)Q - QΛ, for weights without a negative part. [nle, Eq. 14]"""
        (attract,) = self.update.pulls(Q)
        return attract + (self.update.sigma + self.update.inward - self.update.outward) * Q - Q @ self._multipliers(Q)


def nle_evolution(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return Q of thirty faces after some updates from a random start, and the curves of all. [nle, Fig. 2]

    Similarities are cosines of centred images: inner products of pixels are nearly equal for all pairs.
    """
    X = _faces(rows)[: N_PEOPLE * IMAGES_PER_PERSON]
    curves = Curves(
        Update(cut_problem(FullGraph("cosine", signed=True).build(X), "ratio", "shift"), np.random.RandomState(0))
    )
    Q, snapshots = _uniform_start(len(X), 1), {}
    for step in range(1, max(SNAPSHOT_UPDATES) + 1):
        Q = curves.step(Q)
        if step in SNAPSHOT_UPDATES:
            snapshots[str(step)] = Q
    return {"Q": snapshots, **curves.values, "truth": np.repeat(np.arange(N_PEOPLE), IMAGES_PER_PERSON)}


def _uniform_start(n: int, seed: int) -> np.ndarray:
    return unit_columns(np.random.RandomState(seed).uniform(size=(n, N_PEOPLE)))


def nle_raw_faces(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Count the labels of thirty faces that 300 updates change, with inner products of raw pixels. [nle, section IX]

    For weights as they are and shifted so that the smallest is zero: from ten uniform starts, with the accuracies at
    the end, and from indicators of the people plus 0.2, a start that no update has to correct.
    """
    truth = np.repeat(np.arange(N_PEOPLE), IMAGES_PER_PERSON)
    X = np.concatenate([rows.X[rows.y == person][:IMAGES_PER_PERSON] for person in range(N_PEOPLE)])
    counts = {}
    for signed in ("split", "shift"):
        update = Update(cut_problem(FullGraph("dot").build(X), "ratio", signed), np.random.RandomState(0))
        starts = [_uniform_start(len(X), seed) for seed in range(10)]
        ends = [_after_updates(update, Q).argmax(axis=1) for Q in starts]
        people = _after_updates(update, first_embedding(truth, N_PEOPLE)).argmax(axis=1)
        counts[signed] = {
            "changed": [int(np.sum(Q.argmax(axis=1) != end)) for Q, end in zip(starts, ends)],
            "accuracy": [clustering_accuracy(truth, end) for end in ends],
            "changed_from_people": int(np.sum(people != truth)),
        }
    return counts


def _after_updates(update: Update, Q: np.ndarray) -> np.ndarray:
    for _ in range(NLE_MAX_ITER):
        Q, _ = update.step(Q)
    return Q


def nle_outliers(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return memberships of thirty faces of three people and ten outliers, faces of other people. [nle, Fig. 3]"""
    model = NLE(N_PEOPLE, FullGraph("cosine", signed=True), signed="shift", init="auto", random_state=0)
    return {"memberships": model.fit(_faces(rows)).memberships_}


def nle_progress(cell: Cell, rows: Rows) -> dict[str, Any]:
    """Return accuracy and curves over the updates of a run from spectral clustering. [nle, Figs 4 and 5]"""
    cut, _ = graph_cut(cell, rows)
    curves, Q, accuracy = Curves(cut.update), first_embedding(first_labels(cut, cell), cut.k), []
    for _ in range(NLE_MAX_ITER):
        Q = curves.step(Q)
        accuracy.append(clustering_accuracy(rows.y, Q.argmax(axis=1)))
    return {**curves.values, "accuracy": accuracy}


# By the names that protocols use; these are part of the digests of the records.
ILLUSTRATIONS = {
    "two_moons": two_moons,
    "text_embeddings": text_embeddings,
    "nle_evolution": nle_evolution,
    "nle_strangers": nle_outliers,
    "nle_progress": nle_progress,
    "nle_raw_faces": nle_raw_faces,
}
