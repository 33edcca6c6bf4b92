"""One EM iteration at 100,000 x 30, K = 30, full covariances, beside scikit-learn's; and LapGMM's beside our own.

    python benchmarks/bench_mixture.py

Medians of several iterations; "of gemm" is the share of the rate of
a large matrix product that the textbook's 2 n K d² operations of the step reach, in the precision it works in (our
M-step in double, where it needs half of them). The peak is what one iteration allocates.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import sklearn.mixture
from measure import arguments, markdown

from fiedler import GaussianMixture, LapGMM
from fiedler.mixture.hooks import MixtureProblem

REPEATS = 7


def make(n, d, k, dtype):
    """Overlapping clusters, and memberships that are wrong for some rows."""
    rng = np.random.RandomState(0)
    y = rng.randint(k, size=n)
    X = rng.normal(size=(k, d))[y] + 0.6 * rng.normal(size=(n, d))
    wrong = np.where(rng.uniform(size=n) < 0.3, rng.randint(k, size=n), y)
    return X.astype(dtype), np.eye(k, dtype=dtype)[wrong]


def median(work):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def peak(work):
    """The most memory that one iteration allocates, in MB."""
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def gemm_rate(dtype, size=2000):
    A = np.random.RandomState(0).normal(size=(size, size)).astype(dtype)
    return 2 * size**3 / median(lambda: A @ A)


def ours(model, X, resp, graph):
    """M-step, E-step and the rest (memberships and score) in a loop as EM runs it: medians without the first rounds."""
    ridge = model.ridge * float(np.var(X, axis=0).mean())
    hooks = model._hooks(MixtureProblem(X, kind=model.covariance_type, ridge=ridge, graph=graph))
    state, times = hooks.start(resp), []
    for _ in range(2 + REPEATS):
        ticks = [time.perf_counter()]
        fitted, state = hooks.maximize(state)
        ticks.append(time.perf_counter())
        joint = hooks.expect(fitted)
        ticks.append(time.perf_counter())
        last, state = state, hooks.refine(joint, state)
        hooks.score(joint, state, last.resp)
        ticks.append(time.perf_counter())
        times.append(np.diff(ticks))

    def iteration():
        fitted, begun = hooks.maximize(state)
        joint = hooks.expect(fitted)
        hooks.score(joint, hooks.refine(joint, begun), begun.resp)

    return (*np.median(times[2:], axis=0), peak(iteration))


def theirs(X, resp):
    """scikit-learn's E-step (densities and responsibilities) and M-step, which an iteration of its ``fit`` calls."""
    model = sklearn.mixture.GaussianMixture(resp.shape[1], reg_covar=0.05)
    model._initialize(X, resp)
    _, log_resp = model._e_step(X)
    peak_mb = peak(lambda: model._m_step(X, model._e_step(X)[1]))
    return median(lambda: model._m_step(X, log_resp)), median(lambda: model._e_step(X)), 0.0, peak_mb


def table(n, d, k, dtype):
    X, resp = make(n, d, k, dtype)
    graph = LapGMM()._recipe().build(X)
    rate, double = gemm_rate(dtype), gemm_rate(np.float64)
    measured = {
        "scikit-learn GaussianMixture": theirs(X, resp),
        "fiedler GaussianMixture": ours(GaussianMixture(k), X, resp, None),
        "fiedler LapGMM": ours(LapGMM(k, lam=1.0), X, resp, graph),
    }
    peer = sum(measured["scikit-learn GaussianMixture"][:3])
    for name, (m, e, rest, peak_mb) in measured.items():
        total = m + e + rest
        yield {
            "dtype": np.dtype(dtype).name,
            "model": name,
            "M_s": m,
            "E_s": e,
            "rest_s": rest,
            "iteration_s": total,
            "times faster": peer / total,
            "M of gemm": 2 * n * k * d * d / m / (rate if "scikit" in name else double),
            "E of gemm": 2 * n * k * d * d / e / rate,
            "peak_mb": peak_mb,
        }


def main():
    options = arguments(size={"type": int, "default": 100_000})
    print(markdown([row for dtype in (np.float32, np.float64) for row in table(options.size, 30, 30, dtype)]))


if __name__ == "__main__":
    main()
