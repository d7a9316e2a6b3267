"""The backbone's tensors inside a checkpoint of any training."""

import re
from collections.abc import Mapping

from torch import Tensor

from zoo.errors import InputError
from zoo.spec import BackboneSpec

_WRAPPERS = ("teacher", "state_dict", "model", "weights")
_QUERY = "module.base_encoder."
_PARTS = (_QUERY, "module.", "backbone.", "visual.")
"""Prefixes of the backbone: MoCo-v3's query encoder, parallel training, DINO's, CLIP's vision tower."""

_DEEPEST = 8
"""Dictionaries inside each other that are opened."""

_MOMENTUM = "module.momentum_encoder."

_CHUNKED = re.compile(r"^blocks\.\d+\.(?=\d+\.)")
"""Blocks that a sharded training keeps in chunks, as DINOv2's and Franca's do; they keep their numbers."""


def unwrap(content: Mapping[str, object], spec: BackboneSpec) -> dict[str, Tensor]:
    """Tensors of the backbone in a checkpoint, under the names of its own code.

    Training checkpoints keep them under ``state_dict``, ``model``, ``weights`` or ``teacher``, and beside
    other networks: of DINO and iBOT this is the teacher, of MoCo-v3 the query encoder, of CLIP the vision
    tower.

    Args:
        content: What the file holds.
        spec: Entry, for errors.

    Raises:
        InputError: Of the networks that were trained together, the one whose features are meant is missing.
    """
    content = _innermost(content)
    if isinstance(content.get("student"), Mapping):
        raise InputError(
            f"{spec.name}: {spec.repository} holds a student without its teacher, whose features are meant; "
            "give the teacher's file."
        )
    tensors = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if any(name.startswith(_MOMENTUM) for name in tensors) and not _part(tensors, _QUERY):
        raise InputError(
            f"{spec.name}: {spec.repository} holds the momentum encoder only; the features meant are "
            f"those of the query encoder, under {_QUERY}*."
        )
    for prefix in _PARTS:
        tensors = _part(tensors, prefix) or tensors
    return {_CHUNKED.sub("blocks.", name): tensor for name, tensor in tensors.items()}


def _innermost(content: Mapping[str, object]) -> Mapping[str, object]:
    """The dictionary of tensors inside those of the training; a file may nest them without end."""
    for _ in range(_DEEPEST):
        inner = next((content[name] for name in _WRAPPERS if isinstance(content.get(name), Mapping)), None)
        if not isinstance(inner, Mapping):
            break
        content = inner
    return content


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Tensors below a prefix, without it."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
