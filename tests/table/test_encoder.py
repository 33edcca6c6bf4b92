"""Rows of tables as vectors."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

import fiedler
from fiedler import ManifoldClustering
from fiedler.errors import FiedlerWarning, InputError, InputTypeError
from fiedler.io import TableEncoder
from fiedler.manifold.explain import entries_of
from fiedler.metrics import adjusted_rand_index
from fiedler.report import summarize
from fiedler.table.encoder import CATEGORY_SCALE
from fiedler.table.values import read_values

pa = pytest.importorskip("pyarrow")

N = 300


@pytest.fixture(scope="module")
def table():
    """A table of two groups of rows, with missing cells, and the groups."""
    rng = np.random.RandomState(0)
    group = rng.randint(2, size=N)
    columns = {
        "age": (30 + 25 * group + rng.normal(size=N)).tolist(),
        "visits": rng.poisson(3 + 12 * group).tolist(),
        "plan": np.where(group == 1, "pro", "basic").tolist(),
        "since": [datetime.datetime(2020 + 3 * int(g), 1 + i % 12, 1) for i, g in enumerate(group)],
        "vip": (rng.uniform(size=N) < 0.3).tolist(),
        "id": [f"C{i:04d}" for i in range(N)],
    }
    for name in ("age", "visits", "plan"):
        columns[name] = [None if rng.uniform() < 0.08 else cell for cell in columns[name]]
    return columns, group


def test_numbers_and_dates_have_the_same_variance_times_their_weights(table, rng):
    columns, _ = table
    complete = {"since": columns["since"], "size": (100 * rng.normal(size=N)).tolist()}

    rows = TableEncoder(weight={"size": 2.0}).fit_transform(complete)

    assert_allclose(rows.std(axis=0), [1, 2], rtol=1e-10)


def test_a_category_is_what_the_other_columns_tell_about_it(table):
    """c E[z_j | z_o] = c Σ_jo Σ_oo⁻¹ z_o for centred rows"""
    columns, _ = table
    complete = {name: columns[name] for name in ("since", "vip")} | {"plan": ["pro", "basic", "basic"] * (N // 3)}

    encoder = TableEncoder().fit(complete)

    z = np.concatenate(
        [encoding.encode(read_values(complete[encoding.name])) for encoding in encoder.encodings_], axis=1
    )
    S, j = encoder.gaussian_.covariance, [1, 2]
    o = [0, 3, 4]
    printed = CATEGORY_SCALE * (z - encoder.gaussian_.mean)[:, o] @ np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, j)])
    assert_allclose(encoder.transform(complete)[:, j], printed, rtol=1e-8, atol=1e-10)


def test_a_category_that_tells_nothing_does_not_count_and_one_that_follows_from_others_does(rng):
    x = rng.normal(size=2000)
    table = {"x": x, "sign": np.where(x > 0, "plus", "minus"), "coin": np.where(rng.uniform(size=2000) < 0.5, "a", "b")}

    rows = TableEncoder().fit_transform(table)

    assert rows[:, 3:].std() < 0.05
    assert np.corrcoef(rows[:, 2], x > 0)[0, 1] > 0.7


def test_a_column_of_numbers_is_standardised():
    x = np.array([1.0, 2.0, 4.0, 9.0])

    rows = TableEncoder().fit_transform(x[:, None])

    assert_allclose(rows[:, 0], (x - x.mean()) / x.std())


def test_indicators_are_divided_by_the_root_of_the_gini_index():
    words = ["a"] * 5 + ["b"] * 3 + ["c"] * 2

    rows = TableEncoder().fit_transform({"word": words})

    scale = np.sqrt(1 - 0.5**2 - 0.3**2 - 0.2**2)
    assert_allclose(rows[0], (np.array([1, 0, 0]) - [0.5, 0.3, 0.2]) / scale)


def test_rare_words_share_an_indicator():
    words = [word for word, count in zip("abcde", (9, 8, 2, 1, 1)) for _ in range(count)]

    encoder = TableEncoder(max_levels=2).fit({"word": words})

    assert encoder.get_feature_names_out().tolist() == ["word=a", "word=b", "word=(other)"]
    rows = encoder.transform({"word": ["c", "d", "a"]})
    assert_array_equal(rows[0], rows[1])
    assert rows[0, 2] > rows[2, 2]


def test_missing_values_are_expected_from_the_others(table):
    columns, group = table

    rows = TableEncoder().fit(columns).transform(columns)

    assert np.isfinite(rows).all()
    is_missing = np.array([cell is None for cell in columns["age"]])
    assert adjusted_rand_index(group[is_missing], rows[is_missing, 0] > 0) > 0.9


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_all_kinds_of_data_frames_give_the_same_rows(make, table):
    columns, _ = table

    encoder = TableEncoder().fit(make(columns))

    expected = TableEncoder().fit(columns)
    assert encoder.plan_ == expected.plan_
    assert_allclose(encoder.transform(make(columns)), expected.transform(columns), rtol=1e-12)
    assert encoder.feature_names_in_.tolist() == list(columns)


def test_texts_and_vectors_are_compared_by_their_components(rng):
    topics = (["the cat sat on the mat with a hat", "a dog ran in the park all day"], ["stocks fell", "the bank rose"])
    texts = [f"{topics[i % 2][rng.randint(2)]} number {i} of many words" for i in range(60)]
    vectors = rng.normal(size=(60, 5)).tolist()

    encoder = TableEncoder(n_text_components=4).fit({"text": texts, "vector": vectors})

    assert encoder.uses_ == {"text": "text", "vector": "vector"}
    rows = encoder.transform({"text": texts, "vector": vectors})
    assert_allclose([rows[:, :4].var(axis=0).sum(), rows[:, 4:].var(axis=0).sum()], 1, rtol=1e-10)


def test_new_tables_may_lack_columns_and_have_new_words(table):
    columns, _ = table
    encoder = TableEncoder().fit(columns)
    new = {name: cells[:20] for name, cells in columns.items() if name != "visits"}
    new["plan"] = ["gold", *new["plan"][1:]]

    with pytest.warns(FiedlerWarning) as caught:
        rows = encoder.transform(new)

    assert [warning.message.code for warning in caught] == ["missing_column", "new_categories"]
    expected = "the table has no column 'visits'; its values are estimated from the other columns"
    assert str(caught[0].message) == expected
    assert "in column 'plan': 'gold'" in str(caught[1].message)
    complete = encoder.transform(columns)[:20]
    assert np.corrcoef(rows[:, 1], complete[:, 1])[0, 1] > 0.8
    with pytest.raises(InputError, match="the table has none of the columns 'age'"):
        encoder.transform({"colour": ["red", "blue"]})
    with pytest.raises(InputError, match="column 'age', row 1: 'old' is not a number"):
        encoder.transform({**new, "age": ["1", "old"] * 10})


def test_a_renamed_column_is_named_with_the_missing_one(table):
    columns, _ = table
    renamed = {{"visits": "n_visits"}.get(name, name): cells for name, cells in columns.items()}

    with pytest.warns(FiedlerWarning, match="no column 'visits', and the model does not know 'n_visits'") as caught:
        TableEncoder().fit(columns).transform(renamed)

    assert "if columns have other names now, rename them" in str(caught[0].message)
    assert "'id'" not in str(caught[0].message)  # which was left out in the fit, but is no new column


def test_new_words_are_spelled_as_in_the_fit_with_a_warning(table):
    columns, _ = table
    encoder = TableEncoder().fit(columns)
    shouted = columns | {"plan": [None if word is None else word.upper() for word in columns["plan"]]}

    with pytest.warns(FiedlerWarning, match=r"column 'plan': '\w+' is taken for '\w+'.* keeps them apart") as caught:
        rows = encoder.transform(shouted)

    assert [warning.message.code for warning in caught] == ["joined_words"]
    assert_allclose(rows, encoder.transform(columns))


def test_words_that_were_joined_in_the_fit_are_joined_in_silence(table, tmp_path):
    """The plan has named them; new spellings are named, also by a model that was saved."""
    columns, _ = table
    words = [word if word is None or i % 9 else word.upper() for i, word in enumerate(columns["plan"])]
    model = ManifoldClustering(2, effort="fast", random_state=0).fit(pd.DataFrame(columns | {"plan": words}))
    fiedler.save(model, tmp_path / "model.safetensors")
    other = [None if word is None else word.title() for word in words]

    for one in (model, fiedler.load(tmp_path / "model.safetensors")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.predict(pd.DataFrame(columns | {"plan": words}))
        with pytest.warns(FiedlerWarning, match="column 'plan': 'Basic' is taken for 'basic'"):
            one.predict(pd.DataFrame(columns | {"plan": other}))


def test_a_row_is_explained_by_joined_words(table):
    columns, _ = table
    words = [word if word is None or i % 9 else word.upper() for i, word in enumerate(columns["plan"])]
    model = fiedler.cluster(pd.DataFrame(columns | {"plan": words}), n_clusters=2, random_state=0).model

    profiles = model.explain().profiles

    levels = [level for name, level in zip(profiles.columns, profiles.levels) if name == "plan"]
    assert levels == sorted({word for word in columns["plan"] if word is not None})
    entries = entries_of(profiles, {"plan": [levels[0], levels[0].upper(), None]})
    assert_array_equal(entries[:, profiles.levels.index(levels[0])], [1, 1, np.nan])


def test_cluster_takes_a_table_and_its_model_is_saved(table, tmp_path):
    columns, group = table
    frame = pl.DataFrame(columns)

    labels, memberships, model = fiedler.cluster(frame, 2, random_state=0)

    assert adjusted_rand_index(group, labels) > 0.95
    assert memberships.shape == (N, 2)
    fiedler.save(model, tmp_path / "model.safetensors")
    loaded = fiedler.load(tmp_path / "model.safetensors")
    assert_array_equal(loaded.predict(frame[:50]), model.predict(frame[:50]))
    assert np.mean(model.predict(frame) == labels) > 0.98
    assert loaded.encoder_.plan_ == model.encoder_.plan_
    assert fiedler.cluster(np.ones((5, 2)) * np.arange(5)[:, None], 2, random_state=0).model.encoder_ is None


def test_it_is_a_step_of_a_pipeline(table):
    columns, group = table
    model = make_pipeline(TableEncoder(drop=["vip"]), fiedler.SpectralClustering(2, random_state=0))

    labels = model.fit_predict(pd.DataFrame(columns))

    assert adjusted_rand_index(group, labels) > 0.9
    model.set_params(tableencoder__drop=["vip", "since"]).fit(pd.DataFrame(columns))
    assert "since" not in [encoding.name for encoding in model[0].encodings_]


def test_completed_rows_are_in_their_own_units(table):
    columns, _ = table
    encoder = TableEncoder().fit(columns)

    original = encoder.complete(columns)

    ages = np.array([np.nan if age is None else age for age in columns["age"]])
    known = ~np.isnan(ages)
    assert_allclose(original[known, 0], ages[known])
    names = encoder.get_feature_names_out().tolist()
    indicator = original[:, names.index("plan=pro")]
    assert set(np.round(indicator[[cell is not None for cell in columns["plan"]]], 6)) == {0.0, 1.0}


def test_a_table_needs_rows_of_equal_length():
    with pytest.raises(InputError, match="columns of the table differ in length"):
        TableEncoder().fit({"a": [1, 2], "b": [1]})
    with pytest.raises(InputError, match="at least two rows"):
        TableEncoder().fit({"a": [1]})


# ------------------------------------------------------------------------------------------------- frames of all kinds


def test_frames_of_numbers_of_any_library_are_tables_and_sparse_ones_are_not(rng):
    X = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 9])
    expected = fiedler.cluster(X, 2, random_state=0)

    for frame in (
        pd.DataFrame(X),
        pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], [1, 2, 3]])),
        pd.DataFrame(X, columns=list("abc")).astype({"a": "Float64"}),
        pl.DataFrame(X),
        pd.DataFrame.sparse.from_spmatrix(sp.csr_array(X)),
        pd.DataFrame(X > 4.5),
    ):
        result = fiedler.cluster(frame, 2, random_state=0)
        assert (result.model.encoder_ is None) == hasattr(frame, "sparse")
        assert adjusted_rand_index(expected.labels, result.labels) == 1


def test_columns_may_have_names_that_are_not_strings():
    frame = pd.DataFrame({1: [1.0, 2.0, None], ("a", 2): ["x", "y", "x"]})

    assert list(TableEncoder().fit(frame).uses_) == ["1", "('a', 2)"]
    with pytest.raises(InputError, match="several columns of the same name"):
        TableEncoder().fit({1: [1, 2], "1": [3, 4]})
    with pytest.raises(InputTypeError, match=r"call \.collect\(\) on a lazy one"):
        TableEncoder().fit(pl.LazyFrame({"a": [1, 2]}))


def test_declared_categories_are_categories():
    codes = [1, 2, 3, 1]
    for cells in (pd.Series(codes, dtype="category"), pl.Series(list("1231"), dtype=pl.Categorical)):
        frame = pd.DataFrame({"code": cells}) if isinstance(cells, pd.Series) else pl.DataFrame({"code": cells})
        assert TableEncoder().fit(frame).uses_ == {"code": "category"}


def test_an_array_is_taken_by_position_with_a_warning(table):
    columns, _ = table
    frame = pd.DataFrame(columns).drop(columns=["id", "since"])
    model = fiedler.cluster(frame, 2, random_state=0).model

    with pytest.warns(FiedlerWarning, match="X does not have valid feature names"):
        labels = model.predict(frame.to_numpy())

    assert_array_equal(labels, model.predict(frame))
    with pytest.raises(InputError, match="X has 2 features, but TableEncoder is expecting 4"):
        model.predict(frame.to_numpy()[:, :2])
    assert model.score(frame) > 0.3
    assert "plan = pro" in str(summarize(model, frame)["clusters"])


def test_a_column_with_few_values_in_many_rows(rng):
    rare = [None] * 12_000
    rare[7], rare[5000] = 1.0, 2.0

    rows = TableEncoder().fit_transform({"x": rng.normal(size=12_000), "rare": rare})

    assert np.isfinite(rows).all()


def test_a_constant_column_of_an_array_and_a_table_without_rows():
    encoder = TableEncoder().fit(np.array([[1.0, 5.0], [2.0, 5.0]]))

    assert np.abs(encoder.transform(np.array([[1.0, 6.0]]))).max() < 10
    assert TableEncoder().fit({"a": [1, 2], "b": ["x", "y"]}).transform({"a": [], "b": []}).shape == (0, 3)


@pytest.mark.parametrize("given", [{"drop": "age"}, {"as_category": "age"}])
def test_a_name_instead_of_a_list_of_names(given):
    with pytest.raises(InputError, match=r"must be a list of names of columns; got 'age'; pass \['age'\]"):
        TableEncoder(**given).fit({"age": [1, 2]})


def test_columns_of_an_array_can_be_dropped_or_taken_for_categories(rng):
    X = np.column_stack([rng.normal(size=30), np.arange(30) % 3, rng.normal(size=30)])

    encoder = TableEncoder(drop=["x2"], as_category=["x1"]).fit(X)

    assert encoder.get_feature_names_out().tolist() == ["x0", "x1=0", "x1=1", "x1=2"]
