"""Cluster the cells of AnnData objects, as scanpy's tools do: results are written into the object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from .._typing import RandomState
from .._validation import import_optional
from ..core.arrays import to_numpy
from ..graph.affinity import cells_of
from ..manifold.estimator import ManifoldClustering


def cluster(
    adata: Any,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    use_rep: str | None = None,
    key_added: str = "fiedler",
    random_state: RandomState = 0,
    **options: Any,
) -> ManifoldClustering:
    """Cluster the cells of an AnnData object.

    Parameters
    ----------
    adata : AnnData
        The cells, in memory or backed by a file.
    n_clusters : int or 'auto', default='auto'
        The number of clusters; 'auto' chooses it.
    use_rep : str, optional
        The rows in ``adata.obsm`` that are compared, or ``"X"``. By default the graph of ``scanpy.pp.neighbors`` in
        ``adata.obsp["connectivities"]``, if there is one, else the rows in ``adata.obsm["X_pca"]``, else ``adata.X``.
    key_added : str, default='fiedler'
        The name of the results.
    random_state : int, RandomState or None, default=0
        Random seed or generator.
    **options
        Further parameters of :class:`fiedler.ManifoldClustering`.

    Returns
    -------
    ManifoldClustering
        The fitted model. These are written to ``adata``:

        - ``obs[key_added]``: the cluster of each cell, as ordered categories '0', '1', ...
        - ``obs[f"{key_added}_confidence"]``: its largest membership
        - ``obsm[f"{key_added}_memberships"]``: all memberships, of shape (n_cells, n_clusters)
        - ``uns[key_added]``: the parameters, the number of clusters and, if it was chosen, the evidence for it

    Examples
    --------
    >>> import anndata, fiedler
    >>> from fiedler.datasets import blobs
    >>> X, _ = blobs(n_samples=90, n_clusters=3, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> model = fiedler.integrations.anndata.cluster(adata, 3)
    >>> adata.obs["fiedler"].cat.categories.tolist()
    ['0', '1', '2']
    """
    pandas = import_optional("pandas", extra="anndata", purpose="AnnData objects")
    model = ManifoldClustering(n_clusters, random_state=random_state, **options).fit(cells_of(adata, use_rep))
    labels, memberships = to_numpy(model.labels_), to_numpy(model.memberships_)
    names = [str(label) for label in range(model.n_clusters_)]
    adata.obs[key_added] = pandas.Categorical.from_codes(labels, names, ordered=True)
    adata.obs[f"{key_added}_confidence"] = memberships.max(axis=1)
    adata.obsm[f"{key_added}_memberships"] = memberships
    every = model.get_params(deep=False)
    params = {name: value for name, value in every.items() if isinstance(value, int | float | str)}
    about: dict[str, Any] = {"params": {**params, "use_rep": use_rep or ""}, "n_clusters": model.n_clusters_}
    if model.evidence_ is not None:
        evidence = asdict(model.evidence_).items()
        as_array = {name: np.array(value) for name, value in evidence if isinstance(value, list)}
        about["evidence"] = {name: as_array.get(name, value) for name, value in evidence if value is not None}
    adata.uns[key_added] = about
    return model
