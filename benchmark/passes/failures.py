"""Failures of a run as values, and the detection of errors of memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from layerboard.tasks.framework.task import Task
from layerboard.zoo.errors import DISK_FULL, InputError, about_file, error_kind, first_line, shortened
from layerboard.zoo.features.pass_context import is_out_of_memory
from layerboard.zoo.libraries import explained

Result = TypeVar("Result")


def within_memory(device: torch.device, forward: Callable[[], Result]) -> Result | None:
    """The result of a forward pass; None if it does not fit into memory."""
    try:
        return forward()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    if device.type == "cuda":  # here, not in the handler: the error holds what its forward pass has allocated
        torch.cuda.empty_cache()
    return None


# hints for features that are scored or compared, and for forward passes
NO_MEMORY = (
    "out of memory; what was computed before it is kept: run again with fewer --workers or --layers, a "
    "smaller --limit, or another --device"
)
NO_MEMORY_FORWARD = (
    "out of memory; try a smaller --batch-size or --input-size, fewer --workers, or another --device"
)


class DiskFullError(InputError):
    """No space is left on the disk that the run writes to."""


@dataclass(frozen=True)
class Failure:
    """The failure of a backbone, of one of its tasks, of a comparison or of a dataset."""

    backbone: str  # "" if no single backbone failed
    task: str  # "" if the whole backbone failed, as for the key
    message: str
    bad_input: bool  # whether wrong input, not this package, is the cause
    key: str = ""

    def __str__(self) -> str:
        return f"{', '.join(filter(None, [self.backbone, self.task]))}: {self.message}"


def failure(error: Exception, backbone: str, task: Task | None = None, no_memory: str = NO_MEMORY) -> Failure:
    """The error as a failure; raises DiskFullError for a full disk, since nothing after it can be stored."""
    if isinstance(error, DiskFullError):
        raise error
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        raise DiskFullError(about_file(error)) from error
    error = InputError(no_memory) if is_out_of_memory(error) else explained(error) or error
    if isinstance(error, OSError) and (sentence := about_file(error)) is not None:
        error = InputError(sentence)
    bad_input = isinstance(error, InputError)
    file = f" ({shortened(str(error.filename))})" if isinstance(error, OSError) and error.filename else ""
    message = str(error) if bad_input else f"{error_kind(error)}: {first_line(error)}{file}"
    name, key = (task.entry.name, task.key) if task else ("", "")
    return Failure(backbone, name, message, bad_input, key)


@contextmanager
def noting(failures: list[Failure], backbone: str, task: Task | None = None) -> Iterator[None]:
    """Append errors raised in the block to failures; raises DiskFullError for a full disk."""
    try:
        yield
    except Exception as error:
        failures.append(failure(error, backbone, task))
