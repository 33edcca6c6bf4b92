"""New rows of models of tables of numbers: missing values and columns are estimated."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler.errors import FiedlerWarning, InputError
from fiedler.metrics import adjusted_rand_index
from fiedler.table import TableEncoder
from fiedler.table.completion import MAX_COLUMNS


@pytest.fixture
def rows():
    """Two groups, and a third column that follows from the first two."""
    rng = np.random.RandomState(0)
    group = np.arange(120) % 2
    X = rng.normal(size=(120, 2)) + 8 * group[:, None]
    return np.column_stack([X, 100 + 5 * X[:, 0] - 2 * X[:, 1]]), group


def frame_of(X):
    return pd.DataFrame(X, columns=["width", "height", "price"])


def test_missing_values_are_those_expected_from_the_others(rows):
    X, _ = rows
    encoder = TableEncoder(scale="standard").fit(frame_of(X))
    broken = X.copy()
    broken[3, 2], broken[7, 0] = np.nan, np.nan

    filled = encoder.complete(frame_of(broken))

    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    covariance = np.cov(standardised.T, bias=True) + 0.01 * np.eye(3)
    expected = standardised[3, :2] @ np.linalg.solve(covariance[:2, :2], covariance[:2, 2])
    assert_allclose(filled[3, 2], expected * X[:, 2].std() + X[:, 2].mean())
    observed = ~np.isnan(broken)
    assert_allclose(filled[observed], X[observed])


def test_a_column_that_lacks_is_named_and_the_order_of_columns_does_not_matter(rows):
    X, _ = rows
    encoder = TableEncoder().fit(frame_of(X))

    with pytest.warns(FiedlerWarning, match="the table has no column 'height'; its values are estimated") as caught:
        filled = encoder.complete(frame_of(X)[["price", "width"]])

    assert len(caught) == 1
    assert np.corrcoef(filled[:, 1], X[:, 1])[0, 1] > 0.98


def test_wide_tables_have_no_covariance_and_are_filled_by_means(rng):
    X = rng.normal(size=(30, MAX_COLUMNS + 1))
    encoder = TableEncoder(scale="none").fit(X)
    broken = X.copy()
    broken[0, 5] = np.nan

    filled = encoder.complete(broken)

    assert encoder.gaussian_.covariance.size == 0
    assert_allclose(filled[0, 5], X[:, 5].mean())


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_model_of_a_frame_of_numbers_completes_new_rows(make, rows, tmp_path):
    X, group = rows
    columns = dict(zip(["width", "height", "price"], X.T))
    model = fiedler.cluster(make(columns), 2, random_state=0).model
    assert adjusted_rand_index(model.labels_, group) == 1
    fiedler.save(model, tmp_path / "model.safetensors")
    model = fiedler.load(tmp_path / "model.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        complete = model.predict(make(columns))
        reordered = model.predict(make(dict(reversed(columns.items()))))
    assert_array_equal(reordered, complete)
    broken = {**columns, "price": [None, *columns["price"][1:].tolist()]}
    del broken["width"]

    with pytest.warns(FiedlerWarning) as caught:
        labels = model.predict(make(broken))

    assert [warning.message.code for warning in caught] == ["missing_column"]
    assert adjusted_rand_index(labels, group) == 1
    with pytest.warns(FiedlerWarning):
        assert model.score(make(broken)) > 0.3
    with pytest.warns(FiedlerWarning, match="has no column 'height'"):
        assert model.explain({"width": [0.0], "price": [100.0]}).label == complete[0]
    with pytest.warns(FiedlerWarning):
        result = model.update(make(broken))
    assert_array_equal(result.labels, labels)


def test_a_model_with_a_given_recipe_completes_new_rows_and_one_of_a_graph_takes_none(rows):
    X, group = rows
    frame = frame_of(X)
    model = fiedler.ManifoldClustering(2, graph=fiedler.KNNGraph(5, connect="mst"), random_state=0).fit(frame)
    with pytest.warns(FiedlerWarning, match="has no column 'width'"):
        assert adjusted_rand_index(model.predict(frame[["height", "price"]]), group) == 1
    with pytest.raises(InputError, match="column 'width', row 1: inf is not a number"):
        model.predict(frame.assign(width=np.where(np.arange(120) == 1, np.inf, 0)))
    model.set_params(graph=model.graph_).fit(frame)
    with pytest.raises(InputError, match="new points need a recipe"):
        model.predict(frame[["height", "price"]])
