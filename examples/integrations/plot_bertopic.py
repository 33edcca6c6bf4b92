"""
Topics with BERTopic
====================

BERTopic embeds documents, reduces the dimension, clusters, and describes the clusters. Its clustering step can be any
clusterer in a :class:`fiedler.integrations.bertopic.ClusterModel`, whose memberships are the probabilities of the
topics. :class:`fiedler.LPIClustering` reduces the dimension and clusters, and assigns every document to a topic. The
embeddings are those of LSI; with a sentence encoder, leave ``embeddings`` out.
"""

import importlib
import logging

import matplotlib.pyplot as plt
import numpy as np
from bertopic import BERTopic
from bertopic.dimensionality import BaseDimensionalityReduction
from bertopic.vectorizers import ClassTfidfTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer

from fiedler import LPIClustering
from fiedler.integrations.bertopic import ClusterModel, transform
from fiedler.text import DocumentVectorizer

logging.getLogger("BERTopic").setLevel(logging.ERROR)

texts = []
for module in ("fft", "linalg", "ndimage", "spatial"):
    source = importlib.import_module(f"scipy.{module}")
    docstrings = [getattr(getattr(source, name), "__doc__", None) or "" for name in sorted(source.__all__)]
    texts += [text for text in docstrings if len(text.split()) > 60]

embeddings = TruncatedSVD(40, random_state=0).fit_transform(DocumentVectorizer("tfidf").fit_transform(texts))

# %%
# The clusterer replaces HDBSCAN.

topics = BERTopic(
    embedding_model=None,
    umap_model=BaseDimensionalityReduction(),  # LPIClustering reduces the dimension
    hdbscan_model=ClusterModel(LPIClustering(n_clusters=4, random_state=0)),
    ctfidf_model=ClassTfidfTransformer(reduce_frequent_words=True),
    vectorizer_model=CountVectorizer(stop_words="english", token_pattern=r"[^\W\d_]{3,}"),
)
topics.fit(texts, embeddings)
print(topics.get_topic_info()[["Topic", "Count", "Name"]].to_string(index=False))

# %%
# The terms of every topic.

figure, axes = plt.subplots(1, 4, figsize=(11, 2.6), layout="constrained")
for topic, ax in enumerate(axes):
    words, weights = zip(*topics.get_topic(topic)[:7])
    ax.barh(range(len(words)), weights, color="#0072b2")
    ax.set_yticks(range(len(words)), words, fontsize=8)
    ax.invert_yaxis()
    ax.set_title(f"topic {topic}", fontsize=9)
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
plt.show()

# %%
# The probabilities of the topics of each document, which sum to one. For new documents they come from
# :func:`fiedler.integrations.bertopic.transform`, since BERTopic asks only HDBSCAN for them.

print(topics.probabilities_[:3].round(2))
found, probabilities = transform(topics, texts[:3], embeddings[:3])
print(found, np.round(probabilities.max(axis=1), 2))
