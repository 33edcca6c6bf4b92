"""
Predicting the clusters of new rows
===================================

Every clusterer has ``predict`` and, if it has memberships, ``predict_proba``. A new row is connected to its neighbours
among the training rows by the same rule as in the graph. The last figure shows the predictions for the whole plane.
"""

import matplotlib.pyplot as plt
import numpy as np

from fiedler import KNNGraph, LapGMM, ManifoldClustering, SpectralClustering
from fiedler.datasets import two_moons
from fiedler.metrics import clustering_accuracy
from fiedler.plots import ClustersDisplay

X, y = two_moons(n_samples=500, noise=0.08, random_state=0)
X_new, y_new = two_moons(n_samples=300, noise=0.08, random_state=1)

# %%
# Fit on 500 rows, predict 300 others.

spectral = SpectralClustering(2, KNNGraph(10, connect="mst"), random_state=0)
models = [ManifoldClustering(2, random_state=0), spectral, LapGMM(2, random_state=0)]
for model in models:
    model.fit(X)
    print(f"{type(model).__name__}: {clustering_accuracy(y_new, model.predict(X_new)):.1%} of the new rows are correct")

# %%
# Predictions on a grid. ``LapGMM.predict_proba`` uses the densities only, unless ``use_graph=True``: two Gaussians
# alone cannot describe two moons.

grid_x, grid_y = np.meshgrid(np.linspace(-1.5, 2.5, 90), np.linspace(-1.1, 1.6, 70))
grid = np.column_stack([grid_x.ravel(), grid_y.ravel()])
predictions = {
    "ManifoldClustering": (models[0], models[0].predict_proba(grid)),
    "LapGMM, densities only": (models[2], models[2].predict_proba(grid)),
    "LapGMM, with neighbours": (models[2], models[2].predict_proba(grid, use_graph=True)),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for ax, (name, (model, proba)) in zip(axes, predictions.items()):
    upper = proba[:, np.bincount(model.labels_[y == 0]).argmax()].reshape(grid_x.shape)
    ax.contourf(grid_x, grid_y, upper, levels=20, cmap="RdBu", vmin=0, vmax=1, alpha=0.6)
    ClustersDisplay.from_predictions(X, y, ax=ax, names=False, size=6)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
