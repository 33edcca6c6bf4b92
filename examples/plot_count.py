"""
Choosing the number of clusters
===============================

With ``n_clusters="auto"``, the default, the number of clusters is chosen by gaps between groups of rows, by the
stability of the clusters on subsets of the rows, and by the valleys of the density between them. The evidence is kept
in ``evidence_``. Look at it before relying on the number: several numbers may be equally plausible, or none.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from fiedler import EmbedKMeans, ManifoldClustering, choose_n_clusters
from fiedler.plots import ClustersDisplay, EvidenceDisplay

# %%
# Four groups, two of which are close together.

X, y = make_blobs(250, centers=[[0, 0], [6, 0], [0, 6], [2.6, 7.6]], random_state=0)
model = ManifoldClustering(random_state=0).fit(X)
print(model.evidence_)

figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained")
ClustersDisplay.from_estimator(model, X, ax=axes[0])
EvidenceDisplay.from_estimator(model, ax=axes[1])

# %%
# :func:`fiedler.choose_n_clusters` applies the same rule to any scikit-learn clusterer, here to k-means. The groups are
# closer to each other, so that the evidence is weaker.

X_close, _ = make_blobs(250, centers=[[0, 0], [3, 0], [0, 3], [1.3, 3.8]], random_state=0)
choice = choose_n_clusters(X_close, range(2, 8), estimator=EmbedKMeans(random_state=0))
print(choice)
EvidenceDisplay.from_choice(choice)
plt.show()
