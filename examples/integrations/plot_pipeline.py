"""
Pipelines and grid searches
===========================

A graph recipe is a nested parameter, so ``graph__n_neighbors`` can be searched like any other parameter. The clusterers
have a ``score`` that needs no labels: the modularity of the predicted clusters on a self-tuned graph. A grid search
therefore works without labels. The accuracy is computed as well, for comparison.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from fiedler import KNNGraph, SpectralClustering
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy

wine = load("wine")
X, y = wine.X, wine.y
model = Pipeline(
    [
        ("scale", StandardScaler()),
        ("cluster", SpectralClustering(3, graph=KNNGraph(8, connect="mst"), random_state=0)),
    ]
)

# %%
# Every candidate is fitted to two thirds of the rows and scored on the rest. Without ``scoring``, ``GridSearchCV`` uses
# ``score``; here it is named explicitly, because a second score is computed.


def modularity(fitted, X_test, y_test=None):
    """Return the default score; it uses no labels."""
    return fitted.score(X_test)


def accuracy(fitted, X_test, y_test):
    """Return the accuracy under the best matching of clusters and classes."""
    return clustering_accuracy(y_test, fitted.predict(X_test))


grid = {"cluster__graph__n_neighbors": [3, 5, 8, 12, 20], "cluster__cut": ["ncut", "njw"]}
search = GridSearchCV(
    model,
    grid,
    scoring={"modularity": modularity, "accuracy": accuracy},
    refit="modularity",
    cv=KFold(3, shuffle=True, random_state=0),
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    search.fit(X, y)
print(search.best_params_)
print(f"accuracy on all rows: {clustering_accuracy(y, search.predict(X)):.1%}")

# %%
# Both scores by the number of neighbours.

results = search.cv_results_
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for ax, score in zip(axes, ("modularity", "accuracy")):
    for cut in grid["cluster__cut"]:
        rows = np.array([params["cluster__cut"] == cut for params in results["params"]])
        ax.plot(grid["cluster__graph__n_neighbors"], results[f"mean_test_{score}"][rows], marker="o", label=cut)
    ax.set(title=score, xlabel="neighbours")
axes[0].legend(frameon=False, title="cut")
plt.show()
