"""One fit from the command line: what was read, the method, what is known; and the labels as a table."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from .._files import atomic_write
from ..core.backend import to_numpy
from ..core.memory import peak_memory_mb, reset_peak_memory
from ..graph.constraints import PairwiseConstraints
from ..io import Input
from ..io.record import row_numbers
from ..metrics import score_table
from .methods import METHODS, Prepared, clusterer
from .output import ProgressCallback

DIGITS = 4  # of a membership in a file


class Fit(NamedTuple):
    """A fitted pipeline and what it found."""

    model: Pipeline
    labels: np.ndarray
    memberships: np.ndarray | None
    evidence: Any  # for the number of clusters, where that was asked
    seconds: float
    peak_mb: int | None
    names: list[str | None] | None = None  # of the clusters, where some labels gave them

    @property
    def clusterer(self) -> Any:
        """The last step."""
        return self.model[-1]

    @property
    def confidence(self) -> np.ndarray | None:
        """Each row's largest membership."""
        return None if self.memberships is None else self.memberships.max(axis=1)

    @property
    def n_clusters(self) -> int:
        """How many there are: the columns of the memberships, or the labels in use."""
        return int(self.labels.max()) + 1 if self.memberships is None else self.memberships.shape[1]


def fit(
    found: Input,
    ready: Prepared,
    method: str,
    k: Any,
    *,
    seed: int = 0,
    pairs: Path | None = None,
    listener: ProgressCallback | None = None,
) -> Fit:
    """Fit a method to the rows, and to what is known of them.

    A column of labels that has gaps steers the clusters; one without gaps is only compared with.
    """
    options = _known(found, method, pairs)
    reset_peak_memory()
    started, evidence = time.perf_counter(), None
    if k == "auto" and method != "auto":
        k, evidence = count(ready, seed=seed, listener=listener)
        k = max(k, len(found.codes()[1])) if found.steers else k
    model = with_callback(clusterer(method, k, ready.rows, seed), listener).fit(ready.rows, **options)
    seconds = time.perf_counter() - started
    shares = getattr(model, "memberships_", None)
    done = Fit(
        Pipeline([*ready.steps, ("cluster", model)]),
        to_numpy(model.labels_),
        None if shares is None else to_numpy(shares),
        getattr(model, "evidence_", None) or evidence,
        seconds,
        peak_memory_mb(),
    )
    classes: list[str | None] = [*found.codes()[1]]
    return done._replace(names=[*classes, *[None] * (done.n_clusters - len(classes))]) if found.steers else done


def _known(found: Input, method: str, pairs: Path | None) -> dict[str, Any]:
    """What a fit is told of the rows, if the method can be told."""
    given = ["labels"] * found.steers + ["pairs"] * (pairs is not None)
    for name in set(given) - METHODS[method].takes:
        able = ", ".join(key for key, row in METHODS.items() if name in row.takes)
        raise ValueError(f"--method {method} cannot be told {name}; those that can are {able}")
    options: dict[str, Any] = {"y": found.codes()[0]} if found.steers else {}
    if pairs is not None:
        names = None if found.names == row_numbers(found.n_rows) else found.names
        options["constraints"] = known = PairwiseConstraints.from_csv(pairs, found.n_rows, names=names)
        if known.n_pairs == 0:
            raise ValueError(f"--pairs {str(pairs)!r} holds no pairs; give some, or leave it out")
        _refuse_contradiction(known, found)
    return options


def _refuse_contradiction(pairs: PairwiseConstraints, found: Input) -> None:
    """Pairs and labels that steer together have to agree."""
    codes, classes = found.codes()
    if not found.steers:
        return
    for kind, links, together in (("must", pairs.must_link, True), ("cannot", pairs.cannot_link, False)):
        of_links = codes[links]
        wrong = (of_links >= 0).all(axis=1) & ((of_links[:, 0] == of_links[:, 1]) != together)
        if wrong.any():
            first, second = links[wrong][0]
            one, other = (classes[codes[row]] for row in (first, second))
            raise ValueError(
                f"--pairs and --labels contradict each other: rows {first} and {second} are a {kind}-link, and their "
                f"labels are {one!r} and {other!r}; mend one of them"
            )


def with_callback(model: Any, listener: ProgressCallback | None) -> Any:
    """The model, with a listener if it can have one."""
    if listener is not None and hasattr(model, "set_callbacks"):
        model.set_callbacks(listener)
    return model


def count(ready: Prepared, *, seed: int = 0, listener: ProgressCallback | None = None) -> tuple[int, Any]:
    """The number of clusters by ManifoldClustering, and the evidence for it."""
    counting = with_callback(clusterer("auto", "auto", ready.rows, seed), listener).fit(ready.rows)
    return counting.n_clusters_, counting.evidence_


def scores(found: Input, labels: np.ndarray) -> dict[str, float]:
    """Agreement with the known labels; none where these have steered the fit and would only agree with themselves."""
    return {} if found.labels is None or found.steers else score_table(found.codes()[0], labels)


def write_labels(path: Path, *columns: Any) -> None:
    """`labels_table` into a file, whole or not at all."""
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        labels_table(file, *columns)


def labels_table(
    file: Any,
    ids: list[str],
    labels: np.ndarray,
    memberships: np.ndarray | None,
    names: list[str | None] | None = None,
) -> None:
    """id, label, the cluster's name where labels gave it one, confidence and memberships, a row each."""
    writer = csv.writer(file, lineterminator="\n")
    shares = np.empty((len(labels), 0)) if memberships is None else memberships
    soft = [] if memberships is None else ["confidence", *(f"cluster_{place}" for place in range(shares.shape[1]))]
    writer.writerow(["id", "label", *(["name"] if names else []), *soft])
    for row_id, label, row in zip(ids, labels.tolist(), shares):
        named = [names[label] or ""] if names else []
        numbers = [row.max(), *row] if soft else []
        writer.writerow([row_id, label, *named, *(f"{value:.{DIGITS}f}" for value in numbers)])
