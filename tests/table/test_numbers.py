"""Scales of columns of numbers: bounds, logarithms, common units, suspicious cells; and what they are for."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

import fiedler
from fiedler.errors import FiedlerWarning
from fiedler.metrics import adjusted_rand_index
from fiedler.table import TableEncoder
from fiedler.table.numbers import TAIL, NumberScale, fit_scale, share_a_unit, suspicious_cells


def test_the_scale_is_the_printed_formula(rng):
    x = np.exp(rng.normal(size=1000))
    scale = fit_scale(x)

    unit = np.percentile(x, 5)
    z = np.sign(x) * np.log(1 + x / unit)
    low, high = np.percentile(z, [5, 95])
    expected = (unit, low - TAIL * (high - low), high + TAIL * (high - low), np.median(z), high - low)
    assert_allclose(scale, expected)
    assert_allclose(scale.apply(x), np.clip(z, scale.lower, scale.upper))
    assert_allclose(scale.invert(z), x)


@pytest.mark.parametrize("draw", ["normal", "uniform", "laplace"])
def test_columns_that_are_not_skewed_stay_as_they_are(rng, draw):
    x = getattr(rng, draw)(size=500)
    scale = fit_scale(x)

    assert scale.unit == 0
    inside = (x >= scale.lower) & (x <= scale.upper)
    assert_array_equal(scale.apply(x)[inside], x[inside])
    assert inside.mean() > 0.99


def test_few_cells_beyond_the_bounds_are_clipped_and_many_are_data(rng):
    x = rng.normal(size=1000)
    few, many = np.r_[x, [999.0, -800.0]], np.r_[x, np.full(20, 999.0)]

    assert np.abs(fit_scale(few).apply(few)).max() < 8
    assert fit_scale(many).apply(many).max() == 999
    assert fit_scale(np.array([1.0, 2.0, 3.0, 999.0])) == NumberScale()  # too few to say
    rare = fit_scale(np.r_[np.zeros(950), rng.poisson(2, 50) + 1.0])  # the bounds are those of the other values
    assert_allclose(rare.invert(rare.apply(np.array([0.0, 1.0, 3.0, 5.0]))), [0, 1, 3, 5])


def test_suspicious_cells_are_named_with_their_distance_in_spreads(rng):
    x = rng.normal(40, 10, size=3000).round()
    x[17] = 999
    (cell,) = suspicious_cells("age", x, fit_scale(x))

    spread = np.subtract(*np.percentile(x, [95, 5]))
    assert cell.row == 17
    assert_allclose(cell.n_spreads, (999 - np.median(x)) / spread)
    assert str(cell) == "age 999 in row 17 (29 times the usual spread)"
    assert suspicious_cells("age", x[20:], fit_scale(x[20:])) == []


def test_columns_of_one_unit_are_recognised_by_their_ranges(rng):
    lengths = [rng.uniform(0, 5 + j, size=50) for j in range(4)]
    assert share_a_unit(lengths).all()
    assert not share_a_unit([*lengths[:3], 1000 * lengths[3]]).any()
    pixels = [rng.randint(0, 17, size=200) for _ in range(20)]
    border, age = rng.binomial(2, 0.1, size=200), rng.uniform(18, 90, size=200)
    assert share_a_unit([*pixels, border]).all()
    assert_array_equal(share_a_unit([*pixels, border, age]), [True] * 21 + [False])
    rate = rng.uniform(size=200)  # of another unit, although it varies less
    assert_array_equal(share_a_unit([*pixels, rate]), [True] * 20 + [False])
    assert not share_a_unit([lengths[0]]).any()


def test_columns_of_one_unit_keep_their_proportions(rng):
    frame = pd.DataFrame({"length": rng.normal(0, 1.5, 60), "width": rng.normal(0, 1, 60)})
    rows = TableEncoder().fit_transform(frame)

    assert_allclose(rows / rows[0, 0], (frame - frame.mean()).to_numpy() / (frame - frame.mean()).iloc[0, 0])
    assert_allclose((rows**2).sum(axis=1).mean(), 2)


@pytest.mark.parametrize(("load", "k"), [(load_wine, 3), (load_iris, 3)])
def test_a_missing_cell_or_a_constant_column_does_not_change_the_clusters(load, k):
    data = load(as_frame=True).data
    complete = fiedler.cluster(data, k, random_state=0).labels
    broken = data.copy()
    broken.iloc[0, 0] = np.nan

    assert adjusted_rand_index(fiedler.cluster(broken, k, random_state=0).labels, complete) > 0.85
    assert adjusted_rand_index(fiedler.cluster(data.assign(source="a"), k, random_state=0).labels, complete) == 1


@pytest.mark.parametrize(("load", "k", "least"), [(load_wine, 3, 0.85), (load_breast_cancer, 2, 0.7)])
def test_a_frame_finds_the_classes_that_an_array_of_unlike_columns_hides(load, k, least):
    data = load(as_frame=True)

    assert adjusted_rand_index(fiedler.cluster(data.data, k, random_state=0).labels, data.target) > least
    with pytest.warns(FiedlerWarning, match="the columns have very different scales: column .* varies"):
        hidden = fiedler.cluster(data.data.to_numpy(), k, random_state=0).labels
    assert adjusted_rand_index(hidden, data.target) < 0.5


def test_the_clusters_of_a_frame_are_counted_on_its_common_scale():
    frame = load_wine(as_frame=True).data

    assert fiedler.choose_n_clusters(frame).n_clusters == 3
    assert fiedler.cluster(frame, random_state=0, effort="fast").model.n_clusters_ == 3


def test_arrays_of_alike_columns_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fiedler.cluster(load_digits().data[:300], 10, random_state=0)


def test_a_typing_error_is_listed_and_does_not_change_the_clusters():
    rng = np.random.RandomState(0)
    group = rng.randint(3, size=600)
    frame = pd.DataFrame(
        {"age": 40 + 4 * rng.normal(size=600) + 12 * group, "visits": rng.normal(size=600) + 4 * group}
    )
    before = fiedler.cluster(frame, 3, random_state=0).labels
    frame.loc[17, "age"] = 999

    with pytest.warns(FiedlerWarning, match=r"1 cell\(s\) .*: age 999 in row 17 \(\d+ times the usual spread\)"):
        result = fiedler.cluster(frame, 3, random_state=0, outliers=0.01)

    assert (result.labels[np.arange(600) != 17] == before[np.arange(600) != 17]).mean() > 0.97
    assert result.labels[17] == -1
    assert [cell.row for cell in result.model.encoder_.suspicious_] == [17]


def test_rows_that_differ_in_a_category_only_are_no_copies():
    rng = np.random.RandomState(0)
    group = rng.randint(4, size=600)
    age = np.where(group < 2, rng.randint(20, 35, size=600), rng.randint(50, 65, size=600)).astype(float)
    frame = pd.DataFrame({"age": age, "plan": np.where(group % 2 == 0, "A", "B")})
    model = fiedler.ManifoldClustering(4, random_state=0).fit(frame)

    assert adjusted_rand_index(model.labels_, group) > 0.9
    assert (model.predict(frame) == model.labels_).mean() > 0.99


def test_new_cells_far_from_the_fit_and_suspicious_dates_are_listed(rng):
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 5, 60),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(90, size=60), "D"),
        }
    )
    encoder = TableEncoder().fit(frame)
    new = frame[:3].copy()
    new.loc[1, "age"], new.loc[2, "since"] = 999, pd.Timestamp("1900-01-01")

    with pytest.warns(FiedlerWarning, match=r"2 cell\(s\) are far from those of the fit: age 999 in row 1") as caught:
        encoder.transform(new)

    assert "since 1900-01-01 in row 2" in str(caught[0].message)


@pytest.mark.parametrize("size", [1e-300, 1e200, 1e300])
def test_columns_of_any_size_are_divided(size, rng):
    frame = pd.DataFrame(rng.normal(size=(40, 3)) * size, columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = TableEncoder().fit_transform(frame)
    assert_allclose((rows**2).mean(), 1)
