"""TDT2's thirty largest categories end to end, beside scikit-learn; and how LPI by regression grows with the corpus.

    FIEDLER_DATA=... python benchmarks/bench_documents.py
    python benchmarks/bench_documents.py --growth yes

9,394 documents of 36,771 terms, term frequencies at length one. The growth is measured on documents drawn from fifty
topics over 50,000 terms, about a hundred words each; the graph is given, so that the map alone is timed.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import scipy.sparse as sp
from measure import arguments, contest, measured
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from fiedler import LPI, EmbedKMeans, KNNGraph, LPIClustering
from fiedler.baselines import NMFClustering
from fiedler.core.rows import normalize_rows
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

K, TERMS, TOPICS, WORDS = 30, 50_000, 50, 100
SIZES = (12_500, 25_000, 50_000, 100_000)


def tdt2():
    data = load("tdt2", subset="top30")
    return normalize_rows(sp.csr_array(data.X.astype(np.float64))), data.y


def judge_labels(given, model):
    y = given[1]
    return {
        "AC": clustering_accuracy(y, model.labels_),
        "NMI": normalized_mutual_information(y, model.labels_),
    }


def fit(model, given):
    return model.fit(given[0])


MODELS = {
    "fiedler LPIClustering": LPIClustering(K, random_state=0),
    "fiedler LPI as published": EmbedKMeans(
        K, LPI(graph=KNNGraph(15, weight="dot")), n_components="k-1", random_state=0
    ),
    "scikit-learn TruncatedSVD + KMeans": EmbedKMeans(K, TruncatedSVD(), n_components="k", random_state=0),
    "scikit-learn NMF, argmax": NMFClustering(K, weight="none", random_state=0),
    "scikit-learn NMF, NCW weights": NMFClustering(K, random_state=0),
}


def corpus(n):
    """Sparse documents of their own topic, and a graph that joins each to ten others of it."""
    rng = np.random.RandomState(0)
    topic = np.sort(rng.randint(TOPICS, size=n))
    favourites = rng.randint(TERMS, size=(TOPICS, 500))
    own = favourites[topic[:, None], rng.randint(500, size=(n, WORDS // 2))]
    common = (TERMS * rng.power(0.2, size=(n, WORDS // 2))).astype(int)
    columns = np.concatenate([own, common], axis=1).ravel()
    X = sp.csr_array((np.ones(n * WORDS), (np.repeat(np.arange(n), WORDS), columns)), shape=(n, TERMS))
    rows = np.repeat(np.arange(n), 10)
    first = np.searchsorted(topic, topic)[rows]
    size = np.bincount(topic, minlength=TOPICS)[topic][rows]
    W = sp.csr_array((np.ones(10 * n), (rows, first + (rng.rand(10 * n) * size).astype(int))), shape=(n, n))
    W = sp.csr_array(W.maximum(W.T))
    W.setdiag(0)
    W.eliminate_zeros()
    bridges = sp.csr_array((np.ones(n), (np.arange(n), rng.permutation(n))), shape=(n, n))
    return normalize(X), sp.csr_array(W + 0.1 * (bridges + bridges.T)), topic


def learn(given):
    return LPI(TOPICS - 1, given[1], solver="regression", random_state=0).fit(given[0])


def judge_map(given, model):
    centres = np.array([model.embedding_[given[2] == t].mean(axis=0) for t in range(TOPICS)])
    nearest = ((model.embedding_[::97, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
    return {"non-zeros": int(given[0].nnz), "nearest mean is the topic's": float(np.mean(nearest == given[2][::97]))}


def run(prepare, work, judge):
    warnings.simplefilter("ignore")
    measured(prepare, work, judge)


def cases(growth):
    if growth:
        return {f"{n:,}": (functools.partial(run, functools.partial(corpus, n), learn, judge_map), 1) for n in SIZES}
    return {
        name: (functools.partial(run, tdt2, functools.partial(fit, model), judge_labels), 1)
        for name, model in MODELS.items()
    }


if __name__ == "__main__":
    options = arguments(growth={})
    if options.case:
        cases(options.growth)[options.case][0]()
    elif options.growth:
        contest(
            __file__, f"LPI by regression, {TERMS:,} terms, {TOPICS - 1} dimensions", cases(True), ["--growth", "yes"]
        )
    else:
        contest(__file__, "TDT2, thirty categories", cases(False))
