"""
Two moons
=========

Two curved clusters that cannot be separated by a straight line. K-means and Gaussian mixtures look for round or
elliptic clusters and split both moons. :class:`fiedler.LapGMM` is a Gaussian mixture with an additional term that makes
neighbours have similar memberships; it follows the moons.
"""

import matplotlib.pyplot as plt

from fiedler import EmbedKMeans, GaussianMixture, LapGMM
from fiedler.datasets import two_moons
from fiedler.metrics import clustering_accuracy
from fiedler.plots import ClustersDisplay, HistoryDisplay

X, y = two_moons(n_samples=600, noise=0.06, random_state=0)

# %%
# Three models, given only the number of clusters. Faint points have a low confidence.

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
# LapGMM maximises the likelihood minus a penalty for memberships that differ between neighbours; the objective
# increases at every iteration. Two Gaussians describe two moons poorly, so the model chooses a large weight of the
# graph.

print(f"lam = {models['LapGMM'].lam_:.3g}")

HistoryDisplay.from_estimator(models["LapGMM"])
plt.show()
