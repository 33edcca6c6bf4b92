"""
Handwritten digits, and how sure one may be
===========================================

:class:`fiedler.ManifoldClustering` is the answer to begin with: it tries several kinds of partition on two graphs,
chooses one without labels and says why. Its memberships are meant to be believed: of the rows at 0.7, about 70 % should
be right.
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
print(model.report(n_doubtful=3))

# %%
# The labels were not used so far. Beside them: each cluster is one digit, but nearly half of the ones lie with the
# eights, and some nines with the other ones.

ConfusionDisplay.from_estimator(model, X, y)

# %%
# The rows in a plane. An edge in another colour is a row whose class is not the cluster's; these are mostly faint, that
# is, the model had its doubts.

ClustersDisplay.from_estimator(model, X, y=y)
print(f"calibration error: {calibration_error(y, model.memberships_):.3f}")

# %%
# The images of which it is least sure.

confidence = model.memberships_.max(axis=1)
figure, axes = plt.subplots(2, 8, figsize=(9, 2.9), layout="constrained")
for ax, row in zip(axes.ravel(), np.argsort(confidence)):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"a {y[row]}, at {confidence[row]:.2f}", fontsize=8)
    ax.axis("off")
plt.show()
