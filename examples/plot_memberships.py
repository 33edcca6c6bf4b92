"""
Soft clusters and outliers
==========================

:class:`fiedler.NLE` computes nonnegative coordinates whose rows are memberships. A Hinton diagram draws each membership
as a square of that area: a single large square is a row that clearly belongs to one cluster, several small squares are
a row that belongs to none.
"""

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np

from fiedler import NLE, KNNGraph
from fiedler.datasets import load
from fiedler.plots import MembershipDisplay

# %%
# Ten zeros, ten ones and ten fours, and ten outliers from other classes.

digits = load("digits", normalize="unit")
rows_of = [np.flatnonzero(digits.y == digit) for digit in range(10)]
members = np.concatenate([rows_of[digit][:10] for digit in (0, 1, 4)])
outliers = np.concatenate([rows_of[digit][:2] for digit in (2, 3, 5, 7, 9)])
X = digits.X[np.concatenate([members, outliers])]

model = NLE(3, graph=KNNGraph(8, weight="heat", connect="mst"), n_init=4, random_state=0).fit(X)
classes = np.repeat([0, 1, 4, -1], 10)

# %%
# Memberships grouped by class. The last ten columns are the outliers.

display = MembershipDisplay.from_predictions(model.memberships_, classes)
display.ax_.set_xlabel("zeros, ones, fours, outliers (-1)")

# %%
# The outlier score is high for rows with low confidence or with weak connections.

order = np.argsort(model.outlier_score_)[::-1]
print(f"{(classes[order[:10]] == -1).sum()} of the ten highest scores are outliers")
figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
ax.bar(range(40), model.outlier_score_, color=np.where(classes < 0, "#d55e00", "#0072b2"))
ax.set(xlabel="row (outliers in red)", ylabel="outlier score")
plt.show()
