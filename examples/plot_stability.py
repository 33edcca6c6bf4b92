"""
Stability with respect to a parameter
=====================================

Two parameters matter most: the number of neighbours in the graph, and the weight λ of the graph in the mixture.
:class:`fiedler.plots.StabilityDisplay` fits copies of a model with other values of a parameter and shows how far their
clusters agree. A range of values over which the clusters do not change is a good sign, and needs no labels.
"""

import warnings

import matplotlib.pyplot as plt

from fiedler import KNNGraph, LapGMM, SpectralClustering
from fiedler.datasets import load, two_moons
from fiedler.plots import StabilityDisplay

digits = load("digits", classes=5, normalize="unit")
X, y = digits.X[:400], digits.y[:400]

# %%
# A graph with few neighbours is disconnected; a graph with many neighbours connects different clusters. Here the 8
# neighbours of the fitted model are in a range where the clusters change with every value. They are more stable from 12
# on, which would be a better choice. The accuracy is shown for comparison; no model uses the labels.

model = SpectralClustering(5, KNNGraph(8, connect="mst"), random_state=0).fit(X)
StabilityDisplay.from_estimator(model, X, "graph__n_neighbors", [3, 4, 6, 8, 12, 20, 40, 80], y=y)

# %%
# The weight λ on two moons, which two Gaussians cannot describe: without the graph, or with a small weight, the moons
# are split. ``lam="auto"`` chooses the value at the dotted line, by the modularity of the partition.

X, y = two_moons(n_samples=500, noise=0.08, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # with some of these values the fit does not converge
    mixture = LapGMM(2, random_state=0).fit(X)
    StabilityDisplay.from_estimator(mixture, X, "lam", [0.0, 0.01, 0.1, 1.0, 10.0, 100.0], y=y)
print(f"chosen lam: {mixture.lam_:.3g}")
plt.show()
