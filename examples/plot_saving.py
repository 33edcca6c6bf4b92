"""
Saving and loading models
=========================

:func:`fiedler.save` writes a fitted model, or a pipeline that ends in one, to a ``.safetensors`` file of arrays and
plain values. :func:`fiedler.load` reads it without running any code from the file. The loaded model has the same
attributes and makes the same predictions.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fiedler
from fiedler import ManifoldClustering
from fiedler.datasets import load
from fiedler.plots import ClustersDisplay

wine = load("wine")
model = make_pipeline(StandardScaler(), ManifoldClustering(3, random_state=0)).fit(wine.X[::2])

# %%
# Notes can be saved with the model: plain values, such as the names of the columns.

folder = Path(tempfile.mkdtemp())
fiedler.save(model, folder / "wine.safetensors", notes={"rows": "every second wine"})
print(f"{(folder / 'wine.safetensors').stat().st_size / 1024:.0f} kB")
print(fiedler.persistence.read_notes(folder / "wine.safetensors"))

# %%
# Load the model and predict.

loaded = fiedler.load(folder / "wine.safetensors")
X_new = wine.X[1::2]
print("the same predictions:", bool(np.array_equal(loaded.predict_proba(X_new), model.predict_proba(X_new))))

rows = loaded[:-1].transform(X_new)
ClustersDisplay.from_estimator(loaded[-1], rows, layout="pca", y=wine.y[1::2])

# %%
# A file that is not a model of fiedler, or that was modified, raises an error.

(folder / "changed.safetensors").write_bytes((folder / "wine.safetensors").read_bytes()[:-1])
try:
    fiedler.load(folder / "changed.safetensors")
except ValueError as error:
    print(str(error).replace(str(folder), "..."))
plt.show()
