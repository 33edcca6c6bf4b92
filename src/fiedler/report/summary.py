"""A fitted clustering as one dictionary of plain data: everything that its report shows, in a form that JSON can store.

- The *confidence* of a row is its largest membership; a model without memberships, or of one cluster, has none.
- A row is *uncertain* if its confidence is at most `fiedler.manifold.report_text.UNCERTAIN_BELOW`.
- *Typical* rows of a cluster are its most confident ones and, among equals (to two digits), those closest to the mean
  of the cluster; without memberships, those closest to the mean.
- The *least confident* rows of a cluster are listed with the cluster of their second largest membership.
- A cluster is described by its terms if there are documents, by its mean if there are images, and otherwise by the
  columns whose means differ most from those of all rows, in standard deviations (:mod:`fiedler.table.profiles`). Rows
  without names of columns have no words for a name: clusters are numbered, and shown by a picture or a line.
- A row is *contested* if less than half of the methods and views that were compared agree with its cluster.

A report must be small enough to be sent by mail. Texts are therefore shorter the more of them there are, and only some
texts and thumbnails, at least those on cards, are included if there are too many; the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._records import FitHistory
from .._validation import check_data, check_labels, check_seed, is_foreign
from .._version import versions
from ..core.arrays import to_numpy
from ..core.eigen import smallest_eigenpairs, widest_gap
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..manifold import NClustersChoice
from ..manifold.explain import describe_columns
from ..manifold.report_text import CONTESTED_BELOW, UNCERTAIN_BELOW, disagreement
from ..metrics import match_labels, score_table
from ..plots.layouts import Layout2D, resolve_layout, sparse_attractive_part
from ..plots.style import LabeledRows
from ..table.columns import is_dense_frame, is_table
from ..table.profiles import Profiles
from . import cards
from .cards import Summary

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from .._typing import Array, LabelsLike, MatrixLike, RandomState
    from ..plots.layouts import LayoutLike

SUMMARY_FORMAT, SUMMARY_VERSION = "fiedler clustering", 4

IMAGE_CARD_ROWS, CARD_ROWS = cards.CardRows(10, 7), cards.CardRows(4, 4)  # images are smaller than names and texts
MAX_COORDINATE = 65_535  # the longer side of the layout, so that coordinates fit into two bytes
MAX_SPECTRUM_ROWS = 20_000  # eigenvalues of larger graphs are not computed
EXTRA_EIGENVALUES = 6  # computed beyond the number of clusters
MAX_PARAMETER_ENTRIES = 12  # longer arrays among the parameters are shown by their shape
MAX_CONTESTED = 12  # rows that are listed
MAX_LEVEL = 60  # clusters; the map of finer levels is unreadable
MAX_CONFUSION_SIDE = 40  # larger confusion matrices are unreadable

# Attributes of fitted models that the report shows, and their names in it.
FITTED_FACTS = {
    "n_iter_": "iterations",
    "converged_": "converged",
    "objective_": "objective",
    "likelihood_": "log-likelihood",
    "penalty_": "penalty",
    "lam_": "λ",
    "inertia_": "inertia",
    "n_connected_components_": "components of the graph",
}
SCORE_NAMES = {"AC": "accuracy", "NMI": "NMI (max)", "ARI": "adjusted Rand index"}


def summarize(
    model: BaseEstimator,
    X: MatrixLike | AffinityGraph,
    *,
    ids: Sequence[object] | None = None,
    texts: Sequence[str] | None = None,
    images: Array | None = None,
    feature_names: Sequence[str] | None = None,
    original: MatrixLike | Profiles | None = None,
    columns: Sequence[tuple[str, str, str]] | None = None,
    truth: LabelsLike | None = None,
    class_names: Sequence[str] | None = None,
    evidence: NClustersChoice | None = None,
    names: Sequence[object] | None = None,
    layout: LayoutLike = None,
    title: str = "Clustering",
    seconds: float | None = None,
    command: str | None = None,
    settings: Mapping[str, Any] | None = None,
    random_state: RandomState = 0,
) -> Summary:
    """Summarise a fitted clustering as plain data for :func:`write_report`.

    Parameters
    ----------
    model : fitted clusterer
        Any estimator with ``labels_``, where -1 means no cluster; ``memberships_``, ``graph_``, ``history_``,
        ``evidence_`` and ``report()`` are used if they exist.
    X : array or CSR matrix of shape (n, d), or AffinityGraph
        The training data of the model.
    ids : sequence of n names, optional
        The names of the rows; by default their numbers.
    texts : sequence of n str, optional
        The documents. The terms of clusters are taken from them, unless ``X`` is sparse and has ``feature_names``.
    images : array of shape (n, height, width) or (n, height, width, 3), optional
        Images of type uint8, or of numbers in any range.
    feature_names : sequence of d str, optional
        The names of the columns; by default those of a data frame.
    original : array of shape (n, d), data frame or Profiles, optional
        The rows before they were scaled, or any table of them: clusters are described by its columns.
    columns : sequence of (name, use, why), optional
        The columns of the table from which the rows come, how each was used, and why; by default those of the encoder
        of the model.
    truth : sequence of n labels, optional
        Classes to compare the clusters with.
    class_names : sequence of str, optional
        The names of the classes, if ``truth`` numbers them 0, 1, ...
    evidence : NClustersChoice, optional
        The evidence for the number of clusters; by default ``model.evidence_``.
    names : sequence of k names, optional
        A name for each cluster, for example the class of its labelled rows; clusters without one, or with None, are
        called after their columns or terms, if these have names.
    layout : array of shape (n, 2), 'features', 'spectral', 'pca', 'tsne' or None, default=None
        Coordinates of the rows on the map, or how to compute them. None is 'features' if X has two of them and
        otherwise 'tsne', on ``model.graph_`` if it exists and is sparse.
    title : str, default='Clustering'
        The title of the report.
    seconds : float, optional
        The duration of the fit.
    command : str, optional
        The command line that reproduces the clustering; by default lines of Python.
    settings : dict, optional
        Further facts to be shown, by name.
    random_state : int, RandomState or None, default=0
        Random seed or generator of the layout and of the choice of thumbnails.

    Returns
    -------
    dict
        A dictionary of strings, numbers, lists and dictionaries, which ``json.dumps`` accepts.

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

    Clusters are called after the columns in which they differ most, unless they are given a name:

    >>> names = {"feature_names": ["width", "height"], "names": ["upper", None]}
    >>> summary = summarize(ManifoldClustering(2, random_state=0).fit(X), X, **names)
    >>> [cluster["name"] for cluster in summary["clusters"]]
    ['upper', 'low height']
    """
    check_is_fitted(model, "labels_")
    rng = check_seed(random_state)
    encoder = getattr(model, "encoder_", None)
    if encoder is not None and is_dense_frame(X):
        original = cast("MatrixLike", X) if original is None else original
        columns = encoder.columns_ if columns is None else columns
        X = encoder.transform(X)
    feature_names = getattr(X, "columns", None) if feature_names is None else feature_names
    rows = X if isinstance(X, AffinityGraph) else check_data(to_numpy(X) if is_foreign(X) else X)
    n = rows.n_nodes if isinstance(rows, AffinityGraph) else rows.shape[0]
    labels, Q = _labels(model, n), getattr(model, "memberships_", None)
    Q = None if Q is None else np.nan_to_num(to_numpy(Q).astype(np.float64)).reshape(n, -1)
    k = int(max(labels.max() + 1, 0 if Q is None else Q.shape[1], 0 if names is None else len(names)))
    Q = None if k == 1 else Q  # whose memberships are all 1
    texts, ids = _check_length(texts, "texts", n), _check_length(ids, "ids", n)
    pixels = None if images is None else cards.shrink_images(images, n)
    clusters = cards.cluster_cards(rows, labels, Q, k, CARD_ROWS if pixels is None else IMAGE_CARD_ROWS)
    described = rows if original is None else original
    profiles = _profiles(described, labels, k, texts, feature_names, pixels is not None)
    names = _check_length(names, "names", k, "cluster")
    has_names = texts is not None or feature_names is not None or isinstance(original, Profiles) or is_table(original)
    names = cards.name_clusters(names, profiles if has_names else None, clusters)
    cards.describe_cards(clusters, profiles, names)
    cards.draw_shapes(clusters, None if has_names else profiles)
    card_rows = sorted(
        {row for cluster in clusters for row in cluster["typical"]}
        | {entry["row"] for cluster in clusters for entry in cluster["least_confident"]}
    )
    positions = _layout(model, rows, n, layout, rng)
    classes = _classes(truth, class_names, n)
    module = ".".join(type(model).__module__.split(".")[:2])
    code = f"from {module} import {type(model).__name__}\n\nmodel = {model!r}.fit(X)"
    chosen, explains = getattr(model, "evidence_", None), callable(getattr(model, "report", None))
    if evidence is None and isinstance(chosen, NClustersChoice):  # it may be about something else
        evidence = chosen
    return {
        "format": SUMMARY_FORMAT,
        "version": SUMMARY_VERSION,
        "title": cards.clean_text(title),
        **_sizes(rows, labels, Q, k),
        **_columns(rows, feature_names, columns),
        "clusters": clusters,
        "profiles": cards.profile_lines(profiles),
        "contested": _contested(model, n),
        "layout": positions.description,
        "rows": _rows(positions.points, labels, Q, ids),
        "cells": cards.row_cells(profiles, n),
        "texts": None if texts is None else cards.snippets(texts, card_rows),
        "thumbnails": None if pixels is None else cards.pack_thumbnails(pixels, labels, k, card_rows, rng),
        "truth": classes,
        "agreement": None if classes is None else _agreement(classes, labels),
        "spectrum": spectrum(model, rows, k),
        "history": history(model),
        "evidence": cards.jsonable(evidence),
        "levels": _levels(model, n),
        "caution": disagreement(getattr(model, "consensus_", None)),
        "explanation": cards.clean_text(model.report(), keep_lines=True) if explains else None,
        "model": _model(model),
        "seconds": cards.jsonable(seconds),
        "settings": cards.jsonable(settings or {}),
        "reproduce": cards.clean_text(command or code, keep_lines=True),
    }


# ---------------------------------------------------------------------------------------------------------- the input


def _labels(model: Any, n: int) -> np.ndarray:
    labels = check_labels(to_numpy(model.labels_), "labels_ of the model", n_samples=n)
    if labels.dtype.kind not in "iu":
        problem = f"labels_ of the model must be integers, -1 for no cluster; got {labels.dtype}"
        raise InputError(problem, code="wrong_dtype", dtype=str(labels.dtype))
    return np.maximum(labels.astype(np.int64), -1)


def _check_length(values: Any, name: str, n: int, noun: str = "row") -> Any:
    """Return ``values`` if they are None or there is one per row (or other ``noun``)."""
    length = n if values is None else values.shape[0] if hasattr(values, "shape") else len(values)
    if length != n:
        problem = f"{name} has {length} entries, but {n} are required, one per {noun}"
        raise InputError(problem, code="wrong_length", parameter=name, length=length, required=n)
    return values


def _profiles(
    original: Any,
    labels: np.ndarray,
    n_clusters: int,
    texts: Sequence[str] | None,
    names: Sequence[str] | None,
    has_images: bool,
) -> Profiles | None:
    """Return the columns by cluster, or the terms of texts; None for images."""
    if isinstance(original, Profiles):
        return original
    if isinstance(original, AffinityGraph):
        return cards.describe_rows(original, labels, n_clusters, texts, None)
    if is_table(original):
        return describe_columns(original, labels, n_clusters)
    if has_images and texts is None:
        return None
    rows = check_data(_check_length(original, "original", len(labels)))
    return cards.describe_rows(rows, labels, n_clusters, texts, names)


# ---------------------------------------------------------------------------------------------------------------- rows


def _contested(model: Any, n: int) -> Summary | None:
    """Return the rows on which the fewest methods and views agree; None if they were not compared."""
    agreement = getattr(model, "row_agreement_", None)
    if agreement is None or len(agreement) != n:
        return None
    agreement = to_numpy(agreement)
    rows = np.argsort(agreement, kind="stable")[: min(MAX_CONTESTED, int((agreement < CONTESTED_BELOW).sum()))]
    return {
        "count": int((agreement < CONTESTED_BELOW).sum()),
        "rows": [{"row": int(row), "agreement": cards.round_float(agreement[row])} for row in rows],
    }


def _layout(
    model: BaseEstimator, X: Array | AffinityGraph, n: int, layout: LayoutLike, rng: np.random.RandomState
) -> Layout2D:
    """Compute the positions of the rows on the map."""
    graph = _graph_of(model, X)
    graph = graph if graph is not None and graph.n_nodes == n else None
    rows = LabeledRows(None, graph=graph, X=None if isinstance(X, AffinityGraph) else X)
    if layout is None:
        layout = "features" if rows.X is not None and rows.X.shape[1] == 2 else "tsne"
    return resolve_layout(layout, rows, n, random_state=rng)


def _graph_of(model: BaseEstimator, X: Array | AffinityGraph) -> AffinityGraph | None:
    """Return ``X`` if it is a graph, otherwise the graph of the model; None if it has none with explicit edges."""
    graph = X if isinstance(X, AffinityGraph) else getattr(model, "graph_", None)
    return graph if isinstance(graph, AffinityGraph) else None


def _sizes(X: Array | AffinityGraph, labels: np.ndarray, Q: np.ndarray | None, k: int) -> Summary:
    """Return the numbers at the top of the page."""
    confidence = None if Q is None else Q.max(axis=1)
    return {
        "n_rows": len(labels),
        "n_clusters": k,
        "n_unassigned": int((labels < 0).sum()),
        "confidence": None if confidence is None else cards.round_float(confidence.mean()),
        "uncertain_share": None if confidence is None else cards.round_float((confidence <= UNCERTAIN_BELOW).mean()),
    }


def _columns(
    X: Array | AffinityGraph, names: Sequence[str] | None, columns: Sequence[tuple[str, str, str]] | None
) -> Summary:
    """Return how many columns the input has, what they are called, and how each column of a table was used."""
    n_features = None if isinstance(X, AffinityGraph) else int(X.shape[1])
    noun = "term" if cards.columns_are_terms(X, names) else "feature" if names is None else "column"
    if columns is None:
        return {"n_features": n_features, "column": noun, "columns": None}
    uses = [dict(zip(("name", "use", "why"), map(cards.clean_text, column))) for column in columns]
    return {"n_features": len(uses), "column": "column", "columns": uses}


def _rows(points: np.ndarray, labels: np.ndarray, Q: np.ndarray | None, ids: Sequence[object] | None) -> Summary:
    """Return position (integers, both axes on the same scale), label, confidence and name of every row."""
    low = points.min(axis=0)
    extent = float((points.max(axis=0) - low).max()) or 1.0
    x, y = np.rint((points - low) * (MAX_COORDINATE / extent)).astype(np.int64).T
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "labels": labels.tolist(),
        "confidence": None if Q is None else Q.max(axis=1).round(3).clip(0, 1).tolist(),
        "ids": None if ids is None else [cards.shorten(cards.clean_text(name), cards.MAX_TEXT_LENGTH) for name in ids],
    }


# ------------------------------------------------------------------------------------------------------------ evidence


def _levels(model: Any, n: int) -> Summary | None:
    """Return the nested partitions: groups of the finest level, and the cluster of each group at every level."""
    table = getattr(model, "levels_", None)
    numbers = [] if table is None else [k for k in table["n_clusters"] if k <= MAX_LEVEL]
    if table is None or not numbers or len(model.labels_) != n:
        return None
    tree = model._tree()
    finest = tree.clusters[numbers[-1] - 1]
    first = [int(np.argmax(finest == group)) for group in range(numbers[-1])]  # a part of each group
    splits = zip(table["split"], *zip(*table["into"]))
    return {
        "groups": np.append(finest, -1)[tree.labels].tolist(),
        "clusters": [tree.clusters[k - 1][first].tolist() for k in [1, *numbers]],
        "p_values": [None, *(float(p) for p in table["p_value"][: len(numbers)])],
        "splits": [None, *([int(part) for part in split] for split, _ in zip(splits, numbers))],
    }


def spectrum(model: Any, X: Array | AffinityGraph, k: int) -> Summary | None:
    """Return the smallest Laplacian eigenvalues and the number of them before the widest gap."""
    graph = _graph_of(model, X)
    graph = None if graph is None else sparse_attractive_part(graph)
    if graph is not None and graph.n_nodes <= MAX_SPECTRUM_ROWS:
        size = min(k + EXTRA_EIGENVALUES, graph.n_nodes)
        values = to_numpy(smallest_eigenpairs(graph, size, tol=1e-6).values)
    else:
        values = to_numpy(getattr(model, "eigenvalues_", np.zeros(0)))
    if len(values) < 3:
        return None
    values = np.maximum(values, 0)
    return {"values": [float(f"{value:.6g}") for value in values], "gap": widest_gap(values)}


def history(model: BaseEstimator) -> Summary | None:
    """Return the objective and its terms by iteration; None if the fit recorded fewer than two values."""
    record = getattr(model, "history_", None)
    if not isinstance(record, FitHistory) or len(record.objective) < 2:
        return None
    return {
        "maximize": record.maximize,
        "iterations": cards.jsonable(record.iterations),
        "values": {name: cards.jsonable(values) for name, values in record.items()},
    }


def _classes(truth: LabelsLike | None, class_names: Sequence[str] | None, n_samples: int) -> Summary | None:
    """Return the classes and the number of each row's class; None without a truth."""
    if truth is None:
        return None
    names, codes = class_names, check_labels(truth, "truth", n_samples=n_samples)
    if names is None:
        unique, codes = np.unique(codes, return_inverse=True)
        names = unique.tolist()
    return {"classes": [cards.clean_text(name) for name in names], "codes": codes.tolist()}


def _agreement(known: Summary, labels: np.ndarray) -> Summary:
    """Return scores against the classes, and counts of classes (rows) in clusters (columns) in the order they match.

    Rows without a cluster count as cluster -1.
    """
    codes = np.array(known["codes"])
    matched = match_labels(codes, labels)
    class_of = {int(label): int(matched[np.argmax(labels == label)]) for label in np.unique(labels)}
    order = sorted(class_of, key=lambda label: (class_of[label] < 0, class_of[label], label))
    counts = np.zeros((len(known["classes"]), len(order)), dtype=np.int64)
    np.add.at(counts, (codes, np.argsort(order)[np.searchsorted(np.sort(order), labels)]), 1)
    return {
        "scores": {SCORE_NAMES[name]: cards.round_float(score) for name, score in score_table(codes, labels).items()},
        "clusters": order,
        "counts": counts.tolist() if max(counts.shape) <= MAX_CONFUSION_SIDE else None,
    }


# ----------------------------------------------------------------------------------------------------------- the model


def _model(model: Any) -> Summary:
    """Return the name and parameters of the model, facts about the fit, and the versions of the libraries."""
    facts = {name: cards.jsonable(getattr(model, key)) for key, name in FITTED_FACTS.items() if hasattr(model, key)}
    graph = getattr(model, "graph_", None)
    if isinstance(graph, AffinityGraph):
        facts["graph"] = f"{cards.count_noun(graph.n_nodes, 'node')}, {cards.count_noun(graph.n_edges, 'edge')}"
    parameters = {  # a long array, such as initial labels, by its shape
        name: cards.jsonable(value) if np.size(value) <= MAX_PARAMETER_ENTRIES else f"array of shape {np.shape(value)}"
        for name, value in model.get_params(deep=False).items()
    }
    return {"name": type(model).__name__, "parameters": parameters, "facts": facts, "versions": versions()}
