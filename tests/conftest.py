"""Settings of all tests: no network, and one torch thread in each of several test processes."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)
