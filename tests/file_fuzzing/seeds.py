"""Valid files from which mutations start: small models of every class, graphs, and summaries of reports."""

import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import NMF, PCA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import fiedler
from fiedler import EmbedKMeans, FullGraph, KNNGraph, LapGMM, ManifoldClustering, RadiusGraph, SpectralClustering
from fiedler.graph import LabelGraph
from fiedler.report import summarize, write_summary
from fiedler.text import DocumentVectorizer
from fiedler_papers.baselines import TransductiveSVM
from registry_instances import check_instances

QUICK = ("SpectralClustering", "GaussianMixture", "EmbedKMeans", "LLGC", "Pipeline", "MPCKMeans", "LPI")
N_NEW = 3  # rows that a loaded model predicts


class Seed(NamedTuple):
    """A valid file, and rows that its model can predict.

    Attributes
    ----------
    kind : {'model', 'graph', 'summary'}
    name : str
    content : bytes
    rows : list or array
    """

    kind: str
    name: str
    content: bytes
    rows: Any = None


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(0)
    return np.abs(np.concatenate([rng.normal(size=(8, 3)) + 4 * i for i in range(3)])), np.repeat([0, 1, 2], 8)


def _models() -> list[tuple[Any, Any, Any]]:
    """Return models that are not fitted, rows and labels."""
    X, y = _rows()
    models = [clone(one) for one in check_instances() if not isinstance(one, TransductiveSVM)]
    models += [
        SpectralClustering(3, graph=graph)
        for graph in (RadiusGraph(3.0), FullGraph("heat"), KNNGraph(3, weight="local"))
    ]
    models += [
        ManifoldClustering("auto", max_clusters=4),
        ManifoldClustering(3, graph=FullGraph("dot"), random_state=np.random.RandomState(0)),
        LapGMM(3, covariance_type="tied", pca=2, lam="auto"),
        LapGMM(3, covariance_type="diag", operator="heat"),
        LapGMM(3, covariance_type="spherical", random_state=3),
        EmbedKMeans(3, embedding=PCA(), n_components="k-1", metric="cosine"),
        fiedler.LLGC(graph=LabelGraph(base=KNNGraph(4))),
        *(make_pipeline(step, EmbedKMeans(3)) for step in (StandardScaler(), MinMaxScaler(), Normalizer())),
        *(make_pipeline(step, EmbedKMeans(2)) for step in (NMF(2, max_iter=500), TruncatedSVD(2))),
    ]
    cases = [(model, X, y) for model in models]
    texts = ["stars and planets", "a planet and its star", "bread and butter", "butter on fresh bread"] * 3
    cases += [
        (make_pipeline(DocumentVectorizer(weight="tfidf"), EmbedKMeans(2)), texts, None),
        (make_pipeline(DocumentVectorizer(n_hash_features=16), EmbedKMeans(2)), texts, None),
        (SpectralClustering(2), sp.csr_array(X), None),
        (ManifoldClustering(3), np.concatenate([X, X[:6]]), None),
    ]
    pandas = __import__("pandas")
    frame = pandas.DataFrame(X.copy(), columns=["a", "b", "c"]).assign(d=np.array(["x", "yy", "z"])[y])
    frame.loc[2, "a"] = np.nan
    return [*cases, (ManifoldClustering(3), frame, None)]


@cache
def make_seeds(quick: bool = False) -> list[Seed]:
    """Return all valid files, or those that are made quickly."""
    seeds = []
    cases = [case for case in _models() if not quick or type(case[0]).__name__ in QUICK]
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "seed.npz"
        for model, X, y in cases:
            if "random_state" in model.get_params() and model.random_state is None:
                model.set_params(random_state=0)
            fiedler.save(model.fit(X, y), path, notes={"columns": ["a"], "n": 3})
            seeds.append(Seed("model", str(model), path.read_bytes(), X[:N_NEW]))
        for recipe in (KNNGraph(3), KNNGraph(3, weight="local"), FullGraph("heat"), LabelGraph()):
            is_labelled = isinstance(recipe, LabelGraph)
            (recipe.build(*_rows()) if is_labelled else recipe.build(_rows()[0])).save(path)
            seeds.append(Seed("graph", str(recipe), path.read_bytes()))
        for model, X, _ in cases[:1]:
            write_summary(summarize(model, X), Path(folder) / "summary.json")
            seeds.append(Seed("summary", str(model), (Path(folder) / "summary.json").read_bytes()))
    return seeds
