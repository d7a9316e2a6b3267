"""What went wrong in a run, as values that its parts return."""

import errno
from dataclasses import dataclass

from benchmark.extraction.memory import is_out_of_memory
from zoo.errors import InputError

NO_MEMORY = (
    "out of memory; what was computed before it is kept: run again with fewer --workers or --layers, a "
    "smaller --limit, or another --device"
)
"""Where features are scored or compared; a pass has advice of its own."""


class DiskFullError(InputError):
    """No space is left where the run writes."""


@dataclass(frozen=True)
class Failure:
    """A backbone, one of its tasks, a comparison or a dataset that could not be finished.

    Attributes:
        backbone: The backbone; "" where it is none's alone.
        task: The task; "" where the whole backbone failed.
        message: Why, in a sentence.
        bad_input: Whether something that was given is wrong, rather than this package.
        key: Key of the task on its dataset; "" where the whole backbone failed.
    """

    backbone: str
    task: str
    message: str
    bad_input: bool
    key: str = ""

    def __str__(self) -> str:
        return f"{', '.join(filter(None, [self.backbone, self.task]))}: {self.message}"


def failure(error: Exception, backbone: str, task: str = "", key: str = "") -> Failure:
    """The failure that an error is.

    Raises:
        DiskFullError: The disk is full: that ends the run, since nothing after it can be kept.
    """
    if isinstance(error, DiskFullError):
        raise error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise DiskFullError(
            "no space is left on the disk of the cache or the output; free some and run again: what is "
            "finished is kept"
        ) from error
    if is_out_of_memory(error):
        error = InputError(NO_MEMORY)
    bad_input = isinstance(error, InputError)
    message = str(error) if bad_input else f"{type(error).__name__}: {error}"
    return Failure(backbone, task, message, bad_input, key)
