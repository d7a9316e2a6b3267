"""The configuration of RADIO's repositories, which is that of its authors' code, as one of transformers."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo.errors import InputError

AUTHORS_CLASS = "RADIOModel"
"""What ``architectures`` names in these repositories."""

_SIZES = {
    "small": (384, 12, 6, 1536),
    "base": (768, 12, 12, 3072),
    "large": (1024, 24, 16, 4096),
    "so400m": (1152, 27, 16, 4304),
    "so400m_v2": (1152, 27, 16, 4320),
    "huge": (1280, 32, 16, 5120),
}
"""Channels, blocks, heads and channels inside the MLP of the networks that the authors name."""

_NAME = re.compile(r"vit_([a-z0-9_]+?)_patch(\d+)_224")


def is_of_authors(values: Mapping[str, Any]) -> bool:
    """Whether a ``config.json`` is that of the authors' code."""
    return AUTHORS_CLASS in (values.get("architectures") or ()) and isinstance(values.get("args"), Mapping)


def as_transformers(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The same network as ``RadioConfig`` of transformers describes it.

    Each teacher has its own class token, where the authors' options say so. Registers fill class tokens up to
    a multiple, or are counted by an option of their own: ``cls_token.py`` of the authors.

    Args:
        values: Content of a ``config.json`` that `is_of_authors`.
        path: Where it was read, for the error.

    Raises:
        InputError: The network is of a kind that is not supported, or the options make no sense.
    """
    options: Mapping[str, Any] = values["args"]
    named = _NAME.fullmatch(str(options.get("model")))
    if named is None or named[1] not in _SIZES or not options.get("cpe_max_size"):
        raise InputError(
            f"{path} describes a RADIO network {options.get('model')!r}, which is not supported; supported "
            f"are Vision Transformers of the sizes {', '.join(_SIZES)} with a cpe_max_size."
        )
    width, blocks, heads, inner = _SIZES[named[1]]
    names = _teachers(options)
    tokens = len(names)
    return {
        "model_type": "radio",
        "hidden_size": width,
        "num_hidden_layers": blocks,
        "num_attention_heads": heads,
        "mlp_ratio": inner / width,
        "patch_size": int(values.get("patch_size") or named[2]),
        "max_img_size": int(options["cpe_max_size"]),
        "num_cls_tokens": tokens,
        "num_registers": _registers(options, tokens),
        "summary_idxs": [index for index, is_read in enumerate(names.values()) if is_read],
    }


def _teachers(options: Mapping[str, Any]) -> dict[str, bool]:
    """Class tokens by the name of their teacher, and whether the authors' summary reads them."""
    if not options.get("cls_token_per_teacher"):
        return {"all": True}
    found: dict[str, bool] = {}
    for teacher in options["teachers"]:
        found.setdefault(str(teacher["name"]), bool(teacher.get("use_summary", True)))
    return found


def _registers(options: Mapping[str, Any], tokens: int) -> int:
    if options.get("cpe_num_registers"):
        return int(options["cpe_num_registers"])
    multiple = int(options.get("register_multiple") or 0)
    return multiple - tokens % multiple if multiple else 0
