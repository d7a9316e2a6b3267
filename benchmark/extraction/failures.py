"""What goes wrong in a run, as values that its parts return, and how running out of memory is told."""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from layerboard.tasks.task import Task
from layerboard.zoo.errors import InputError, first_line, kind_of, shortened

Result = TypeVar("Result")

_SHORT = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|not enough memory|alloc_failed"
    r"|\Acould not create a (primitive|memory object)\Z"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was short, of a processor or of a graphics card."""
    # torch's allocator of the processor raises a plain RuntimeError; oneDNN's gives no reason
    short = isinstance(error, RuntimeError) and _SHORT.search(str(error).lower())
    return bool(short) or isinstance(error, MemoryError | torch.OutOfMemoryError)


def within_memory(device: torch.device, forward: Callable[[], Result]) -> Result | None:
    """What a forward gives; None where memory was not enough for it."""
    try:
        return forward()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    free_unused(device)  # here, not in the handler: an error keeps what its forward has allocated
    return None


def free_unused(device: torch.device) -> None:
    """Give back what a failed forward has left cached."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


# what helps where features are scored or compared, and where images go through a backbone
NO_MEMORY = (
    "out of memory; what was computed before it is kept: run again with fewer --workers or --layers, a "
    "smaller --limit, or another --device"
)
NO_MEMORY_FORWARD = (
    "out of memory; try a smaller --batch-size or --input-size, fewer --workers, or another --device"
)


class DiskFullError(InputError):
    """No space is left where the run writes."""


@dataclass(frozen=True)
class Failure:
    """A backbone, one of its tasks, a comparison or a dataset that could not be finished."""

    backbone: str  # "" where it is none's alone
    task: str  # "" where the whole backbone failed, as the key
    message: str
    bad_input: bool  # whether something that was given is wrong, rather than this package
    key: str = ""

    def __str__(self) -> str:
        return f"{', '.join(filter(None, [self.backbone, self.task]))}: {self.message}"


def failure(error: Exception, backbone: str, task: Task | None = None, no_memory: str = NO_MEMORY) -> Failure:
    """The failure that an error is; a full disk is raised, since nothing after it can be kept."""
    if isinstance(error, DiskFullError):
        raise error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise DiskFullError(
            "no space is left on the disk of the cache or the output; free some and run again: what is "
            "finished is kept"
        ) from error
    if is_out_of_memory(error):
        error = InputError(no_memory)
    bad_input = isinstance(error, InputError)
    file = f" ({shortened(str(error.filename))})" if isinstance(error, OSError) and error.filename else ""
    message = str(error) if bad_input else f"{kind_of(error)}: {first_line(error)}{file}"
    name, key = (task.entry.name, task.key) if task else ("", "")
    return Failure(backbone, name, message, bad_input, key)


@contextmanager
def noting(failures: list[Failure], backbone: str, task: Task | None = None) -> Iterator[None]:
    """Add what goes wrong meanwhile to failures; raises DiskFullError where the disk is full."""
    try:
        yield
    except Exception as error:
        failures.append(failure(error, backbone, task))
