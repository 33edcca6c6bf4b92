"""A cluster of two worker processes for all tests of this folder."""

import pytest


@pytest.fixture(scope="package")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "2GB", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        yield client
