"""Measure mixtures on a GPU: 1,000,000 x 50 rows, 20 clusters; compare the time per iteration with scikit-learn.

    python benchmarks/bench_gpu_mixture.py [--size 1000000] [--case steps]

The first table divides an iteration of GaussianMixture into its steps. "of peak" is the rate of a step relative to that
of a large single-precision product on the same card, counting 2 n K d² operations for either product, as a plain
implementation needs; ``--case steps`` prints only this table.

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
from fiedler.core.arrays import namespace, one_hot, sq_norms, standard_normal, to_numpy
from fiedler.core.linear import affine_map
from fiedler.metrics import clustering_accuracy
from fiedler.mixture.covariance import gaussians
from fiedler.mixture.em import GaussianHooks, MixtureProblem
from fiedler.mixture.statistics import component_blocks, weighted_statistics

DIMENSIONS, CLUSTERS = 50, 20
REPEATS, PEAK_SIZE = 10, 8192


def make_data(n, seed=0):
    """Draw curved clusters: Gaussians of different widths, whose second feature depends on the square of the first."""
    rng = np.random.RandomState(seed)
    y = rng.randint(CLUSTERS, size=n)
    X = rng.normal(size=(n, DIMENSIONS)) * rng.uniform(0.3, 1.0, size=(CLUSTERS, DIMENSIONS))[y]
    X[:, 1] += 0.5 * X[:, 0] ** 2
    return (X + rng.normal(scale=0.3, size=(CLUSTERS, DIMENSIONS))[y]).astype(np.float32), y


def median_seconds(function, synchronize):
    """Return the median time of a function, without its first call."""
    function()
    return float(np.median([timed(function, synchronize)[1] for _ in range(REPEATS)]))


def e_step_parts(X, model, prepared):
    """Return the product and the norms of the E-step as functions of no argument; the norms are those of one block."""
    xp, (k, d) = namespace(X), model.means.shape
    factors = xp.reshape(xp.astype(model.factors, X.dtype), (k * d, d))
    blocks, product = list(component_blocks(X, k)), affine_map(factors, factors[:, 0])
    white = xp.reshape(product(prepared[blocks[0], :]), (k, d, -1))

    def all_products():
        for rows in blocks:
            product(prepared[rows, :])

    def all_norms():
        for _ in blocks:
            sq_norms(white)

    return all_products, all_norms


def time_steps(name, X, y):
    """Time the steps of an iteration, one after the other."""
    X, synchronize = BACKENDS[name](X)
    n = X.shape[0]
    square = standard_normal((PEAK_SIZE, PEAK_SIZE), np.random.RandomState(0), X)
    peak = 2 * PEAK_SIZE**3 / median_seconds(lambda: square @ square, synchronize)
    problem = MixtureProblem(X, kind="full", ridge=0.05)
    if problem.prepared is None:
        raise SystemExit("the steps are measured with prepared rows; use a smaller --size")
    hooks = GaussianHooks(problem)
    state = hooks.start(0.7 * one_hot(y, CLUSTERS, X) + 0.3 / CLUSTERS)

    def sums():
        return weighted_statistics(X, state.resp, kind="full", origin=problem.origin, dtype=X.dtype)

    statistics = sums()
    model = gaussians(statistics, kind="full", ridge=0.05)
    log_joint = hooks.expect(model)
    new_state = hooks.refine(log_joint, state)
    e_product, e_norms = e_step_parts(X, model, problem.prepared)

    def iterate():
        log_joint = hooks.expect(hooks.maximize(state)[0])
        hooks.score(log_joint, hooks.refine(log_joint, state), state.resp)

    one_product = 2 * n * CLUSTERS * DIMENSIONS**2
    steps = {
        "M: sums": (sums, one_product),
        "M: components from sums": (lambda: gaussians(statistics, kind="full", ridge=0.05), 0),
        "M": (lambda: hooks.maximize(state), one_product),
        "E: product": (e_product, one_product),
        "E: norms": (e_norms, 0),
        "E": (lambda: hooks.expect(model), one_product),
        "memberships": (lambda: hooks.refine(log_joint, state), 0),
        "objective": (lambda: hooks.score(log_joint, new_state, state.resp), 0),
        "iteration": (iterate, 2 * one_product),
    }
    yield {"back end": name, "step": "a large product", "TFLOP/s": peak / 1e12}
    for step, (function, operations) in steps.items():
        seconds = median_seconds(function, synchronize)
        rate = {"TFLOP/s": operations / seconds / 1e12, "of peak": operations / seconds / peak} if operations else {}
        yield {"back end": name, "step": step, "ms": 1e3 * seconds} | rate


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
    X, y = make_data(options.size)
    print_table(row for name in DEVICES for row in time_steps(name, X, y))
    if options.case == "steps":
        return
    print_table(compare_with_cpu(*make_data(20_000)))
    print_table(time_fit(name, X, y) for name in DEVICES)
    print_table([*(row for name in DEVICES for row in time_iterations(name, X, y)), time_sklearn_iterations(X)])


if __name__ == "__main__":
    main()
