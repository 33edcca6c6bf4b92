"""Measure LapGMM on a GPU: 1,000,000 x 50 rows, 20 clusters; compare the time per iteration with scikit-learn.

    python benchmarks/bench_gpu_mixture.py [--size 1000000]

Needs a CUDA device; back ends that are not installed are skipped. scikit-learn's GaussianMixture runs on torch arrays.
"""

from __future__ import annotations

import warnings

import numpy as np
import sklearn
import sklearn.mixture
from bench_gpu import BACKENDS, timed
from bench_gpu_cuts import DEVICES
from measure import markdown_table, parse_arguments
from sklearn.base import clone

from fiedler import GaussianMixture, LapGMM
from fiedler.core.backend import to_numpy
from fiedler.metrics import clustering_accuracy

DIMENSIONS, CLUSTERS = 50, 20


def make_data(n, seed=0):
    """Draw curved clusters: Gaussians of different widths, whose second feature depends on the square of the first."""
    rng = np.random.RandomState(seed)
    y = rng.randint(CLUSTERS, size=n)
    X = rng.normal(size=(n, DIMENSIONS)) * rng.uniform(0.3, 1.0, size=(CLUSTERS, DIMENSIONS))[y]
    X[:, 1] += 0.5 * X[:, 0] ** 2
    return (X + rng.normal(scale=0.3, size=(CLUSTERS, DIMENSIONS))[y]).astype(np.float32), y


def time_fit(name, X, y):
    """Time a fit with defaults: graph, communities, choice of λ and EM, all on the device."""
    X_device, synchronize = BACKENDS[name](X)
    LapGMM(CLUSTERS, random_state=0).fit(X_device[:4000])
    model, seconds = timed(lambda: LapGMM(CLUSTERS, random_state=0).fit(X_device), synchronize)
    accuracy = clustering_accuracy(y, to_numpy(model.labels_))
    device = str(getattr(model.memberships_, "device", "host"))
    return {"back end": name, "fit_s": seconds, "AC": accuracy, "iterations": model.n_iter_, "memberships on": device}


def seconds_per_iteration(fit, synchronize, few=3, many=13):
    """Return the time per iteration from the difference of two fits, so that initialisation is not included."""
    fit(few)
    short_model, short_s = timed(lambda: fit(few), synchronize)
    long_model, long_s = timed(lambda: fit(many), synchronize)
    return (long_s - short_s) / (long_model.n_iter_ - short_model.n_iter_)


def time_iterations(name, X, y):
    """Time an iteration of fiedler's mixtures with and without the graph; 30 % of the initial labels are random."""
    X_device, synchronize = BACKENDS[name](X)
    graph = LapGMM()._recipe().build(X_device)
    rng = np.random.RandomState(0)
    init = np.where(rng.uniform(size=len(y)) < 0.3, rng.randint(CLUSTERS, size=len(y)), y)
    models = {"GaussianMixture": GaussianMixture(CLUSTERS), "LapGMM": LapGMM(CLUSTERS, graph, lam=3.0)}
    for label, model in models.items():
        model.set_params(init=init, tol=1e-300)
        yield {
            "back end": name,
            "model": f"fiedler {label}",
            "s per iteration": seconds_per_iteration(
                lambda max_iter, model=model: clone(model).set_params(max_iter=max_iter).fit(X_device), synchronize
            ),
        }


def time_sklearn_iterations(X):
    """Time an iteration of scikit-learn's mixture on torch arrays."""
    X_device, synchronize = BACKENDS["torch"](X)

    def fit(max_iter):
        model = sklearn.mixture.GaussianMixture(
            CLUSTERS, tol=0.0, max_iter=max_iter, init_params="random_from_data", reg_covar=0.05, random_state=0
        )
        with sklearn.config_context(array_api_dispatch=True):
            return model.fit(X_device)

    return {
        "back end": "torch",
        "model": f"scikit-learn {sklearn.__version__} GaussianMixture",
        "s per iteration": seconds_per_iteration(fit, synchronize),
    }


def compare_with_cpu(X, y):
    """Fit from the same initial labels on the CPU and on the devices, and compare the memberships."""
    init = np.where(np.arange(len(y)) % 3 == 0, (y + 1) % CLUSTERS, y)
    reference = None
    for name in ("numpy", *DEVICES):
        X_device, _ = BACKENDS[name](X)
        graph = LapGMM()._recipe().set_params(method="exact").build(X_device)
        Q = to_numpy(LapGMM(CLUSTERS, graph, lam=3.0, init=init).fit(X_device).memberships_)
        reference = Q if reference is None else reference
        agreement = float(np.mean(Q.argmax(axis=1) == reference.argmax(axis=1)))
        difference = float(np.abs(Q - reference).max())
        yield {"back end": name, "largest difference": difference, "labels in common": agreement}


def print_table(rows):
    print(markdown_table(list(rows)), flush=True)


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(size={"type": int, "default": 1_000_000})
    print_table(compare_with_cpu(*make_data(20_000)))
    X, y = make_data(options.size)
    print_table(time_fit(name, X, y) for name in DEVICES)
    print_table([*(row for name in DEVICES for row in time_iterations(name, X, y)), time_sklearn_iterations(X)])


if __name__ == "__main__":
    main()
