"""Compare one EM iteration of GaussianMixture and LapGMM with scikit-learn: 100,000 x 30, K = 30, full covariances.

    python benchmarks/bench_mixture.py

Times are medians of several iterations. "M of gemm" and "E of gemm" are the rates of the two steps relative to that
of a large matrix product in the same precision, counting 2 n K d² operations per step (fiedler's M-step is compared in
double precision and needs half of them). The peak is the memory that one iteration allocates.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import sklearn.mixture
from measure import markdown_table, parse_arguments

from fiedler import GaussianMixture, LapGMM
from fiedler.mixture.em import MixtureProblem

REPEATS = 7


def make_data(n, d, k, dtype):
    """Draw overlapping clusters; return rows and one-hot memberships, of which 30 % are random."""
    rng = np.random.RandomState(0)
    y = rng.randint(k, size=n)
    X = rng.normal(size=(k, d))[y] + 0.6 * rng.normal(size=(n, d))
    labels = np.where(rng.uniform(size=n) < 0.3, rng.randint(k, size=n), y)
    return X.astype(dtype), np.eye(k, dtype=dtype)[labels]


def median_seconds(function):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def peak_memory_mb(function):
    """Return the largest amount of memory that a function allocates, in MB."""
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def gemm_rate(dtype, size=2000):
    """Return the operations per second of a matrix product."""
    A = np.random.RandomState(0).normal(size=(size, size)).astype(dtype)
    return 2 * size**3 / median_seconds(lambda: A @ A)


def measure_fiedler(model, X, resp, graph):
    """Return the median seconds of M-step, E-step and the rest (memberships and objective), and the peak memory.

    The steps run in a loop as in ``fit``; the first two iterations are not counted.
    """
    ridge = model._relative_ridge(*X.shape) * float(np.var(X, axis=0).mean())
    hooks = model._hooks(MixtureProblem(X, kind=model.covariance_type, ridge=ridge, graph=graph))
    state, times = hooks.start(resp), []
    for _ in range(2 + REPEATS):
        ticks = [time.perf_counter()]
        components, state = hooks.maximize(state)
        ticks.append(time.perf_counter())
        log_joint = hooks.expect(components)
        ticks.append(time.perf_counter())
        last_resp, state = state.resp, hooks.refine(log_joint, state)
        hooks.score(log_joint, state, last_resp)
        ticks.append(time.perf_counter())
        times.append(np.diff(ticks))

    def iterate():
        components, start_state = hooks.maximize(state)
        log_joint = hooks.expect(components)
        hooks.score(log_joint, hooks.refine(log_joint, start_state), start_state.resp)

    return (*np.median(times[2:], axis=0), peak_memory_mb(iterate))


def measure_sklearn(X, resp):
    """Return the same figures for scikit-learn, whose E-step includes the memberships and the objective."""
    model = sklearn.mixture.GaussianMixture(resp.shape[1], reg_covar=0.05)
    model._initialize(X, resp)
    _, log_resp = model._e_step(X)
    peak_mb = peak_memory_mb(lambda: model._m_step(X, model._e_step(X)[1]))
    m_seconds, e_seconds = median_seconds(lambda: model._m_step(X, log_resp)), median_seconds(lambda: model._e_step(X))
    return m_seconds, e_seconds, 0.0, peak_mb


def make_rows(n, d, k, dtype):
    X, resp = make_data(n, d, k, dtype)
    graph = LapGMM()._recipe().build(X)
    rate, double_rate = gemm_rate(dtype), gemm_rate(np.float64)
    figures = {
        "scikit-learn GaussianMixture": measure_sklearn(X, resp),
        "fiedler GaussianMixture": measure_fiedler(GaussianMixture(k), X, resp, None),
        "fiedler LapGMM": measure_fiedler(LapGMM(k, lam=1.0), X, resp, graph),
    }
    sklearn_seconds = sum(figures["scikit-learn GaussianMixture"][:3])
    for name, (m_seconds, e_seconds, rest_seconds, peak_mb) in figures.items():
        total = m_seconds + e_seconds + rest_seconds
        yield {
            "dtype": np.dtype(dtype).name,
            "model": name,
            "M_s": m_seconds,
            "E_s": e_seconds,
            "rest_s": rest_seconds,
            "iteration_s": total,
            "speed-up": sklearn_seconds / total,
            "M of gemm": 2 * n * k * d * d / m_seconds / (rate if "scikit" in name else double_rate),
            "E of gemm": 2 * n * k * d * d / e_seconds / rate,
            "peak_mb": peak_mb,
        }


def main():
    options = parse_arguments(size={"type": int, "default": 100_000})
    rows = [row for dtype in (np.float32, np.float64) for row in make_rows(options.size, 30, 30, dtype)]
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
