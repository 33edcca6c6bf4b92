"""A cluster of two worker processes for all tests of this folder."""

import multiprocessing
import os
import sys

import pytest

if (
    sys.platform == "linux"
):  # workers are forked from a process that has imported everything: they start five times faster
    os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")
PRELOADED = ["distributed", "dask.array", "fiedler.out_of_core.manifold"]


@pytest.fixture(scope="package")
def cluster():
    distributed = pytest.importorskip("distributed")
    distributed.utils.get_mp_context()  # sets Dask's own list of modules, once
    multiprocessing.set_forkserver_preload(PRELOADED)
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "2GB", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        yield client
