"""Accuracy and NMI of the mixtures with defaults on the papers' data: means over five seeds, only K and pca given.

    FIEDLER_DATA=... python benchmarks/quality_mixture.py [--data usps coil20 digits tdt2] [--seeds 5]

Rows at unit length (USPS from [0, 1], TDT2's thirty largest categories by tf-idf); pca keeps 98 % of the variance, or
100 components of the sparse text. "paper" is LapGMM as published: k-means start, 8 binary neighbours, λ = 10.
No fit sees a label; docs/mixtures.md says how the defaults were chosen.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import scipy.sparse as sp
from measure import arguments, markdown
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from fiedler import LCGMM, GaussianMixture, KNNGraph, LapGMM
from fiedler.core.backend import to_numpy
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

PCA = {"tdt2": 100}

MODELS = {
    "GaussianMixture": lambda k, **given: GaussianMixture(k, **given),
    "LCGMM": lambda k, **given: LCGMM(k, **given),
    "LCGMM, k-means start": lambda k, **given: LCGMM(k, init="kmeans", **given),
    "LapGMM": lambda k, **given: LapGMM(k, **given),
    "LapGMM, paper": lambda k, **given: LapGMM(k, KNNGraph(8), lam=10.0, init="kmeans", n_smooth=10, **given),
}


def rows(name):
    """The data as the papers prepare it."""
    data = load(name, subset="top30") if name == "tdt2" else load(name)
    if name == "tdt2":
        return sp.csr_array(TfidfTransformer().fit_transform(data.X.astype(np.float64))), data.y
    X = (data.X + 1) / 2 if name == "usps" else data.X
    return normalize(X).astype(np.float32), data.y


def score(model, X, y):
    start = time.perf_counter()
    labels = model.fit(X).labels_
    confidence = float(to_numpy(model.memberships_).max(axis=1).mean())
    seconds = time.perf_counter() - start
    return clustering_accuracy(y, labels), normalized_mutual_information(y, labels), confidence, seconds


def main():
    warnings.simplefilter("ignore")
    options = arguments(
        data={"nargs": "+", "default": ["digits", "coil20", "usps", "tdt2"]},
        models={"nargs": "+", "default": list(MODELS)},
        seeds={"type": int, "default": 5},
    )
    table = []
    for name in options.data:
        X, y = rows(name)
        for label in options.models:
            make = MODELS[label]
            runs = [
                score(make(len(np.unique(y)), pca=PCA.get(name, 0.98), random_state=seed), X, y)
                for seed in range(options.seeds)
            ]
            ac, nmi, confidence, seconds = np.mean(runs, axis=0)
            table.append({"data": name, "model": label, "AC": ac, "NMI": nmi, "confidence": confidence, "s": seconds})
            print(table[-1], flush=True)
    print(markdown(table))


if __name__ == "__main__":
    main()
