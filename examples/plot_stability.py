"""
How far the answer depends on a setting
=======================================

Two settings matter most: the number of neighbours p of the graph, and the weight λ of the graph in the mixture.
:class:`fiedler.plots.StabilityDisplay` fits copies of a model with other settings and shows how far their clusters
agree. A plateau is what one hopes for, and it can be seen without labels.
"""

import warnings

import matplotlib.pyplot as plt

from fiedler import KNNGraph, LapGMM, SpectralClustering
from fiedler.datasets import load, two_moons
from fiedler.plots import StabilityDisplay

digits = load("digits", classes=5, normalize="unit")
X, y = digits.X[:400], digits.y[:400]

# %%
# Few neighbours make a graph that falls apart; many make one that runs over the borders. Here the 8 of the fitted model
# lies where the answer changes with every step, and from 12 on it is steadier: that would be the better choice. The
# accuracy is drawn for comparison, no model has seen it.

model = SpectralClustering(5, KNNGraph(8, connect="mst"), random_state=0).fit(X)
StabilityDisplay.from_estimator(model, X, "graph__n_neighbors", [3, 4, 6, 8, 12, 20, 40, 80], y=y)

# %%
# λ, on two moons, which no two Gaussians can describe: without the graph, or with little of it, they are cut.
# ``lam="auto"`` has chosen the one at the dotted line, by the modularity of the partition.

X, y = two_moons(n_samples=500, noise=0.08, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # some of these settings do not converge, which is part of the picture
    mixture = LapGMM(2, random_state=0).fit(X)
    StabilityDisplay.from_estimator(mixture, X, "lam", [0.0, 0.01, 0.1, 1.0, 10.0, 100.0], y=y)
print(f"chosen: {mixture.lam_:.3g}")
plt.show()
