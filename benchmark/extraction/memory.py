"""Running out of memory, as libraries tell of it."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

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


Name = TypeVar("Name", bound=Hashable)


def to_host(arrays: Mapping[Name, Tensor]) -> dict[Name, Tensor]:
    """The same arrays in the host's memory, contiguous, by one copy for each device and dtype among them."""
    found = {name: array.contiguous() for name, array in arrays.items() if array.device.type == "cpu"}
    kinds: dict[tuple[torch.device, torch.dtype], list[Name]] = {}
    for name, array in arrays.items():
        if name not in found:
            kinds.setdefault((array.device, array.dtype), []).append(name)
    for names in kinds.values():
        whole = torch.cat([arrays[name].flatten() for name in names]).cpu()
        parts = torch.split(whole, [arrays[name].numel() for name in names])
        # each owns its memory: files are written from it, and the whole is given back
        found |= {
            name: part.view(arrays[name].shape).clone() for name, part in zip(names, parts, strict=True)
        }
    return {name: found[name] for name in arrays}
