"""Compare LPIClustering with scikit-learn on TDT2; measure how the time of LPI grows with the number of documents.

    FIEDLER_DATA=... python benchmarks/bench_documents.py
    python benchmarks/bench_documents.py --growth yes

The thirty largest categories of TDT2 have 9,394 documents with 36,771 terms; term frequencies are scaled to unit
length. Growth is measured for LPI by regression on synthetic documents of about a hundred words, from fifty topics and
50,000 terms. The graph is built beforehand and its time is not included.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import scipy.sparse as sp
from measure import compare_methods, measure_case, parse_arguments
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from fiedler import LPI, EmbedKMeans, KNNGraph, LPIClustering
from fiedler.core.arrays import normalize_rows
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information
from fiedler_papers.baselines import NMFClustering

K, TERMS, TOPICS, WORDS = 30, 50_000, 50, 100
SIZES = (12_500, 25_000, 50_000, 100_000)


def load_tdt2():
    data = load("tdt2", subset="top30")
    return normalize_rows(sp.csr_array(data.X.astype(np.float64))), data.y


def fit_model(model, data):
    X, _ = data
    return model.fit(X)


def evaluate_labels(data, model):
    _, y = data
    return {
        "AC": clustering_accuracy(y, model.labels_),
        "NMI": normalized_mutual_information(y, model.labels_),
    }


MODELS = {
    "fiedler LPIClustering": LPIClustering(K, random_state=0),
    "fiedler LPI as published": EmbedKMeans(
        K, LPI(graph=KNNGraph(15, weight="dot")), n_components="k-1", random_state=0
    ),
    "scikit-learn TruncatedSVD + KMeans": EmbedKMeans(K, TruncatedSVD(), n_components="k", random_state=0),
    "scikit-learn NMF, argmax": NMFClustering(K, weight="none", random_state=0),
    "scikit-learn NMF, NCW weights": NMFClustering(K, random_state=0),
}


def make_corpus(n):
    """Return sparse documents, a graph that joins each to ten others of its topic, and the topics.

    Half of the words of a document are drawn from 500 terms of its topic, the others from all terms.
    """
    rng = np.random.RandomState(0)
    topic = np.sort(rng.randint(TOPICS, size=n))
    topic_terms = rng.randint(TERMS, size=(TOPICS, 500))
    topic_words = topic_terms[topic[:, None], rng.randint(500, size=(n, WORDS // 2))]
    common_words = (TERMS * rng.power(0.2, size=(n, WORDS // 2))).astype(int)
    columns = np.concatenate([topic_words, common_words], axis=1).ravel()
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


def fit_lpi(data):
    X, W, _ = data
    return LPI(TOPICS - 1, W, solver="regression", random_state=0).fit(X)


def evaluate_embedding(data, model):
    """Classify every 97th document by the nearest mean of a topic in the embedding."""
    X, _, topic = data
    means = np.array([model.embedding_[topic == t].mean(axis=0) for t in range(TOPICS)])
    nearest = ((model.embedding_[::97, None, :] - means) ** 2).sum(axis=2).argmin(axis=1)
    return {"non-zeros": int(X.nnz), "accuracy of nearest topic mean": float(np.mean(nearest == topic[::97]))}


def run(prepare, method, evaluate):
    warnings.simplefilter("ignore")
    measure_case(prepare, method, evaluate)


def make_cases(growth):
    if growth:
        return {
            f"{n:,}": (functools.partial(run, functools.partial(make_corpus, n), fit_lpi, evaluate_embedding), 1)
            for n in SIZES
        }
    return {
        name: (functools.partial(run, load_tdt2, functools.partial(fit_model, model), evaluate_labels), 1)
        for name, model in MODELS.items()
    }


def main():
    options = parse_arguments(growth={})
    cases = make_cases(options.growth)
    if options.case:
        cases[options.case][0]()
    elif options.growth:
        title = f"LPI by regression, {TERMS:,} terms, {TOPICS - 1} dimensions"
        compare_methods(__file__, title, cases, ["--growth", "yes"])
    else:
        compare_methods(__file__, "TDT2, thirty categories", cases)


if __name__ == "__main__":
    main()
