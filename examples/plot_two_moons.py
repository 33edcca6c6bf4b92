"""
Two moons
=========

Two bent clusters that touch neither each other nor a straight line between them. K-means and a Gaussian mixture look
for round or elliptic ones, and cut both moons. :class:`fiedler.LapGMM` is the same mixture, asked in addition that
neighbours share their memberships, and follows the moons.
"""

import matplotlib.pyplot as plt

from fiedler import EmbedKMeans, GaussianMixture, LapGMM
from fiedler.datasets import two_moons
from fiedler.metrics import clustering_accuracy
from fiedler.plots import ClustersDisplay, HistoryDisplay

X, y = two_moons(n_samples=600, noise=0.06, random_state=0)

# %%
# Three models, told the number of clusters and nothing else. Faint points are those that a model is not sure of.

models = {
    "k-means": EmbedKMeans(2, random_state=0),
    "Gaussian mixture": GaussianMixture(2, random_state=0),
    "LapGMM": LapGMM(2, random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    model.fit(X)
    ClustersDisplay.from_estimator(model, X, ax=ax, names=False)
    ax.set_title(f"{name}: {clustering_accuracy(y, model.labels_):.0%}")
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])

# %%
# What LapGMM maximises is the likelihood less a penalty for memberships that differ between neighbours; it rises at
# every iteration. Two Gaussians describe two moons badly, so that the graph has to outvote them: the model found a
# large weight of the graph by itself.

print(f"lam = {models['LapGMM'].lam_:.3g}")

HistoryDisplay.from_estimator(models["LapGMM"])
plt.show()
