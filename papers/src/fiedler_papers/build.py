"""Build models from the tables of a protocol.

For example ``{use = "LapGMM", lam = 10.0, graph = {use = "KNNGraph", n_neighbors = 8}}``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fiedler._registry import ESTIMATORS, SKLEARN_STEPS
from fiedler._validation import choose, import_class

# Classes that a protocol may use, with the modules that define them. Protocols refer to them by name and records are
# matched by a digest of the protocol, so a renamed class needs its old name here.
CLASS_MODULES = {
    **{row.name: row.full_module for row in ESTIMATORS.values()},
    **SKLEARN_STEPS,
    **dict.fromkeys(("Density", "Reduced", "SpectralPeer", "UMAPMixture"), "fiedler_papers.peers"),
    "BayesianGaussianMixture": "sklearn.mixture",
    "LabelSpreading": "sklearn.semi_supervised",
    "NeighborhoodComponentsAnalysis": "sklearn.neighbors",
}

# Parameters whose default is another one than when the archived records were made.
RECORDED_DEFAULTS: dict[str, dict[str, Any]] = {
    "ManifoldClustering": {"effort": "fast"},
    "GaussianMixture": {"ridge": 0.1},
    "LapGMM": {"ridge": 0.1},
    "LCGMM": {"ridge": 0.1},
}


def build(spec: Any) -> Any:
    """Build what a table describes: the class that it says to ``use``, its parameters built in the same way.

    Examples
    --------
    >>> build({"use": "EmbedKMeans", "embedding": {"use": "PCA", "n_components": 0.98}})
    EmbedKMeans(embedding=PCA(n_components=0.98))
    >>> build({"use": "sklearn.cluster:Birch", "threshold": 0.3})
    Birch(threshold=0.3)
    """
    if not isinstance(spec, dict) or "use" not in spec:
        return spec
    name = spec["use"]
    if name == "None":  # TOML has no null
        return None
    if ":" in name:  # a class of another package, as in "sklearn.cluster:Birch"
        cls = import_class(name)
    else:
        cls = getattr(import_module(choose(CLASS_MODULES, name, option="use")), name)
    given = {key: build(value) for key, value in spec.items() if key != "use"}
    return cls(**(RECORDED_DEFAULTS.get(name, {}) | given))


def build_for(spec: dict[str, Any], *, k: int, seed: int, **settings: Any) -> Any:
    """Build the model of ``spec`` for ``k`` clusters and a seed, where it has such parameters, and other settings."""
    model = build(spec)
    params = model.get_params()
    common = {"n_clusters": k, "random_state": seed}
    return model.set_params(**{name: value for name, value in common.items() if name in params}, **settings)
