"""
How many clusters
=================

``n_clusters="auto"`` counts them, by how stable the clusters are on parts of the data and by the gaps in the graph's
spectrum, and keeps the evidence. Look at it before you believe the answer: data may have no number of clusters, or two.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from fiedler import EmbedKMeans, ManifoldClustering, choose_n_clusters
from fiedler.plots import ClustersDisplay, EvidenceDisplay

# %%
# Four groups, of which two are close: three and four are about as stable, and the wider gap decides for three.

X, y = make_blobs(250, centers=[[0, 0], [6, 0], [0, 6], [2.6, 7.6]], random_state=0)
model = ManifoldClustering("auto", max_clusters=6, random_state=0).fit(X)
print(model.evidence_)

figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained")
ClustersDisplay.from_estimator(model, X, ax=axes[0])
EvidenceDisplay.from_estimator(model, ax=axes[1])

# %%
# For any other model there is :func:`fiedler.choose_n_clusters`. The same groups, moved together, by k-means: two and
# three clusters are about as stable, and the larger number is taken; four are no longer found.

X_close, _ = make_blobs(250, centers=[[0, 0], [3, 0], [0, 3], [1.3, 3.8]], random_state=0)
choice = choose_n_clusters(X_close, range(2, 8), estimator=EmbedKMeans(random_state=0), random_state=0)
EvidenceDisplay.from_choice(choice)
plt.show()
