"""Clusters of Dask on this machine."""

import pytest


def local_cluster(n_workers, **options):
    distributed = pytest.importorskip("distributed")
    about = {
        "n_workers": n_workers,
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "memory_limit": "4GiB",
    }
    return distributed.LocalCluster(**about | options)
