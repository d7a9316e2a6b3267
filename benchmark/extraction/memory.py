"""Running out of memory, as libraries tell of it."""

import torch

_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "alloc_failed",
)

_BARE = ("could not create a primitive", "could not create a memory object")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was short, of a processor or of a graphics card."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # torch's allocator of the processor raises a plain RuntimeError; oneDNN's gives no reason
    text = str(error).lower()
    short = text in _BARE or any(sign in text for sign in _SIGNS)
    return isinstance(error, RuntimeError) and short


def free_unused(device: torch.device) -> None:
    """Give back what a failed forward has left cached."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
