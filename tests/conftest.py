"""Settings of all tests: no network, and one thread for each of several test processes."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
if "PYTEST_XDIST_WORKER" in os.environ:  # libraries read these when they are imported
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import pytest
import torch

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Tests of one ``xdist_group`` share a process: what they share is made once."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "loadgroup"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """The tests of a module that share a fixture of it are such a group."""
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        if any(found[-1].scope == "module" for found in fixtures):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))
