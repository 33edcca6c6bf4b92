"""
Clustering documents
====================

From raw texts to described clusters: :class:`fiedler.text.DocumentVectorizer` counts terms,
:class:`fiedler.LPIClustering` finds the clusters, and :func:`fiedler.text.describe_clusters` finds the terms that
distinguish them. The texts are docstrings of SciPy, which need no download; their classes are the modules they come
from.
"""

import importlib

import matplotlib.pyplot as plt
import numpy as np

from fiedler import LPIClustering
from fiedler.plots import ConfusionDisplay
from fiedler.text import DocumentVectorizer, describe_clusters

texts, modules = [], []
for module in ("fft", "linalg", "ndimage", "optimize", "spatial"):
    source = importlib.import_module(f"scipy.{module}")
    for name in sorted(source.__all__):
        text = getattr(getattr(source, name), "__doc__", None) or ""
        if len(text.split()) > 60:
            texts.append(text)
            modules.append(module)
print(len(texts), "texts")

# %%
# Terms that occur in only one document, or in more than half of them, are left out.

vectorizer = DocumentVectorizer(min_df=2, max_df=0.5)
X = vectorizer.fit_transform(texts)
model = LPIClustering(n_clusters=5, random_state=0).fit(X)

# %%
# The leading terms of every cluster, by class-based tf-idf.

descriptions = describe_clusters(vectorizer.counts(texts), model.labels_, vectorizer.get_feature_names_out(), n_terms=8)
figure, axes = plt.subplots(1, len(descriptions), figsize=(12, 2.8), layout="constrained")
for ax, cluster in zip(axes, descriptions):
    print(cluster)
    terms, weights = zip(*cluster.terms)
    ax.barh(range(len(terms)), weights, color="#0072b2")
    ax.set_yticks(range(len(terms)), terms, fontsize=8)
    ax.invert_yaxis()
    ax.set_title(f"{cluster.cluster}: {cluster.size} documents", fontsize=9)
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)

# %%
# The clusters compared with the modules.

ConfusionDisplay.from_predictions(np.array(modules), model.labels_)

# %%
# New documents are assigned by their terms.

new = ["the eigenvalues of a symmetric matrix", "minimise a function under linear constraints"]
for text, proba in zip(new, model.predict_proba(vectorizer.transform(new))):
    print(f"{text!r}: {descriptions[proba.argmax()].name}, with probability {proba.max():.2f}")
plt.show()
