"""The backbone's tensors under the names of transformers, and the sizes of its network by their shapes."""

import re
from collections.abc import Collection, Iterable, Mapping
from math import isqrt
from typing import Any, NoReturn

from torch import Tensor

from layerboard.zoo.entries.architecture import HEADS, AuthorsNames
from layerboard.zoo.errors import InputError, some
from layerboard.zoo.spec import BackboneSpec

Tensors = Mapping[str, Tensor]  # of a checkpoint, by name


def needed(names: Iterable[str], unused: Iterable[str]) -> list[str]:
    """Names that match none of the patterns, sorted."""
    pattern = re.compile("|".join(unused))
    return sorted(name for name in names if not pattern.search(name))


def depth_of(names: Iterable[str], prefix: str) -> int:
    """Number of blocks, from the indices in names that match ``prefix``, in which ``{}`` is the index."""
    pattern = re.compile(re.escape(prefix).replace(r"\{\}", r"(\d+)"))
    return len({match[1] for name in names if (match := pattern.match(name))})


def rename(tensors: Tensors, names: AuthorsNames, spec: BackboneSpec) -> dict[str, Tensor]:
    """The state dict under new names; split tensors are views."""
    depth = depth_of(tensors, names.old_block)
    if not depth:
        refuse(spec, f"it has no blocks of {names.layout}")
    parts: list[tuple[str, str, Mapping[str, str | tuple[str, ...]]]] = [("", "", names.fixed)]
    parts += [(names.old_block.format(i), names.new_block.format(i), names.block) for i in range(depth)]
    absent = {old for old in names.optional if not any(before + old in tensors for before, _, _ in parts)}
    table = {
        before + old: tuple(after + name for name in ((new,) if isinstance(new, str) else new))
        for before, after, part in parts
        for old, new in part.items()
        if old not in absent
    }
    check_names(needed(tensors, (*names.unused, HEADS)), table, names.layout, spec)
    renamed: dict[str, Tensor] = {}
    for old, new in table.items():
        tensor = tensors[old]
        if len(new) == 1:
            renamed[new[0]] = tensor
        elif tensor.ndim == 0 or len(tensor) % len(new):
            refuse(spec, f"{old} {list(tensor.shape)} cannot be split into {len(new)} equal parts of rows")
        else:
            renamed.update(zip(new, tensor.chunk(len(new)), strict=True))
    return renamed


def check_names(names: Collection[str], expected: Collection[str], layout: str, spec: BackboneSpec) -> None:
    """Raise InputError if names are missing or unknown."""
    for verb, wrong in (("lacks", set(expected) - set(names)), ("has unknown", set(names) - set(expected))):
        if wrong:
            refuse(spec, f"it {verb} tensors of {layout}: {some(sorted(wrong))}")


def refuse(spec: BackboneSpec, reason: str) -> NoReturn:
    """Raise InputError for a checkpoint that does not fit."""
    raise InputError(f"{spec.name}: the checkpoint {spec.repository} does not fit: {reason}.")


def shape_of(tensors: Tensors, name: str, dims: int, spec: BackboneSpec) -> tuple[int, ...]:
    """Shape of a tensor that must have ``dims`` dimensions; raises InputError if it has not."""
    shape = tuple(tensors[name].shape)
    if len(shape) != dims:
        refuse(spec, f"{name} has the shape {list(shape)}, not one of {dims} dimensions")
    return shape


def sizes_of(
    tensors: Tensors, names: AuthorsNames, side: int, spec: BackboneSpec, heads: int | None = None
) -> dict[str, Any]:
    """Settings of every ViT configuration, for ``side`` patches per side; heads are the entry's if None."""
    width, channels, height, across = shape_of(tensors, names.patches, 4, spec)
    if height != across:
        refuse(spec, f"square patches are expected, and {names.patches} has {height} x {across} px")
    heads = heads or spec.heads
    if heads is None:
        refuse(spec, "it is a Vision Transformer, and the entry is a ConvNet")
    if width % heads:
        split = f"cannot be split into the {heads} heads of the entry, whose width is {spec.width}"
        refuse(spec, f"a width of {width} {split}")
    sizes = {
        "hidden_size": width,
        "num_hidden_layers": depth_of(tensors, names.old_block),
        "num_attention_heads": heads,
        "image_size": side * height,
        "patch_size": height,
        "num_channels": channels,
    }
    first = names.old_block.format(0) + names.hidden
    if first in tensors:
        sizes["intermediate_size"] = shape_of(tensors, first, 2, spec)[0]
    return sizes


def grid_side(tensors: Tensors, name: str, prefix: int, spec: BackboneSpec) -> int:
    """Cells per side of the square grid of a position table that also has ``prefix`` other tokens."""
    cells = shape_of(tensors, name, 3 if name == "pos_embed" else 2, spec)[-2] - prefix
    side = isqrt(max(cells, 0))
    if side < 1 or side * side != cells:
        expected = "positions of a square grid are expected"
        refuse(spec, f"{expected}, and {name} has {cells} beside those of prefix tokens")
    return side
