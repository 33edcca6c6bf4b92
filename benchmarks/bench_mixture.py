"""One EM iteration at 100,000 x 30, K = 30, full covariances, beside scikit-learn's; and LapGMM's beside our own.

    python benchmarks/bench_mixture.py

Steps are timed one by one on the same rows and memberships, the best of several; "of gemm" is the share of the rate of
a large matrix product in the same precision that the step's 2 n K d² multiplications reach.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import sklearn.mixture
from measure import arguments, markdown

from fiedler import GaussianMixture, KNNGraph, LapGMM

REPEATS = 7


def make(n, d, k, dtype):
    """Overlapping clusters, and memberships that are wrong for some rows."""
    rng = np.random.RandomState(0)
    y = rng.randint(k, size=n)
    X = rng.normal(size=(k, d))[y] + 0.6 * rng.normal(size=(n, d))
    wrong = np.where(rng.uniform(size=n) < 0.3, rng.randint(k, size=n), y)
    return X.astype(dtype), np.eye(k, dtype=dtype)[wrong]


def best(work):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def gemm_rate(dtype, size=2000):
    A = np.random.RandomState(0).normal(size=(size, size)).astype(dtype)
    return 2 * size**3 / best(lambda: A @ A)


def ours(model, X, resp, graph):
    """The four hooks of an iteration."""
    k = resp.shape[1]
    hooks = model._hooks(model._plain_options(X, X, k, None, None), X, graph)
    fitted = hooks.maximise(resp)
    joint = hooks.expect(fitted)
    new = hooks.refine(joint, resp)
    hooks.score(joint, new, resp)

    def again():  # from other memberships each time, so that no product is at hand from the last
        return hooks.score(joint, hooks.refine(joint, resp + 0.0), resp)

    return best(lambda: hooks.maximise(resp)), best(lambda: hooks.expect(fitted)), best(again)


def theirs(X, resp):
    """scikit-learn's E-step (densities and responsibilities) and M-step, which an iteration of its ``fit`` calls."""
    model = sklearn.mixture.GaussianMixture(resp.shape[1], reg_covar=0.05)
    model._initialize(X, resp)
    _, log_resp = model._e_step(X)
    return best(lambda: model._m_step(X, log_resp)), best(lambda: model._e_step(X)), 0.0


def table(n, d, k, dtype):
    X, resp = make(n, d, k, dtype)
    graph = KNNGraph(9, weight="local", symmetrize="mean").build(X)
    rate = gemm_rate(dtype)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    measured = {
        "scikit-learn GaussianMixture": theirs(X, resp),
        "fiedler GaussianMixture": ours(GaussianMixture(k), X, resp, None),
        "fiedler LapGMM": ours(LapGMM(k), X, resp, graph),
    }
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    peer = sum(measured["scikit-learn GaussianMixture"])
    for name, (m, e, rest) in measured.items():
        total = m + e + rest
        yield {
            "dtype": np.dtype(dtype).name,
            "model": name,
            "M_s": m,
            "E_s": e,
            "rest_s": rest,
            "iteration_s": total,
            "times faster": peer / total,
            "M of gemm": 2 * n * k * d * d / m / rate,
            "E of gemm": 2 * n * k * d * d / e / rate,
            "memory grown by (GB, all)": grown,
        }


def main():
    options = arguments(size={"type": int, "default": 100_000})
    print(markdown([row for dtype in (np.float32, np.float64) for row in table(options.size, 30, 30, dtype)]))


if __name__ == "__main__":
    main()
