"""The machine that something was measured on, by its processor and never by its host."""

import os
import platform
from dataclasses import dataclass

import torch

from benchmark.engines.choose import device_name
from leaderboards.records.version import VERSION
from perf.rounds import Setting


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Machine:
    """What numbers were measured on.

    Attributes:
        device: Name of the processor with its threads, or of the graphics card.
        processors: How many there are.
        torch: Version of torch.
        python: Version of Python.
        version: Version of this package.
        dtype: Of forwards.
        load: Processes that were running before it began, on the average of a minute; None where it is not
            known.
    """

    device: str
    processors: int
    torch: str
    python: str
    version: str
    dtype: str
    load: float | None

    @property
    def busy(self) -> bool:
        """Whether other work ran: ratios hold then, if at all, times do not."""
        return self.load is not None and self.load > 0.5

    def __str__(self) -> str:
        load = "" if self.load is None else f"; load before it began {self.load:.1f}"
        return (
            f"{self.device} (of {self.processors}); torch {self.torch}, {self.dtype}; Python {self.python}; "
            f"layerboard {self.version}{load}"
        )


def this_machine(setting: Setting) -> Machine:
    """The machine of this process."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    dtype = str(setting.dtype).removeprefix("torch.")
    name = device_name(setting.device)
    return Machine(name, processors(), torch.__version__, platform.python_version(), VERSION, dtype, load)
