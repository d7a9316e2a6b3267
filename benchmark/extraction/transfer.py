"""Tensors leave their device together: a copy of each alone would make the host wait once for each."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

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
