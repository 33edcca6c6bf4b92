"""A fitted clustering as one plain dictionary: all that its page shows, and nothing that JSON cannot hold.

- The *confidence* of a row is its largest membership; models without memberships have none, and none is made up.
- *Typical* rows of a cluster are its most confident ones and, among equals (to two digits), those closest to the mean
  of its rows; without memberships the distance alone decides.
- *Doubtful* rows are its least confident ones, each with the cluster it might also belong to.
- What sets a cluster apart: its terms if there are documents, its mean if there are images, else the features whose
  means differ most from everybody's, in standard deviations.

A page must stay small enough to be sent by mail. So texts are shortened as there are more of them and, like thumbnails,
kept for the rows on cards alone when there are too many; the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_labels, is_foreign
from .._versions import versions
from ..clustering import NClustersChoice
from ..clustering.explain import UNCERTAIN_BELOW
from ..core.backend import to_numpy
from ..core.eigen import smallest_eigenpairs, widest_gap
from ..graph.affinity import AffinityGraph
from ..metrics import match_labels, score_table
from ..plots.layouts import Layout2D, check_layout
from .cards import are_terms, clusters_of, describe
from .contents import kept_thumbnails, snippets, thumbnails
from .jsonable import SNIPPET, Summary, clean, counted, jsonable, rounded, shortened
from .tsne import layout_rows, sparse_graph

FORMAT, VERSION = "fiedler clustering", 1

ON_CARDS = {True: (10, 7), False: (4, 4)}  # typical and doubtful rows: of images, of anything else
UNIT = 65_535  # the longer side of the plane
SPECTRUM_ROWS, BEYOND_K = 20_000, 6  # eigenvalues are computed up to so many rows, so many beyond the clusters
LONGEST_LIST = 12  # among parameters
MOST_CLASSES = 40  # of which counts are a table that can be read

FACTS = {
    "n_iter_": "iterations",
    "converged_": "converged",
    "objective_": "objective",
    "likelihood_": "log-likelihood",
    "penalty_": "penalty",
    "lam_": "λ",
    "inertia_": "inertia",
    "n_connected_components_": "components of the graph",
}
SCORES = {"AC": "accuracy", "NMI": "NMI", "ARI": "adjusted Rand index"}  # as people say


def summarize(
    model: Any,
    X: Any,
    *,
    ids: Any = None,
    texts: Sequence[str] | None = None,
    images: Any = None,
    feature_names: Sequence[str] | None = None,
    original: Any = None,
    truth: Any = None,
    evidence: Any = None,
    names: Sequence[Any] | None = None,
    plane: Any = None,
    title: str = "Clustering",
    seconds: float | None = None,
    command: str | None = None,
    settings: Mapping[str, Any] | None = None,
    random_state: Any = 0,
) -> Summary:
    """What there is to say of a fitted clustering, as plain data for :func:`write_report`.

    Parameters
    ----------
    model : fitted clusterer
        Anything with ``labels_``, -1 standing for no cluster; ``memberships_``, ``graph_``, ``history_``, ``evidence_``
        and ``report()`` are used where they exist.
    X : array or CSR matrix of shape (n, d), or AffinityGraph
        What it was fitted to.
    ids : sequence of n names, optional
        Default the numbers of the rows.
    texts : sequence of n str, optional
        The documents; also where the terms of clusters come from, unless ``X`` is sparse and has ``feature_names``.
    images : array of shape (n, height, width) or (n, height, width, 3), optional
        uint8, or numbers of any range.
    feature_names : sequence of d str, optional
        Default the columns of a data frame.
    original : array of shape (n, d), optional
        The rows before they were scaled: the means of features are shown in these units.
    truth : sequence of n labels, optional
        Classes to compare with.
    evidence : NClustersChoice, optional
        For the number of clusters, where it does not come from the model itself; default its ``evidence_``.
    names : sequence of k names, optional
        What each cluster is called, None where nobody knows: classes that some labelled rows gave it, say.
    plane : array of shape (n, 2), optional
        Where to draw the rows; default :func:`fiedler.report.tsne.layout_rows`.
    title : str, default='Clustering'
    seconds : float, optional
        What the fit took.
    command : str, optional
        The command line that makes this clustering again; default Python lines.
    settings : dict, optional
        Anything else to be shown, by name.
    random_state : int, RandomState or None, default=0
        Of the plane, and of the thumbnails to keep where there are too many.

    Returns
    -------
    dict
        Of strings, numbers, lists and dictionaries alone: ``json.dumps`` takes it as it is.

    Examples
    --------
    >>> from fiedler import ManifoldClustering
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.report import summarize
    >>> X, y = two_moons(n_samples=200, noise=0.05, random_state=0)
    >>> summary = summarize(ManifoldClustering(2, random_state=0).fit(X), X, truth=y)
    >>> [cluster["size"] for cluster in summary["clusters"]]
    [100, 100]
    >>> summary["agreement"]["scores"]["accuracy"]
    1.0

    A name stands where the page would else call a cluster by its number:

    >>> summary = summarize(ManifoldClustering(2, random_state=0).fit(X), X, names=["upper", None])
    >>> [cluster["name"] for cluster in summary["clusters"]]
    ['upper', None]
    """
    check_is_fitted(model, "labels_")
    rng = check_random_state(random_state)
    columns = getattr(X, "columns", None) if feature_names is None else feature_names
    rows = X if isinstance(X, AffinityGraph) else check_data(to_numpy(X) if is_foreign(X) else X)
    n = rows.n_nodes if isinstance(rows, AffinityGraph) else rows.shape[0]
    labels, Q = _labels(model, n), _memberships(model, n)
    k = int(max(labels.max() + 1, 0 if Q is None else Q.shape[1], 0 if names is None else len(names)))
    pixels = None if images is None else thumbnails(images, n)
    clusters = clusters_of(rows, labels, Q, k, ON_CARDS[pixels is not None])
    measured = rows if original is None else check_data(_all(original, "original", n))
    describe(clusters, measured, labels, _all(texts, "texts", n), columns, pixels)
    for one, name in zip(clusters, [None] * k if names is None else _all(names, "names", k, "cluster"), strict=True):
        one["name"] = None if name is None else shortened(clean(name), SNIPPET) or None
    on_cards = sorted({row for one in clusters for row in one["typical"] + [each["row"] for each in one["doubtful"]]})
    drawn = layout_rows(model, rows, random_state=rng) if plane is None else Layout2D(check_layout(plane, n))
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": clean(title),
        **_sizes(rows, labels, Q, k),
        "column": "term" if are_terms(rows, columns) else "feature",
        "clusters": clusters,
        "plane": drawn.how,
        "rows": _rows(drawn.points, labels, Q, _all(ids, "ids", n)),
        "texts": None if texts is None else snippets(texts, on_cards),
        "thumbnails": None if pixels is None else kept_thumbnails(pixels, labels, k, on_cards, rng),
        "truth": None if truth is None else _truth(truth, labels),
        "agreement": None if truth is None else agreement(truth, labels),
        "spectrum": spectrum(model, rows, k),
        "history": history(model),
        "evidence": jsonable(_evidence(model) if evidence is None else evidence),
        "story": clean(model.report(), lines=True) if callable(getattr(model, "report", None)) else None,
        "model": _model(model),
        "seconds": jsonable(seconds),
        "settings": jsonable(settings or {}),
        "reproduce": clean(command, lines=True) if command else _python_lines(model),
    }


# ------------------------------------------------------------------------------------------------------ what was given


def _labels(model: Any, n: int) -> np.ndarray:
    labels = check_labels(to_numpy(model.labels_), "the model's labels_", n_samples=n)
    if labels.dtype.kind not in "iu":
        raise ValueError(f"the model's labels_ must be whole numbers, -1 for no cluster; got {labels.dtype}")
    return np.maximum(labels.astype(np.int64), -1)


def _memberships(model: Any, n: int) -> np.ndarray | None:
    Q = getattr(model, "memberships_", None)
    return None if Q is None else np.nan_to_num(to_numpy(Q).astype(np.float64)).reshape(n, -1)


def _all(values: Any, name: str, n: int, each: str = "row") -> Any:
    """``values`` if there is one a row, or whatever else."""
    if values is not None and len(values) != n:
        raise ValueError(f"{name} hold {len(values)} entries, but {n} are needed, one a {each}")
    return values


# ---------------------------------------------------------------------------------------------------------------- rows


def _sizes(rows: Any, labels: np.ndarray, Q: np.ndarray | None, k: int) -> Summary:
    """The figures at the head of the page."""
    confidence = None if Q is None else Q.max(axis=1)
    return {
        "n_rows": len(labels),
        "n_features": None if isinstance(rows, AffinityGraph) else int(rows.shape[1]),
        "n_clusters": k,
        "n_unassigned": int((labels < 0).sum()),
        "confidence": None if confidence is None else rounded(confidence.mean()),
        "in_doubt": None if confidence is None else rounded((confidence <= UNCERTAIN_BELOW).mean()),
    }


def _rows(xy: np.ndarray, labels: np.ndarray, Q: np.ndarray | None, ids: Any) -> Summary:
    """One entry a row: place (whole numbers, both axes in one unit), label, confidence, name."""
    low = xy.min(axis=0)
    unit = float((xy.max(axis=0) - low).max()) or 1.0
    x, y = np.rint((xy - low).astype(np.float64) * (UNIT / unit)).astype(np.int64).T
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "labels": labels.tolist(),
        "confidence": None if Q is None else Q.max(axis=1).round(3).clip(0, 1).tolist(),
        "ids": None if ids is None else [shortened(clean(name), SNIPPET) for name in ids],
    }


# ------------------------------------------------------------------------------------------------------------ evidence


def _evidence(model: Any) -> NClustersChoice | None:
    """The model's own for the number of clusters; there may be evidence of other things."""
    found = getattr(model, "evidence_", None)
    return found if isinstance(found, NClustersChoice) else None


def spectrum(model: Any, rows: Any, k: int) -> Summary | None:
    """The smallest Laplacian eigenvalues and the number of clusters after which they jump most."""
    graph = rows if isinstance(rows, AffinityGraph) else getattr(model, "graph_", None)
    graph = sparse_graph(graph, graph.n_nodes) if isinstance(graph, AffinityGraph) else None
    if graph is not None and graph.n_nodes <= SPECTRUM_ROWS:
        size = min(k + BEYOND_K, graph.n_nodes)
        values = to_numpy(smallest_eigenpairs(graph, size, tol=1e-6).values)
    else:
        values = to_numpy(getattr(model, "eigenvalues_", np.zeros(0)))
    if len(values) < 3:
        return None
    values = np.maximum(values, 0)
    return {"values": [float(f"{value:.6g}") for value in values], "gap": widest_gap(values)}


def history(model: Any) -> dict[str, list[float | None]] | None:
    """What every iteration reached, a column a quantity: the objective and, where they are known, its parts."""
    found = getattr(model, "history_", None)
    if isinstance(found, Mapping):
        return {name: jsonable(list(values)) for name, values in found.items()}
    steps = list(found or [])
    if len(steps) < 2:
        return None
    names = getattr(steps[0], "_fields", None)
    if names is None:
        return {"objective": jsonable(steps)} if np.ndim(steps) == 1 else None
    return {name: jsonable([getattr(step, name) for step in steps]) for name in names}


def _truth(truth: Any, labels: np.ndarray) -> Summary:
    """The classes and each row's, by number."""
    classes, codes = np.unique(check_labels(truth, "truth", n_samples=len(labels)), return_inverse=True)
    return {"classes": [clean(name) for name in classes.tolist()], "codes": codes.tolist()}


def agreement(truth: Any, labels: np.ndarray) -> Summary:
    """Scores against the truth, and counts of classes (rows) in clusters (columns), clusters in the order they match.

    Rows without a cluster are a cluster of their own, -1.
    """
    known = _truth(truth, labels)
    codes, used = np.array(known["codes"]), np.unique(labels)
    matched = match_labels(codes, labels)
    of = {int(label): int(matched[np.argmax(labels == label)]) for label in used}
    order = sorted(of, key=lambda label: (of[label] < 0, of[label], label))
    counts = np.zeros((len(known["classes"]), len(order)), dtype=np.int64)
    np.add.at(counts, (codes, np.argsort(order)[np.searchsorted(np.sort(order), labels)]), 1)
    readable = max(counts.shape) <= MOST_CLASSES
    return {
        "scores": {SCORES[name]: rounded(score) for name, score in score_table(codes, labels).items()},
        "clusters": order,
        "counts": counts.tolist() if readable else None,
    }


# ----------------------------------------------------------------------------------------------------------- the model


def _model(model: Any) -> Summary:
    """Its name, parameters, what the fit reached, and the versions it ran on."""
    graph = getattr(model, "graph_", None)
    facts = {name: jsonable(getattr(model, key)) for key, name in FACTS.items() if hasattr(model, key)}
    if isinstance(graph, AffinityGraph):
        facts["graph"] = f"{counted(graph.n_nodes, 'node')}, {counted(graph.n_edges, 'edge')}"
    return {
        "name": type(model).__name__,
        "parameters": {name: _parameter(value) for name, value in model.get_params(deep=False).items()},
        "facts": facts,
        "versions": versions(),
    }


def _parameter(value: Any) -> Any:
    """A parameter to be shown; a long array, such as a start, by its shape."""
    return jsonable(value) if np.size(value) <= LONGEST_LIST else f"array of shape {np.shape(value)}"


def _python_lines(model: Any) -> str:
    home = ".".join(type(model).__module__.split(".")[:2])
    return clean(f"from {home} import {type(model).__name__}\n\nmodel = {model!r}.fit(X)", lines=True)
