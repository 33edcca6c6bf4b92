"""Models from a protocol's tables: ``{use = "LapGMM", lam = 10.0, graph = {use = "KNNGraph", n_neighbors = 8}}``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fiedler._registry import ESTIMATORS, SKLEARN_STEPS
from fiedler._validation import choose

HOMES = {
    **{row.name: row.full_module for row in ESTIMATORS.values()},
    **SKLEARN_STEPS,
    **dict.fromkeys(("Density", "Reduced", "SpectralPeer", "UMAPMixture"), "fiedler_papers.peers"),
    "BayesianGaussianMixture": "sklearn.mixture",
    "LabelSpreading": "sklearn.semi_supervised",
    "NeighborhoodComponentsAnalysis": "sklearn.neighbors",
}


def build(spec: Any) -> Any:
    """What a table describes: the class it says to ``use``, with the rest as parameters, themselves built.

    Examples
    --------
    >>> build({"use": "EmbedKMeans", "embedding": {"use": "PCA", "n_components": 0.98}})
    EmbedKMeans(embedding=PCA(n_components=0.98))
    """
    if not isinstance(spec, dict) or "use" not in spec:
        return spec
    name = spec["use"]
    if name == "None":  # which TOML has no word for
        return None
    maker = getattr(import_module(choose(HOMES, name, option="use")), name)
    return maker(**{key: build(value) for key, value in spec.items() if key != "use"})


def build_for(spec: dict[str, Any], *, k: int, seed: int, **settings: Any) -> Any:
    """The model of ``spec`` for K clusters, with a seed and other settings where it has a place for them."""
    model = build(spec)
    known = model.get_params()
    offered = {"n_clusters": k, "random_state": seed}
    return model.set_params(**{name: value for name, value in offered.items() if name in known}, **settings)
