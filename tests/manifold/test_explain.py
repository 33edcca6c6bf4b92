"""What sets clusters apart, and why a row is in its cluster."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler import KNNGraph, ManifoldClustering
from fiedler.datasets import blobs
from fiedler.errors import FileFormatError, InputError
from fiedler.manifold.explain import ClusterPipeline, describe_columns
from fiedler.table import TableEncoder

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def data():
    return blobs(120, n_clusters=3, n_features=4, noise=0.8, random_state=0)[0]


@pytest.fixture(scope="module")
def model(data):
    return ManifoldClustering(3, effort="fast", random_state=0).fit(data)


@pytest.fixture(scope="module")
def customers():
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 60)
    return pd.DataFrame(
        {
            "customer": [f"c{i}" for i in range(120)],
            "amount": rng.normal(20 + 60 * y, 4),
            "plan": np.where(rng.uniform(size=120) < 0.9, np.array(["basic", "pro"])[y], "trial"),
            "joined": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.randint(300, size=120), "D"),
            "note": np.array(["a fast red car with a big engine", "an old green tree in a dark forest"])[y],
        }
    )


def test_clusters_are_described_by_their_contrasts_and_rows(model, data):
    explanation = model.explain(n_rows=2)

    for one in explanation.clusters:
        members = data[model.labels_ == one.label]
        differences = (members.mean(axis=0) - data.mean(axis=0)) / data.std(axis=0)
        largest = np.abs(differences).argmax()
        assert (one.size, one.contrasts[0].column) == (len(members), f"x{largest}")
        assert_allclose(one.contrasts[0].difference, differences[largest])
        assert_allclose(one.confidence, model.memberships_[model.labels_ == one.label].max(axis=1).mean())
        assert len(one.typical) == 2
        assert (model.labels_[one.typical] == one.label).all()
        assert one.contrasts[0].column in one.name
    assert "sd: difference from the mean" in str(explanation)
    assert len(pd.DataFrame(explanation.profiles.to_dict())) == 3 * 4


def test_borderline_rows_are_those_of_the_lowest_confidence(data):
    model = ManifoldClustering(2, effort="fast", random_state=0).fit(data)  # two of three clusters are merged

    for one in model.explain().clusters:
        members = np.flatnonzero(model.labels_ == one.label)
        expected = members[np.argsort(model.memberships_[members].max(axis=1), kind="stable")][: len(one.borderline)]
        assert_array_equal([row.row for row in one.borderline], expected)
        assert all(row.other != one.label for row in one.borderline)


def test_rows_are_explained_by_neighbours_walk_and_columns(model, data):
    why = model.explain(7)

    weights = model.graph_.weights.toarray()[7]
    neighbors = {one.row: one.share for one in why.neighbors}
    assert neighbors == pytest.approx({j: weights[j] / weights.sum() for j in np.flatnonzero(weights)})
    assert_allclose(why.walk_mass, weights @ model.memberships_ / weights.sum())
    assert (why.label, why.row) == (model.labels_[7], 7)
    means = np.stack([data[model.labels_ == k].mean(axis=0) for k in range(3)])
    printed = ((data[7] - means[why.rival]) ** 2 - (data[7] - means[why.label]) ** 2) / data.var(axis=0)
    assert dict(why.columns) == pytest.approx({f"x{j}": printed[j] for j in range(4)})
    assert str(why).startswith(f"row 7 is in cluster {why.label}")


def test_new_rows_are_explained_by_predict_proba(model, data):
    x = data[3] + 0.01

    for row in (x, x[None], x.tolist()):
        why = model.explain(row)
        assert_allclose(why.memberships, model.predict_proba(x[None])[0])
        assert why.row is None
        assert why.neighbors[0].row == 3
        assert len(why.columns) == 4


@pytest.mark.parametrize("stored", [False, True])
def test_tables_are_explained_in_their_own_columns(customers, stored, tmp_path):
    model = fiedler.cluster(customers, 2, random_state=0).model
    if stored:
        fiedler.save(model, tmp_path / "model.safetensors")
        model = fiedler.load(tmp_path / "model.safetensors")

    explanation = model.explain()

    rich = explanation.clusters[model.labels_[-1]]
    by_column = {one.column: one for one in rich.contrasts}
    assert by_column["amount"].value == pytest.approx(customers["amount"][60:].mean())
    assert (by_column["plan"].level, by_column["plan"].kind) == ("pro", "category")
    assert "customer" not in explanation.profiles.columns
    assert rich.name is not None
    why = model.explain(100, X=customers)
    assert {"amount", "plan"} <= {name for name, value in why.columns if value > 0}
    assert dict(model.explain(100).columns) == pytest.approx(dict(why.columns), rel=1e-4)  # the model keeps the cells
    assert f"amount = {customers['amount'][100]:.4g} (+" in str(model.explain(100))
    assert {"amount", "plan"} <= {name for name, value in model.explain(customers.iloc[[100]]).columns if value > 0}


def test_rows_within_bounds_and_outliers_are_explained_by_their_labels(data):
    bounded = ManifoldClustering(3, max_cluster_size=40, effort="fast", random_state=0).fit(data[:110])
    bounded.labels_ = (bounded.labels_ + 1) % 3  # as if the bounds had moved all rows
    outliers = ManifoldClustering(3, outliers=0.05, effort="fast", random_state=0).fit(data)
    outlier = int(np.flatnonzero(outliers.labels_ == -1)[0])

    why = bounded.explain(5)
    one = bounded.explain().clusters[why.label].borderline[0]

    assert why.label == bounded.labels_[5]
    assert why.rival == bounded.memberships_[5].argmax()
    assert one.confidence == pytest.approx(bounded.memberships_[one.row, why.label])
    assert outliers.explain(outlier).label == -1
    assert f"row {outlier} is an outlier; nearest is cluster" in str(outliers.explain(outlier))


def test_explanations_count_rows_by_their_weights(data):
    weights = np.arange(1, 121)
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(data, sample_weight=weights)

    profiles = model.explain().profiles

    own = model.labels_ == 1
    assert_allclose(profiles.means[1], np.average(data[own], axis=0, weights=weights[own]))
    assert_allclose(profiles.overall, np.average(data, axis=0, weights=weights))


@pytest.mark.parametrize("form", ["array", "frame", "sparse", "mapping"])
def test_new_rows_of_any_form_have_columns(form, data):
    frame = pd.DataFrame(data, columns=list("abcd"))
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(frame)
    row = {
        "array": data[7] + 0.01,
        "frame": frame[7:8] + 0.01,
        "sparse": sp.csr_array(data[7:8] + 0.01),
        "mapping": {name: [frame[name][7] + 0.01] for name in "abcd"},
    }[form]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows without names
        why = model.explain(row)

    assert {name for name, _ in why.columns} == set("abcd")
    assert dict(why.columns) == pytest.approx(dict(model.explain(frame[7:8] + 0.01).columns))


def test_sparse_columns_explain_a_row(model, data):
    X = sp.csr_array(np.maximum(data, 0))

    assert dict(model.explain(3, X=X).columns) == pytest.approx(dict(model.explain(3, X=X.toarray()).columns))


def test_texts_are_explained_by_their_terms(customers):
    table = customers.assign(note=[f"{note} number{i}" for i, note in enumerate(customers["note"])])
    model = fiedler.cluster(table, 2, random_state=0).model

    one = model.explain().clusters[model.labels_[0]]

    assert {"car", "engine"} <= {term for term, _ in one.terms}
    assert set(one.name.split(", ")[0].removeprefix("note: ").split("/")) <= {"fast", "red", "car", "big", "engine"}


def test_columns_that_were_not_fitted_can_explain(model, customers):
    explanation = model.explain(X=customers)

    assert set(explanation.profiles.columns) == {"amount", "plan", "joined", "note"}


def test_the_columns_of_the_rows_are_kept_when_another_view_is_chosen(data):
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(data)
    expected = model.explain().profiles
    model._keep(view=object())  # any transformer
    model._store_profiles(data, None, None)

    assert_allclose(model.explain().profiles.means, expected.means)
    assert model.explain(0).columns == []


def test_graphs_are_explained_without_columns(data):
    graph = KNNGraph(5).build(data)
    model = ManifoldClustering(3, random_state=0).fit(graph)

    explanation = model.explain()

    assert all(one.contrasts == [] and one.name is None for one in explanation.clusters)
    assert "sd:" not in str(explanation)
    assert model.explain(4).columns == []
    assert model.explain(4, X=data).columns != []


def test_mistakes_give_one_sentence(model, data):
    with pytest.raises(InputError, match="there is no row 120 among those that the model keeps"):
        model.explain(120)
    with pytest.raises(InputError, match="X has 3 rows, but the model was fitted to 120"):
        model.explain(X=data[:3])
    with pytest.raises(InputError, match="explain takes one row at a time; got 2"):
        model.explain(data[:2])
    with pytest.raises(InputError, match="row must be a number or a row of data; got 'a'"):
        model.explain("a")
    with pytest.raises(InputError, match="n_rows"):
        model.explain(n_rows=-1)


def test_one_cluster_is_none(rng):
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    model = fiedler.cluster(table, 1, random_state=0).model

    explanation = model.explain()

    assert str(explanation).startswith("no clusters: 120 rows in one group\n")
    assert np.isnan(explanation.clusters[0].confidence)
    assert "confidence" not in str(explanation)
    assert str(model.explain(5)).startswith("row 5 is like the others: there are no clusters\n  neighbours: ")


def test_other_levels_are_explained_in_their_own_columns(customers):
    model = fiedler.cluster(customers, 2, random_state=0).model.at(3)

    explanation = model.explain()

    assert {one.column for one in explanation.clusters[0].contrasts} <= set(customers.columns)
    means = [customers["amount"][model.labels_ == k].mean() for k in range(3)]
    assert_allclose(explanation.profiles.means[:, explanation.profiles.columns.index("amount")], means, rtol=1e-5)
    assert model.explain(4).cells["plan"] == customers["plan"][4]


@pytest.fixture
def pipeline(customers):
    """A pipeline of an encoder and a clusterer, with the columns of its input."""
    encoder = TableEncoder()
    rows = encoder.fit_transform(customers)
    pipeline = ClusterPipeline([("table", encoder), ("cluster", ManifoldClustering(2, random_state=0).fit(rows))])
    pipeline.profiles_ = describe_columns(customers, pipeline[-1].labels_, 2)
    return pipeline


def test_pipelines_are_explained_in_the_columns_of_their_input(pipeline, customers, tmp_path):
    fiedler.save(pipeline, tmp_path / "model.safetensors")
    loaded = fiedler.load(tmp_path / "model.safetensors")

    assert str(loaded.explain()) == str(pipeline.explain())
    contrast = next(one for one in loaded.explain().clusters[0].contrasts if one.column == "amount")
    assert contrast.value == pytest.approx(customers["amount"][loaded[-1].labels_ == 0].mean())
    assert loaded.explain(7).cells["plan"] == customers["plan"][7]
    for row in (customers.iloc[[7]], {name: [cells[7]] for name, cells in customers.items()}):
        why = loaded.explain(row)
        assert why.label == loaded.explain(7).label
        assert dict(why.columns) == pytest.approx(dict(loaded.explain(7).columns), rel=1e-4)
    assert "x0" in str(loaded[-1].explain())  # what the clusterer has compared


def test_pipelines_take_the_columns_of_new_rows(pipeline, customers):
    new = customers.iloc[:30]
    pipeline[-1].update(pipeline[:-1].transform(new))
    pipeline.add_rows(new)

    both, labels = pd.concat([customers, new], ignore_index=True), pipeline[-1].labels_
    contrast = next(one for one in pipeline.explain().clusters[0].contrasts if one.column == "amount")
    assert contrast.value == pytest.approx(both["amount"][labels == 0].mean(), rel=1e-5)
    assert pipeline.explain(125).cells["plan"] == both["plan"][125]


def test_rows_that_replace_old_ones_are_counted_in_their_place(customers):
    model = fiedler.cluster(customers, 2, random_state=0).model
    new = customers.iloc[[100, 101]].assign(amount=[95.0, 97.0])

    model.update(new, replaces=[4, -1])

    amounts = np.append(customers["amount"].to_numpy(), 97.0)
    amounts[4] = 95.0
    profiles = model.explain().profiles
    means = [amounts[model.labels_ == k].mean() for k in range(2)]
    assert_allclose(profiles.means[:, profiles.columns.index("amount")], means, rtol=1e-5)
    assert [model.explain(row).cells["amount"] for row in (4, 120)] == ["95", "97"]


def test_pipelines_of_other_clusterers_and_with_a_cache_are_refused(pipeline, tmp_path):
    other = ClusterPipeline([("cluster", fiedler.SpectralClustering(2))])
    with pytest.raises(InputError, match="the clusters of a SpectralClustering cannot be explained"):
        other.explain()
    pipeline.memory = str(tmp_path)  # pickles
    fiedler.save(pipeline, tmp_path / "model.safetensors")
    with pytest.raises(FileFormatError, match="a pipeline has a cache"):
        fiedler.load(tmp_path / "model.safetensors")
