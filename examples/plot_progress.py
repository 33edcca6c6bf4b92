"""
Progress of a long fit
======================

With scikit-learn 1.9 or later, estimators report their progress to callbacks: scikit-learn's ``ProgressBar``, or any
object with the four methods below. The objective of every iteration is always recorded in ``history_``.
"""

import time

import matplotlib.pyplot as plt

from fiedler import LapGMM
from fiedler.datasets import load
from fiedler.plots import HistoryDisplay

digits = load("digits", normalize="unit")
X = digits.X[:800]

# %%
# In a terminal, one line is enough::
#
#     from sklearn.callback import ProgressBar
#
#     LapGMM(10, pca=0.9).set_callbacks(ProgressBar()).fit(X)
#
# A custom callback is called when a task begins and when it ends; tasks are nested. The following one records every
# step of every stage.


class StepRecorder:
    """Record the time and the stage of every step of a fit."""

    def setup(self, estimator, context):
        """Start the clock; called before the fit."""
        self.start, self.steps = time.perf_counter(), []

    def on_fit_task_begin(self, estimator, context, **details):
        """Do nothing; called when a stage or a step begins."""

    def on_fit_task_end(self, estimator, context, **details):
        """Record a step; called when a stage or a step has ended."""
        if context.task_name == "step":
            self.steps.append((context.parent.task_name, time.perf_counter() - self.start))

    def teardown(self, estimator, context):
        """Do nothing; called after the fit, even if it failed."""


recorder, model = StepRecorder(), LapGMM(10, pca=0.9, random_state=0)
if hasattr(model, "set_callbacks"):  # scikit-learn 1.9
    model.set_callbacks(recorder)
model.fit(X)
steps = getattr(recorder, "steps", [])

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
for stage in dict.fromkeys(name for name, _ in steps):
    times = [seconds for name, seconds in steps if name == stage]
    ax.plot(times, range(1, len(times) + 1), marker=".", label=f"{stage}: {len(times)} steps")
ax.set(xlabel="seconds", ylabel="steps done")
ax.legend(frameon=False)

# %%
# ``history_`` of the selected run: the objective increases at every iteration. It is a mapping from the objective and
# its terms to arrays.

print("recorded:", list(model.history_))
print(f"{model.n_iter_} iterations, converged: {model.converged_}")
HistoryDisplay.from_estimator(model)
plt.show()
