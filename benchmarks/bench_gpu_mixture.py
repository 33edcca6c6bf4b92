"""LapGMM on a device: 1,000,000 x 50 rows, 20 clusters, from data to labels in one call; an iteration beside a peer's.

    python benchmarks/bench_gpu_mixture.py [--size 1000000]

Needs a CUDA device; a back end that is missing is left out. The peer is scikit-learn's GaussianMixture on torch arrays.
"""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import sklearn
import sklearn.mixture
from bench_gpu import BACKENDS, timed
from measure import arguments, markdown
from sklearn.base import clone

from fiedler import GaussianMixture, LapGMM
from fiedler.core.backend import to_numpy
from fiedler.metrics import clustering_accuracy

DIMENSIONS, CLUSTERS = 50, 20
DEVICES = [name for name in ("torch", "cupy") if importlib.util.find_spec(name)]


def make(n, seed=0):
    """Bent clusters: Gaussians of different widths, each curved along its first axis."""
    rng = np.random.RandomState(seed)
    y = rng.randint(CLUSTERS, size=n)
    X = rng.normal(size=(n, DIMENSIONS)) * rng.uniform(0.3, 1.0, size=(CLUSTERS, DIMENSIONS))[y]
    X[:, 1] += 0.5 * X[:, 0] ** 2
    return (X + rng.normal(scale=0.3, size=(CLUSTERS, DIMENSIONS))[y]).astype(np.float32), y


def whole_fit(name, X, y):
    """Defaults, from data to labels: graph, communities, λ and EM, all on the device."""
    own, synchronize = BACKENDS[name](X)
    LapGMM(CLUSTERS, random_state=0).fit(own[:4000])
    model, seconds = timed(lambda: LapGMM(CLUSTERS, random_state=0).fit(own), synchronize)
    accuracy = clustering_accuracy(y, to_numpy(model.labels_))
    place = str(getattr(model.memberships_, "device", "host"))
    return {"back end": name, "fit_s": seconds, "AC": accuracy, "iterations": model.n_iter_, "memberships on": place}


def seconds_per_iteration(fit, synchronize, few=3, many=13):
    """From the difference of two fits, so that the set-up does not count."""
    fit(few)
    (a, short), (b, long) = timed(lambda: fit(few), synchronize), timed(lambda: fit(many), synchronize)
    return (long - short) / (b.n_iter_ - a.n_iter_)


def iterations(name, X, y):
    """Ours with and without the graph, from the same labels, a third of them wrong."""
    own, synchronize = BACKENDS[name](X)
    graph = LapGMM()._recipe().build(own)
    rng = np.random.RandomState(0)
    start = np.where(rng.uniform(size=len(y)) < 0.3, rng.randint(CLUSTERS, size=len(y)), y)
    models = {"GaussianMixture": GaussianMixture(CLUSTERS), "LapGMM": LapGMM(CLUSTERS, graph, lam=3.0)}
    for label, model in models.items():
        model.set_params(init=start, tol=1e-300)
        yield {
            "back end": name,
            "model": f"fiedler {label}",
            "s an iteration": seconds_per_iteration(
                lambda m, e=model: clone(e).set_params(max_iter=m).fit(own), synchronize
            ),
        }


def peer(X):
    """scikit-learn's mixture on torch arrays."""
    own, synchronize = BACKENDS["torch"](X)

    def fit(max_iter):
        model = sklearn.mixture.GaussianMixture(
            CLUSTERS, tol=0.0, max_iter=max_iter, init_params="random_from_data", reg_covar=0.05, random_state=0
        )
        with sklearn.config_context(array_api_dispatch=True):
            return model.fit(own)

    return {
        "back end": "torch",
        "model": f"scikit-learn {sklearn.__version__} GaussianMixture",
        "s an iteration": seconds_per_iteration(fit, synchronize),
    }


def parity(X, y):
    """The same start and graph on the host and on the devices."""
    start = np.where(np.arange(len(y)) % 3 == 0, (y + 1) % CLUSTERS, y)
    host = None
    for name in ("numpy", *DEVICES):
        own, _ = BACKENDS[name](X)
        graph = LapGMM()._recipe().set_params(method="exact").build(own)
        Q = to_numpy(LapGMM(CLUSTERS, graph, lam=3.0, init=start).fit(own).memberships_)
        host = Q if host is None else host
        same = float(np.mean(Q.argmax(axis=1) == host.argmax(axis=1)))
        yield {"back end": name, "largest difference": float(np.abs(Q - host).max()), "labels in common": same}


def show(rows):
    rows = list(rows)
    print(markdown(rows), flush=True)


def main():
    warnings.simplefilter("ignore")
    options = arguments(size={"type": int, "default": 1_000_000})
    show(parity(*make(20_000)))
    X, y = make(options.size)
    show(whole_fit(name, X, y) for name in DEVICES)
    show([*(row for name in DEVICES for row in iterations(name, X, y)), peer(X)])


if __name__ == "__main__":
    main()
