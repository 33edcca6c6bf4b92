"""Registry of the estimators and other public names.

A row of :data:`ESTIMATORS` is all that a new estimator needs to be exported from ``fiedler``, saved to a model file,
offered by the command line, put through every contract test and listed in the API reference. Rows name modules, so
that importing the registry imports nothing else. ``make stubs`` writes :file:`__init__.pyi`, which type checkers and
editors read, from the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# fmt: off
SUBPACKAGES = (
    "clustering", "core", "datasets", "embedding", "errors", "graph", "integrations", "io", "manifold", "metrics",
    "mixture", "persistence", "plots", "report", "supervision", "table", "text",
)
# fmt: on

# Public functions and classes that are not estimators, with the module that defines them.
EXPORTS = {
    "AffinityGraph": "graph.affinity",
    "FitHistory": "_records",
    "PairwiseConstraints": "graph.constraints",
    "choose_n_clusters": "manifold.n_clusters",
    "cluster": "manifold.estimator",
    "estimate": "manifold.cost",
    "load": "persistence",
    "save": "persistence",
}

# Records that a model file can contain in addition to estimators, with the module that defines them.
RECORDS = {
    "AffinityGraph": "fiedler.graph.affinity",
    "Candidate": "fiedler.manifold.candidates",
    "ClusterPipeline": "fiedler.manifold.explain",
    "ColumnEncoding": "fiedler.table.encoder",
    "CopiedRows": "fiedler.graph.weights",
    "FittedLevel": "fiedler.manifold.state",
    "FittedState": "fiedler.manifold.state",
    "Inquiry": "fiedler.supervision.questions",
    "Landmarks": "fiedler.manifold.state",
    "KernelConstants": "fiedler.graph.kernels",
    "FitHistory": "fiedler._records",
    "GaussianOfRows": "fiedler.table.completion",
    "Gaussians": "fiedler.mixture.covariance",
    "LowRankAffinity": "fiedler.graph.kernels",
    "NClustersChoice": "fiedler.manifold.n_clusters",
    "NumberScale": "fiedler.table.numbers",
    "PairwiseConstraints": "fiedler.graph.constraints",
    "Profiles": "fiedler.table.profiles",
    "Projection": "fiedler.core.pca",
    "SuspiciousCell": "fiedler.table.numbers",
    "Templates": "fiedler.graph.weights",
}

# Transformers of scikit-learn that may precede a model in a saved pipeline.
SKLEARN_STEPS = {
    "CountVectorizer": "sklearn.feature_extraction.text",
    "HashingVectorizer": "sklearn.feature_extraction.text",
    "MinMaxScaler": "sklearn.preprocessing",
    "NMF": "sklearn.decomposition",
    "Normalizer": "sklearn.preprocessing",
    "PCA": "sklearn.decomposition",
    "StandardScaler": "sklearn.preprocessing",
    "TfidfTransformer": "sklearn.feature_extraction.text",
    "TruncatedSVD": "sklearn.decomposition",
}

# What an error says of the distribution fiedler-papers, which has the baselines and the papers' data sets.
PAPERS_HINT = "install it from the folder papers/ of the repository: pip install ./papers"


@dataclass(frozen=True)
class Method:
    """How the command line offers a clusterer."""

    name: str  # the value of --method
    description: str
    supervision: tuple[str, ...] = ()  # what it can learn from besides the rows: "labels", "pairs"


@dataclass(frozen=True)
class Estimator:
    """A row of the registry."""

    name: str
    module: str  # relative to fiedler, unless it begins with the name of another package
    section: str  # of the API reference
    method: Method | None = None
    top_level: bool = True  # whether fiedler.<name> exists; otherwise it is public in its subpackage only

    @property
    def full_module(self) -> str:
        """The importable name of the module."""
        is_ours = self.module.split(".")[0] in SUBPACKAGES
        return f"fiedler.{self.module}" if is_ours else self.module

    def load(self) -> Any:
        """Import the class."""
        return getattr(import_module(self.full_module), self.name)


_BOTH = ("labels", "pairs")

# fmt: off
_ROWS = (
    Estimator("ManifoldClustering", "manifold.estimator", "Clustering",
              Method("auto", "several partitions, one chosen without labels", _BOTH)),
    Estimator("LapGMM", "mixture.lapgmm", "Mixtures",
              Method("lapgmm", "Gaussian mixture, smooth over the graph", _BOTH)),
    Estimator("LCGMM", "mixture.lcgmm", "Mixtures",
              Method("lcgmm", "Gaussian mixture with a Kullback-Leibler regulariser", _BOTH)),
    Estimator("SpectralClustering", "clustering.spectral", "Clustering",
              Method("spectral", "spectral clustering by normalised cut", ("pairs",))),
    Estimator("GenieLinkage", "clustering.genie", "Clustering",
              Method("genie", "hierarchical clustering with a limit on unequal sizes")),
    Estimator("LPIClustering", "clustering.documents", "Clustering",
              Method("lpi", "locality preserving indexing, for documents", ("pairs",))),
    Estimator("NLE", "embedding.nle", "Embeddings", Method("nle", "nonnegative Laplacian embedding", ("pairs",))),
    Estimator("GaussianMixture", "mixture.gaussian", "Mixtures", Method("gmm", "Gaussian mixture", _BOTH)),
    Estimator("EmbedKMeans", "clustering.embed_kmeans", "Clustering", Method("kmeans", "k-means")),
    Estimator("LPI", "embedding.lpi", "Embeddings"),
    Estimator("LaplacianEigenmaps", "embedding.eigenmaps", "Embeddings"),
    Estimator("HessianEigenmaps", "embedding.eigenmaps", "Embeddings"),
    Estimator("Whitening", "embedding.whitening", "Embeddings"),
    Estimator("Directions", "embedding.whitening", "Embeddings"),
    Estimator("LearnedLaplacian", "supervision.learned_laplacian", "Supervision"),
    Estimator("LLGC", "supervision.llgc", "Supervision"),
    Estimator("DocumentVectorizer", "text.documents", "Text", top_level=False),
    Estimator("TableEncoder", "table.encoder", "Tables", top_level=False),
    Estimator("KNNGraph", "graph.recipes", "Graphs"),
    Estimator("RadiusGraph", "graph.recipes", "Graphs"),
    Estimator("FullGraph", "graph.recipes", "Graphs"),
    Estimator("LandmarkGraph", "graph.kernels", "Graphs"),
    Estimator("LabelGraph", "graph.labels", "Graphs"),
)
# fmt: on

ESTIMATORS: dict[str, Estimator] = {row.name: row for row in _ROWS}


def register(row: Estimator) -> None:
    """Add an estimator while the program runs, for example one of another package."""
    ESTIMATORS[row.name] = row


def import_papers(module: str = "") -> ModuleType | None:
    """Import ``fiedler_papers``, which registers its estimators, or a module of it; None if it is not installed."""
    if find_spec("fiedler_papers") is None:
        return None
    return import_module(f"fiedler_papers.{module}" if module else "fiedler_papers")


def public_names() -> dict[str, str]:
    """Names that ``fiedler`` exports, with the modules that define them."""
    functions = {name: f"fiedler.{module}" for name, module in EXPORTS.items()}
    return functions | {row.name: row.full_module for row in ESTIMATORS.values() if row.top_level}


def storable_classes() -> dict[str, str]:
    """Classes that a model file may name, with the modules that define them."""
    import_papers()
    return {**RECORDS, **SKLEARN_STEPS, **{row.name: row.full_module for row in ESTIMATORS.values()}}


def methods() -> dict[str, Estimator]:
    """Clusterers that the command line offers, by the value of ``--method``."""
    return {row.method.name: row for row in ESTIMATORS.values() if row.method is not None}
