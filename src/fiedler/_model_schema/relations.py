"""What the attributes of a fitted model must have to do with each other, besides their sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..graph.affinity import check_stored_weights
from .kinds import Sizes


def _check_graph(state: Mapping[str, Any], sizes: Sizes) -> None:
    check_stored_weights(state["_weights"], signed=bool(state["_signed"]))


def _check_gaussians(state: Mapping[str, Any], sizes: Sizes) -> None:
    k, d = sizes["k"], sizes["d"]
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[state["kind"]]
    if any(state[name].shape != shape for name in ("covariances", "factors")):
        raise ValueError(f"the covariances of its Gaussians are not of kind {state['kind']!r}")


def _check_copies(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require(not sizes["m"] or state["first"].max() < sizes["n"], "it names a row that it does not have")


def _check_factors(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require(bool(state["components_"].any()), "all its components are zero")
    n_components = state["n_components"]  # which scikit-learn uses again for new rows; None is one for each column
    _require(
        n_components in (sizes["p"], "auto") or (n_components is None and sizes["p"] == sizes["d"]),
        "its number of components is another one than that of its parameters",
    )


def _check_mixture(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require_equal(sizes, "d", "p", state["_projection"] is None)
    _require("memberships_" in state or state["_fit_X"] is None, "its memberships are missing")


def _check_embedder(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require_equal(sizes, "d", "p", state["embedder_"] is None)


def _check_documents(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require("mixture_" in state or not state["_soft"], "its mixture is missing")


def _check_propagation(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require(
        "label_distributions_" in state or state["_landmark_distributions"] is not None,
        "its label_distributions_ are missing",
    )
    _require_equal(sizes, "m", "n", state["_landmark_distributions"] is None)


def _check_manifold(state: Mapping[str, Any], sizes: Sizes) -> None:
    view, landmarks, copies = state["_state"].view, state["_state"].landmarks, state["_state"].copies
    if state.get("encoder_") is None:
        sizes.setdefault("d", sizes["columns"])
        _require_equal(sizes, "columns", "d", True)
    _require_equal(sizes, "d", "p", type(view).__name__ not in ("LPI", "Whitening"))
    _require(landmarks is not None or {"memberships_", "labels_"} <= state.keys(), "its memberships are missing")
    _require_equal(sizes, "m", "n", landmarks is None and copies is None)
    chosen = state["candidates_"].get("chosen", [])
    _require(
        chosen.count(True) == 1 and len(chosen) == len(state["_state"].candidates),
        "not exactly one of its candidates was chosen",
    )


def _check_encoding(state: Mapping[str, Any], sizes: Sizes) -> None:
    kind, n_indicators = state["kind"], len(state["levels"]) + state["has_other"]
    is_complete = state["vectorizer"] is not None and state["components"] is not None
    _require(kind != "text" or is_complete, "a column of texts has no terms or no components")
    width = {"number": 1, "date": 1, "category": n_indicators}.get(kind, sizes["w"])
    _require(sizes["w"] == width, f"a column of kind {kind} has {sizes['w']} values instead of {width}")


def _check_table(state: Mapping[str, Any], sizes: Sizes) -> None:
    widths = sum(len(encoding.center) for encoding in state["encodings_"])
    _require(len(state["uses_"]) == sizes["columns"], "it does not say how each of its columns is used")
    _require(widths == sizes["d"], "its columns have another number of values than its encodings")


def _check_completer(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require(
        len(state["_names"]) == sizes["columns"] == len(set(state["_names"])), "its columns do not have a name each"
    )


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _require_equal(sizes: Sizes, one: str, other: str, is_required: bool) -> None:
    if is_required and sizes.get(one, sizes.get(other)) != sizes.get(other, sizes.get(one)):
        raise ValueError(f"two of its sizes differ, {sizes[one]} and {sizes[other]}")


RELATIONS: dict[str, Callable[[Mapping[str, Any], Sizes], None]] = {
    "AffinityGraph": _check_graph,
    "ColumnEncoding": _check_encoding,
    "CopiedRows": _check_copies,
    "EmbedKMeans": _check_embedder,
    "GaussianMixture": _check_mixture,
    "Gaussians": _check_gaussians,
    "LapGMM": _check_mixture,
    "LCGMM": _check_mixture,
    "LLGC": _check_propagation,
    "LPIClustering": _check_documents,
    "ManifoldClustering": _check_manifold,
    "NMF": _check_factors,
    "TableCompleter": _check_completer,
    "TableEncoder": _check_table,
}
