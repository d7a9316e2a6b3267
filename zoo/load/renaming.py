"""The backbone's tensors in state dicts of any training, under the names of transformers."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn

from torch import Tensor

from layerboard.zoo.architecture import AuthorsNames
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec

Tensors = Mapping[str, Tensor]  # of a checkpoint, by name

_WRAPPERS = ("teacher", "state_dict", "model", "weights")
_QUERY = "module.base_encoder."
# Prefixes of the backbone: MoCo-v3's query encoder, parallel training, DINO's, CLIP's vision tower.
_PARTS = (_QUERY, "module.", "backbone.", "visual.")
_DEEPEST = 8  # maximum nesting of dictionaries that are opened: a file may nest them without end
_MOMENTUM = "module.momentum_encoder."
# Blocks that a sharded training keeps in chunks, as DINOv2's and Franca's do; they keep their numbers.
_CHUNKED = re.compile(r"^blocks\.\d+\.(?=\d+\.)")
_LISTED = 3  # names that an error lists


def unwrap(content: Mapping[str, object], spec: BackboneSpec) -> dict[str, Tensor]:
    """Tensors of the backbone in the content of a file, under the names of its own code.

    Training checkpoints keep them under ``state_dict``, ``model``, ``weights`` or ``teacher``, and beside
    other networks: for DINO and iBOT the teacher is taken, for MoCo-v3 the query encoder, for CLIP the vision
    tower.
    """
    for _ in range(_DEEPEST):
        inner = (content.get(name) for name in _WRAPPERS)
        content = next((value for value in inner if isinstance(value, Mapping)), content)
    if isinstance(content.get("student"), Mapping):
        raise InputError(
            f"{spec.name}: {spec.repository} holds a student without its teacher, whose features are meant; "
            "give the teacher's file."
        )
    tensors = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if any(name.startswith(_MOMENTUM) for name in tensors) and not _below(tensors, _QUERY):
        raise InputError(
            f"{spec.name}: {spec.repository} holds the momentum encoder only; the features meant are "
            f"those of the query encoder, under {_QUERY}*."
        )
    for prefix in _PARTS:
        tensors = _below(tensors, prefix) or tensors
    return {_CHUNKED.sub("blocks.", name): tensor for name, tensor in tensors.items()}


def _below(tensors: Tensors, prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


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
    table: dict[str, tuple[str, ...]] = {old: (new,) for old, new in names.fixed.items()}
    for index in range(depth):
        before, after = names.old_block.format(index), names.new_block.format(index)
        for old, new in names.block.items():
            table[before + old] = tuple(after + part for part in ((new,) if isinstance(new, str) else new))
    check_names(needed(tensors, names.unused), table, names.layout, spec)
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
            refuse(spec, f"it {verb} tensors of {layout}: {listed(wrong)}")


def refuse(spec: BackboneSpec, reason: str) -> NoReturn:
    """Raise InputError for a checkpoint that does not fit."""
    raise InputError(f"{spec.name}: the checkpoint {spec.repository} does not fit: {reason}.")


def listed(names: Iterable[str]) -> str:
    """The first few names in order, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return ", ".join(ordered[:_LISTED]) + more if ordered else "none"


def shape_of(tensors: Tensors, name: str, dims: int, spec: BackboneSpec) -> tuple[int, ...]:
    """Shape of a tensor that must have ``dims`` dimensions; raises InputError if it has not."""
    shape = tuple(tensors[name].shape)
    if len(shape) != dims:
        refuse(spec, f"{name} has the shape {list(shape)}, not one of {dims} dimensions")
    return shape
