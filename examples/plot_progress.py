"""
Progress of a long fit
======================

With scikit-learn 1.9 or later, estimators tell where they are to callbacks that were set on them: scikit-learn's own
``ProgressBar``, or any object with the four methods below. What each iteration found is kept in any case, in
``history_``.
"""

import time

import matplotlib.pyplot as plt

from fiedler import LapGMM
from fiedler.datasets import load
from fiedler.plots import HistoryDisplay

digits = load("digits", normalize="unit")
X = digits.X[:800]

# %%
# In a terminal one line is enough::
#
#     from sklearn.callback import ProgressBar
#
#     LapGMM(10, pca=0.9).set_callbacks(ProgressBar()).fit(X)
#
# A callback of one's own is told when a task begins and when it ends; tasks hold tasks. This one notes every step of
# every stage.


class Diary:
    """When each step of a fit ended, and of which stage it was."""

    def setup(self, estimator, context):
        """Before the fit."""
        self.start, self.steps = time.perf_counter(), []

    def on_fit_task_begin(self, estimator, context, **what):
        """A stage or a step begins."""

    def on_fit_task_end(self, estimator, context, **what):
        """A stage or a step is over."""
        if context.task_name == "step":
            self.steps.append((context.parent.task_name, time.perf_counter() - self.start))

    def teardown(self, estimator, context):
        """After the fit, also after one that failed."""


diary, model = Diary(), LapGMM(10, pca=0.9, random_state=0)
if hasattr(model, "set_callbacks"):  # scikit-learn 1.9
    model.set_callbacks(diary)
model.fit(X)
steps = getattr(diary, "steps", [])

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
for stage in dict.fromkeys(name for name, _ in steps):
    times = [seconds for name, seconds in steps if name == stage]
    ax.plot(times, range(1, len(times) + 1), marker=".", label=f"{stage}: {len(times)} steps")
ax.set(xlabel="seconds", ylabel="steps done")
ax.legend(frameon=False)

# %%
# The history of the run that was kept: the objective rises at every iteration.

print(f"{model.n_iter_} iterations, converged: {model.converged_}")
HistoryDisplay.from_estimator(model)
plt.show()
