"""
Handwritten digits, and the confidence of the clusters
======================================================

:class:`fiedler.ManifoldClustering` is the default method: it tries several kinds of partition on two graphs, chooses
one without labels and reports why. Its memberships are meant to be used as probabilities: about 70 % of the rows with
confidence 0.7 should be in the right cluster.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from fiedler import ManifoldClustering
from fiedler.datasets import load
from fiedler.metrics import calibration_error
from fiedler.plots import ClustersDisplay, ConfusionDisplay

digits = load("digits", normalize="unit")
X, y = digits.X[:1200], digits.y[:1200]
model = ManifoldClustering(n_clusters=10, random_state=0).fit(X)
print(model.report(n_uncertain=3))

# %%
# The labels were not used so far. Compared with them, each cluster is one digit, but nearly half of the ones are in the
# cluster of the eights, and some nines are in the cluster of the other ones.

ConfusionDisplay.from_estimator(model, X, y)

# %%
# The rows in two dimensions. An edge in another colour marks a row whose class is not that of its cluster. Most of
# these rows are faint, which means that their confidence is low.

ClustersDisplay.from_estimator(model, X, y=y)
print(f"calibration error: {calibration_error(y, model.memberships_):.3f}")

# %%
# The images with the lowest confidence.

confidence = model.memberships_.max(axis=1)
figure, axes = plt.subplots(2, 8, figsize=(9, 2.9), layout="constrained")
for ax, row in zip(axes.ravel(), np.argsort(confidence)):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"class {y[row]}, {confidence[row]:.2f}", fontsize=8)
    ax.axis("off")
plt.show()
