"""LPIClustering and the mixtures as the clustering step of BERTopic, on embeddings made here."""

import numpy as np
import pytest

from fiedler import LapGMM, LPIClustering
from fiedler.metrics import clustering_accuracy

bertopic = pytest.importorskip("bertopic", reason="BERTopic is not installed")
pytest.importorskip("hdbscan", reason="BERTopic asks for hdbscan when it places new documents")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [LPIClustering(3, random_state=0), LapGMM(3, random_state=0)], ids=repr)
def test_bertopic_takes_our_clusters_as_its_topics(model, rng):
    from bertopic.dimensionality import BaseDimensionalityReduction

    vocabulary = [
        ["river", "water", "rain", "flood"],
        ["bank", "money", "rates", "loan"],
        ["goal", "team", "match", "cup"],
    ]
    y = np.repeat([0, 1, 2], 40)
    texts = [" ".join(rng.choice(vocabulary[topic], 8)) for topic in y]
    embeddings = np.eye(10)[y] * 6 + rng.normal(size=(120, 10))

    topics = bertopic.BERTopic(embedding_model=None, umap_model=BaseDimensionalityReduction(), hdbscan_model=model)
    labels, _ = topics.fit_transform(texts, embeddings)

    assert clustering_accuracy(y, np.array(labels)) > 0.95
    for topic in range(3):
        words = {word for word, _ in topics.get_topic(topic)[:4]}
        assert any(words == set(terms) for terms in vocabulary)
    new, _ = topics.transform(texts[:5], embeddings[:5])
    assert list(new) == list(labels[:5])
