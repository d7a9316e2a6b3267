"""Tables of original names and their names in transformers, and the renaming of a state dict by them."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import NoReturn

from torch import Tensor
from transformers import PreTrainedConfig

from zoo.errors import InputError
from zoo.spec import BackboneSpec

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Converted:
    """A state dict under the names of transformers.

    Attributes:
        config: Configuration of the network, read from the shapes.
        tensors: State dict; views of the original tensors where these had to be split.
    """

    config: PreTrainedConfig
    tensors: dict[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of a layout.

    Attributes:
        layout: What it is called in errors.
        fixed: Names outside the blocks, old to new.
        block: Names inside a block, old to new; several new ones get equal parts of the rows.
        old_block: What comes before the old names of block ``{}``.
        new_block: The same of the new names.
        unused: Patterns of tensors on which no feature depends.
    """

    layout: str
    fixed: Mapping[str, str]
    block: Mapping[str, tuple[str, ...]]
    old_block: str
    new_block: str
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Patches:
    """Shape of a patch embedding.

    Attributes:
        width: Channels that it gives.
        channels: Channels of the image.
        size: Side of a patch in pixels.
    """

    width: int
    channels: int
    size: int


def affine(names: Mapping[str, str]) -> dict[str, str]:
    """Names of weight and bias of each module in a table of modules."""
    return {f"{old}.{kind}": f"{new}.{kind}" for old, new in names.items() for kind in ("weight", "bias")}


def single(names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """A table in which no tensor is split."""
    return {old: (new,) for old, new in names.items()}


def needed(tensors: Mapping[str, Tensor], unused: Iterable[str]) -> dict[str, Tensor]:
    """Tensors that match none of the patterns."""
    pattern = re.compile("|".join(unused))
    return {name: tensor for name, tensor in tensors.items() if not pattern.search(name)}


def depth_of(names: Iterable[str], prefix: str) -> int:
    """Number of blocks: of indices in names that begin with ``prefix``, where ``{}`` stands for the index."""
    pattern = re.compile(re.escape(prefix).replace(r"\{\}", r"(\d+)"))
    return len({found[1] for name in names if (found := pattern.match(name))})


def rename(tensors: Mapping[str, Tensor], names: Names, spec: BackboneSpec) -> tuple[dict[str, Tensor], int]:
    """State dict under new names, and the number of blocks.

    Raises:
        InputError: A tensor is missing, unknown, or cannot be split.
    """
    tensors = needed(tensors, names.unused)
    depth = depth_of(tensors, names.old_block)
    if not depth:
        refuse(spec, f"it has no blocks of {names.layout}")
    table: dict[str, tuple[str, ...]] = single(names.fixed)
    for index in range(depth):
        before, after = names.old_block.format(index), names.new_block.format(index)
        table |= {before + old: tuple(after + part for part in new) for old, new in names.block.items()}
    check_names(tensors, table, names.layout, spec)
    renamed: dict[str, Tensor] = {}
    for old, new in table.items():
        if len(new) > 1 and (tensors[old].ndim == 0 or len(tensors[old]) % len(new)):
            refuse(
                spec, f"{old} {list(tensors[old].shape)} cannot be split into {len(new)} equal parts of rows"
            )
        parts = tensors[old].chunk(len(new)) if len(new) > 1 else (tensors[old],)
        renamed.update(zip(new, parts, strict=True))
    return renamed, depth


def check_names(found: Collection[str], expected: Collection[str], layout: str, spec: BackboneSpec) -> None:
    """Raise InputError if names are missing or unknown."""
    for verb, names in (("lacks", set(expected) - set(found)), ("has unknown", set(found) - set(expected))):
        if names:
            refuse(spec, f"it {verb} tensors of {layout}: {listed(names)}")


def refuse(spec: BackboneSpec, reason: str) -> NoReturn:
    """Raise InputError for a checkpoint that does not fit."""
    raise InputError(f"{spec.name}: the checkpoint {spec.repository} does not fit: {reason}.")


def listed(names: Iterable[str]) -> str:
    """The first few names in order, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return ", ".join(ordered[:_SHOWN]) + more if ordered else "none"


def shape_of(tensors: Mapping[str, Tensor], name: str, dims: int, spec: BackboneSpec) -> tuple[int, ...]:
    """Shape of a tensor that must have so many dimensions.

    Raises:
        InputError: It has another number of them.
    """
    shape = tuple(tensors[name].shape)
    if len(shape) != dims:
        refuse(spec, f"{name} has the shape {list(shape)}, not one of {dims} dimensions")
    return shape


def patches_of(tensors: Mapping[str, Tensor], name: str, spec: BackboneSpec) -> Patches:
    """Shape of the patch embedding.

    Raises:
        InputError: Patches are not square.
    """
    width, channels, height, across = shape_of(tensors, name, 4, spec)
    if height != across:
        refuse(spec, f"square patches are expected, and {name} has {height} x {across} px")
    return Patches(width, channels, height)


def grid_side(cells: int, name: str, spec: BackboneSpec) -> int:
    """Patches a side of the square grid that a table of positions is for.

    Raises:
        InputError: It is for no square grid.
    """
    side = isqrt(max(cells, 0))
    if side < 1 or side * side != cells:
        refuse(
            spec,
            f"positions of a square grid are expected, and {name} has {cells} beside those of prefix tokens",
        )
    return side


def heads_of(width: int, spec: BackboneSpec) -> int:
    """Attention heads of the entry.

    Raises:
        InputError: The entry has none, or the width cannot be split into them.
    """
    if spec.heads is None:
        refuse(spec, "it is a Vision Transformer, and the entry is a ConvNet")
    if width % spec.heads:
        refuse(
            spec,
            f"a width of {width} cannot be split into the {spec.heads} heads of the entry, whose width is "
            f"{spec.width}",
        )
    return spec.heads
