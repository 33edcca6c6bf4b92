"""
Data frames
===========

The estimators accept pandas and polars data frames, and store their column names in ``feature_names_in_``. With
``set_output``, embeddings and memberships are returned as data frames.
"""

import matplotlib.pyplot as plt
import pandas as pd
import polars as pl
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fiedler import LaplacianEigenmaps, ManifoldClustering

wine = load_wine(as_frame=True)
frame = wine.data

# %%
# Cluster a pandas data frame.

model = make_pipeline(StandardScaler(), ManifoldClustering(3, random_state=0)).set_output(transform="pandas")
model.fit(frame)
clusters = pd.Series(model[-1].labels_, index=frame.index, name="cluster")
print(pd.crosstab(wine.target, clusters))
print(frame.groupby(clusters)[["alcohol", "flavanoids", "proline"]].mean().round(2))

# %%
# The memberships of new rows, as a data frame with their index.

print(model.transform(frame.sample(4, random_state=0)).round(2))

# %%
# The same rows as a polars data frame: the clusters are the same, and the coordinates are a polars data frame.

polars = pl.DataFrame(wine.data.to_dict(orient="list"))
polars_model = make_pipeline(StandardScaler(), ManifoldClustering(3, random_state=0)).fit(polars)
print("the same clusters:", bool((polars_model[-1].labels_ == model[-1].labels_).all()))

maps = make_pipeline(StandardScaler(), LaplacianEigenmaps(2, random_state=0)).set_output(transform="polars")
table = maps.fit_transform(polars).with_columns(cluster=pl.Series(polars_model[-1].labels_))
print(table.head(3))

# %%
# The candidate partitions of the model as a table.

candidates = pd.DataFrame(model[-1].candidates_)
print(candidates[["family", "graph", "cut", "modularity", "chosen"]].round(3))

figure, ax = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
for cluster, rows in table.group_by("cluster", maintain_order=True):
    ax.scatter(rows[table.columns[0]], rows[table.columns[1]], s=16, label=f"cluster {cluster[0]}")
ax.set(xlabel=table.columns[0], ylabel=table.columns[1], xticks=[], yticks=[])
ax.legend(frameon=False)
plt.show()
