"""
Soft clusters and strangers
===========================

:class:`fiedler.NLE` finds nonnegative coordinates whose rows are memberships. A Hinton diagram draws each membership as
a square of that area: a row of one large square is sure of its cluster, one of several small ones belongs to none.
"""

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np

from fiedler import NLE, KNNGraph
from fiedler.datasets import load
from fiedler.plots import MembershipDisplay

# %%
# Ten zeros, ten ones and ten fours, and ten strangers, each another digit.

digits = load("digits", normalize="unit")
of = [np.flatnonzero(digits.y == kind) for kind in range(10)]
members = np.concatenate([of[kind][:10] for kind in (0, 1, 4)])
strangers = np.concatenate([of[kind][:2] for kind in (2, 3, 5, 7, 9)])
X = digits.X[np.concatenate([members, strangers])]

model = NLE(3, graph=KNNGraph(8, weight="heat", connect="mst"), n_init=4, random_state=0).fit(X)
kinds = np.repeat([0, 1, 4, -1], 10)

# %%
# Grouped by what they are. The last ten columns are the strangers.

display = MembershipDisplay.from_predictions(model.memberships_, kinds)
display.ax_.set_xlabel("zeros, ones, fours, strangers (-1)")

# %%
# Who is a stranger is told by the outlier score: unsure of the cluster, or joined to few.

order = np.argsort(model.outlier_scores_)[::-1]
print(f"{(kinds[order[:10]] == -1).sum()} of the ten highest scores are strangers")
figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
ax.bar(range(40), model.outlier_scores_, color=np.where(kinds < 0, "#d55e00", "#0072b2"))
ax.set(xlabel="row (strangers in red)", ylabel="outlier score")
plt.show()
