"""
A model in a file
=================

:func:`fiedler.save` writes a fitted model, or a pipeline that ends in one, to one ``.npz`` file of arrays and plain
values; :func:`fiedler.load` reads it and runs nothing that the file brings. What the model found and what it says of
new rows are the same afterwards.
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
# Notes may be kept beside the model: plain values, such as the names of the columns.

folder = Path(tempfile.mkdtemp())
fiedler.save(model, folder / "wine.npz", notes={"rows": "every second wine"})
print(f"{(folder / 'wine.npz').stat().st_size / 1024:.0f} kB")
print(fiedler.persistence.read_notes(folder / "wine.npz"))

# %%
# Later, elsewhere.

again = fiedler.load(folder / "wine.npz")
new = wine.X[1::2]
print("the same predictions:", bool(np.array_equal(again.predict_proba(new), model.predict_proba(new))))

rows = again[:-1].transform(new)
ClustersDisplay.from_estimator(again[-1], rows, layout="pca", y=wine.y[1::2])

# %%
# A file that is none of ours, or that was tampered with, is refused with a sentence.

np.savez(folder / "other.npz", X=wine.X)
try:
    fiedler.load(folder / "other.npz")
except ValueError as error:
    print(str(error).replace(str(folder), "..."))
plt.show()
