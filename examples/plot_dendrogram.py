"""
A hierarchy of clusters
=======================

:class:`fiedler.GenieLinkage` merges rows into clusters and clusters into larger ones. Single linkage follows curved
shapes but leaves outliers as clusters of their own; a limit on how unequal the sizes may become prevents that.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram

from fiedler import GenieLinkage
from fiedler.datasets import two_moons
from fiedler.plots import ClustersDisplay

X, _ = two_moons(n_samples=400, noise=0.07, random_state=0)
X = np.concatenate([X, np.random.RandomState(0).uniform(-1.5, 2.5, size=(12, 2))])

# %%
# With ``gini_threshold=1`` the limit is off, and the two clusters are an outlier and the rest.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, threshold in zip(axes, (1.0, 0.3)):
    model = GenieLinkage(n_clusters=2, gini_threshold=threshold).fit(X)
    ClustersDisplay.from_estimator(model, X, ax=ax, names=False)
    ax.set_title(f"gini_threshold={threshold}: sizes {np.bincount(model.labels_).tolist()}")
plt.show()

# %%
# The tree contains the partition for every number of clusters. SciPy draws its last merges; that of the two moons is by
# far the longest.

figure, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
dendrogram(model.linkage_matrix(), truncate_mode="lastp", p=12, ax=ax)
ax.set(xlabel="row, or number of rows (in brackets)", ylabel="mutual reachability")
plt.show()
