"""
Pipelines and grid searches
===========================

A graph recipe is a nested parameter, so that ``graph__n_neighbors`` can be searched like any other. What a search needs
is a score: here one without labels, the stability of what it finds, and one with them, for comparison.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from fiedler import KNNGraph, SpectralClustering
from fiedler.datasets import load
from fiedler.metrics import adjusted_rand_index, clustering_accuracy

wine = load("wine")
X, y = wine.X, wine.y
model = Pipeline(
    [
        ("scale", StandardScaler()),
        ("cluster", SpectralClustering(3, graph=KNNGraph(8, connect="mst"), random_state=0)),
    ]
)

# %%
# Without labels: a model fitted on a part of the rows is asked about the rest, and compared with one that is fitted to
# the rest alone. ``predict`` is what makes this possible.


def agreement(fitted, X_left, y_left=None):
    """The adjusted Rand index between what was learnt elsewhere and what these rows say themselves."""
    own = Pipeline(fitted.steps).set_params(cluster=SpectralClustering(**fitted["cluster"].get_params(deep=False)))
    return adjusted_rand_index(own.fit(X_left)["cluster"].labels_, fitted.predict(X_left))


def accuracy(fitted, X_left, y_left):
    """With labels, for comparison."""
    return clustering_accuracy(y_left, fitted.predict(X_left))


grid = {"cluster__graph__n_neighbors": [3, 5, 8, 12, 20], "cluster__cut": ["ncut", "ratio"]}
search = GridSearchCV(
    model,
    grid,
    scoring={"agreement": agreement, "accuracy": accuracy},
    refit="agreement",
    cv=KFold(2, shuffle=True, random_state=0),
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    search.fit(X, y)
print(search.best_params_)
print(f"accuracy on all rows: {clustering_accuracy(y, search.predict(X)):.1%}")

# %%
# Both scores over the number of neighbours.

results = search.cv_results_
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained", sharey=True)
for ax, score in zip(axes, ("agreement", "accuracy")):
    for cut in grid["cluster__cut"]:
        rows = np.array([params["cluster__cut"] == cut for params in results["params"]])
        ax.plot(grid["cluster__graph__n_neighbors"], results[f"mean_test_{score}"][rows], marker="o", label=cut)
    ax.set(title=score, xlabel="neighbours", ylim=(0.5, 1.02))
axes[0].legend(frameon=False, title="cut")
plt.show()
