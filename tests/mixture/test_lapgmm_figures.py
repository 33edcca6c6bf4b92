"""LapGMM with defaults on the papers' data. benchmarks/quality_mixture.py gives the means over five seeds."""

import os

import pytest

from fiedler import LapGMM
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information


@pytest.mark.parametrize(
    ("name", "accuracy", "information"),
    [
        ("digits", 0.89, 0.87),
        pytest.param("coil20", 0.83, 0.90, marks=pytest.mark.slow),
        pytest.param("usps", 0.94, 0.88, marks=pytest.mark.slow),
    ],
)
def test_defaults_reach_the_figures(name, accuracy, information):
    if name != "digits" and "FIEDLER_DATA" not in os.environ:
        pytest.skip("FIEDLER_DATA is not set")
    data = load(name)
    X = (data.X + 1) / 2 if name == "usps" else data.X
    X = (X / (X**2).sum(axis=1, keepdims=True) ** 0.5).astype("float32")
    model = LapGMM(len(data.target_names), pca=0.98, random_state=0).fit(X)

    assert clustering_accuracy(data.y, model.labels_) >= accuracy
    assert normalized_mutual_information(data.y, model.labels_) >= information
    if name == "usps":  # memberships can be believed
        confidence = float(model.memberships_.max(axis=1).mean())
        assert abs(confidence - clustering_accuracy(data.y, model.labels_)) < 0.03
