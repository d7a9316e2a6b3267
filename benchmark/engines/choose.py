"""Which engine suits a run."""

from collections.abc import Sequence

import torch

from benchmark.engines.base import Engine
from benchmark.engines.local import LocalEngine
from benchmark.engines.processes import ProcessEngine
from zoo.spec import BackboneSpec

SMALL = 64
"""Input size in pixels up to which a backbone is too small to keep several threads busy."""


def choose_engine(backbones: Sequence[BackboneSpec], workers: int, device: torch.device) -> Engine:
    """Processes side by side for several small backbones on a CPU; otherwise one after the other.

    A network that somebody gave to this process is in no other one, so such a run stays in it.

    Args:
        backbones: Those that have something to do.
        workers: Threads that the run may use.
        device: Where the backbones run.
    """
    processes = min(len(backbones), workers)
    small = all(spec.input_size <= SMALL for spec in backbones)
    stays = any(spec.checkpoint == "module" for spec in backbones)
    if stays or device.type != "cpu" or not small or processes < 2:
        return LocalEngine()
    return ProcessEngine(processes, threads=max(1, workers // processes))
