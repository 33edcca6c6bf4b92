"""From raw documents to described clusters in ten lines; then LSI and LPI in two dimensions, as in the paper.

The documents are the docstrings of SciPy, which need no download; their classes are the modules they come from.
``fiedler.io.read_documents("folder")`` reads other documents.
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD

from fiedler import LPI, KNNGraph, LPIClustering
from fiedler.metrics import clustering_accuracy, normalized_mutual_information
from fiedler.text import DocumentVectorizer, describe_clusters

OUT = Path("out")
MODULES = ("stats", "signal", "linalg", "optimize", "special", "spatial", "ndimage", "fft")


def docstrings():
    """Return the docstrings of public functions and classes, and the module of each."""
    texts, modules = [], []
    for module in MODULES:
        source = importlib.import_module(f"scipy.{module}")
        for name in sorted(source.__all__):
            text = getattr(getattr(source, name), "__doc__", None) or ""
            if len(text.split()) > 60 and callable(getattr(source, name)):
                texts.append(text)
                modules.append(module)
    return texts, np.array(modules)


def cluster(texts):
    """Cluster the texts and describe the clusters: ten lines without the imports."""
    vectorizer = DocumentVectorizer(min_df=2, max_df=0.5)
    X = vectorizer.fit_transform(texts)
    model = LPIClustering(n_clusters=8, random_state=0).fit(X)
    terms = vectorizer.get_feature_names_out()
    for description in describe_clusters(vectorizer.counts(texts), model.labels_, terms):
        print(description)
        print("    " + texts[description.documents[0]].strip().splitlines()[0][:90])
    new = vectorizer.transform(["the eigenvalues of a symmetric matrix", "minimize a function under constraints"])
    print("new documents:", model.predict(new), "with confidence", model.predict_proba(new).max(axis=1).round(2))
    return X, model


def plot_embeddings(X, modules, path):
    """Plot two dimensions of LSI and of LPI, one colour per module. [lpi, Fig. 1]"""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = np.isin(modules, ["stats", "signal", "linalg", "optimize", "spatial"])
    rows, names = X[np.flatnonzero(shown)], modules[shown]
    embeddings = {
        "LSI": TruncatedSVD(2, random_state=0).fit_transform(rows),
        "LPI": LPI(2, KNNGraph(15, weight="dot"), random_state=0).fit_transform(rows),
    }
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for axis, (title, points) in zip(axes, embeddings.items()):
        for name in np.unique(names):
            axis.scatter(*points[names == name].T, s=14, alpha=0.7, linewidths=0, label=f"scipy.{name}")
        axis.set(title=f"{title}, two dimensions", xticks=[], yticks=[])
    axes[1].legend(frameon=False, fontsize=8, markerscale=1.5)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main():
    warnings.simplefilter("ignore")
    texts, modules = docstrings()
    print(f"{len(texts)} docstrings of {len(MODULES)} modules\n")
    X, model = cluster(texts)
    ac, nmi = clustering_accuracy(modules, model.labels_), normalized_mutual_information(modules, model.labels_)
    print(f"\nagreement with the modules: AC {100 * ac:.1f} %, NMI {100 * nmi:.1f} %")
    plot_embeddings(X, modules, OUT / "lsi_lpi.png")
    print(f"Figure of LSI and LPI: {OUT / 'lsi_lpi.png'}")


if __name__ == "__main__":
    main()
