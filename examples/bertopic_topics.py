"""fiedler as the clustering step of BERTopic: topics with memberships, and no documents left out as outliers.

    pip install bertopic

The embeddings are those of LSI; with a sentence encoder, leave ``embeddings`` out. BERTopic asks only HDBSCAN for the
probabilities of new documents, so these come from ``transform`` of fiedler.
"""

from __future__ import annotations

from bertopic import BERTopic
from bertopic.dimensionality import BaseDimensionalityReduction
from documents import docstrings
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer

from fiedler import LPIClustering
from fiedler.integrations.bertopic import ClusterModel, transform
from fiedler.text import DocumentVectorizer


def main():
    texts, _ = docstrings()
    embeddings = TruncatedSVD(100, random_state=0).fit_transform(DocumentVectorizer("tfidf").fit_transform(texts))
    model = BERTopic(
        embedding_model=None,
        umap_model=BaseDimensionalityReduction(),  # LPIClustering reduces the dimension
        hdbscan_model=ClusterModel(LPIClustering(n_clusters=8, random_state=0)),
        vectorizer_model=CountVectorizer(stop_words="english", token_pattern=r"[^\W\d_]{3,}"),
    )
    model.fit(texts, embeddings)
    print(model.get_topic_info()[["Topic", "Count", "Name"]].to_string(index=False))
    topics, probabilities = transform(model, texts[::100], embeddings[::100])
    for text, topic, row in zip(texts[::100], topics, probabilities):
        print(f"topic {topic} with probability {row[topic]:.2f}: {' '.join(text.split())[:60]}")
    return model, embeddings


if __name__ == "__main__":
    main()
