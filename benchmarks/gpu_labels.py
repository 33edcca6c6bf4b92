"""Compare the labels and memberships of every clusterer on a GPU with those of NumPy.

    PYTHONPATH=tests python benchmarks/gpu_labels.py [--libraries torch cupy]

Digits (the first 150 rows and all), iris and standardised wine. Prints each fit that differs, and a line for each
library: the number of fits, of equal labels, and the largest difference of memberships.
"""

from __future__ import annotations

import argparse
import importlib
import warnings

import numpy as np
from sklearn.base import clone, is_clusterer
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from contract import INSTANCES, fit, rows_for
from fiedler.core.arrays import to_numpy
from fiedler.errors import InputError


def data_sets():
    """Return rows and numbers of clusters by name."""
    digits, wine = load_digits().data, StandardScaler().fit_transform(load_wine().data)
    return {"150 digits": (digits[:150], 6), "digits": (digits, 10), "iris": (load_iris().data, 3), "wine": (wine, 3)}


def to_device(library, rows):
    """Return rows as an array of a library on the GPU."""
    module = importlib.import_module(library)
    options = {"device": "cuda"} if library == "torch" else {}
    return module.asarray(np.ascontiguousarray(rows), **options)


def difference(ours, reference):
    """Return whether labels are equal, and the largest difference of memberships."""
    equal = np.array_equal(to_numpy(ours.labels_), to_numpy(reference.labels_))
    if not hasattr(reference, "memberships_"):
        return equal, 0.0
    return equal, float(np.abs(to_numpy(ours.memberships_) - to_numpy(reference.memberships_)).max())


def compare(library):
    """Yield the clusterer, the data and the difference, of each fit that the clusterer supports."""
    for model in filter(is_clusterer, INSTANCES):
        for name, (X, k) in data_sets().items():
            seed = {"random_state": 0} if "random_state" in model.get_params() else {}
            one = clone(model).set_params(n_clusters=k, **seed)
            rows = rows_for(one, X)
            try:
                ours = fit(clone(one), to_device(library, rows))
            except InputError:  # takes arrays of NumPy alone
                continue
            yield repr(model), name, *difference(ours, fit(one, rows))


def main():
    """Print what differs, and a summary for each library."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libraries", nargs="+", default=["torch", "cupy"])
    warnings.simplefilter("ignore")
    for library in parser.parse_args().libraries:
        found = list(compare(library))
        for model, name, equal, largest in found:
            if not equal or largest > 1e-5:
                print(f"{library}, {model}, {name}: labels {'equal' if equal else 'differ'}, memberships {largest:.1e}")
        n_equal, largest = sum(row[2] for row in found), max(row[3] for row in found)
        print(f"{library}: {len(found)} fits, {n_equal} with equal labels, memberships within {largest:.0e}")


if __name__ == "__main__":
    main()
