"""From a ``config.json`` to the architecture that it describes and its configuration in transformers."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedConfig, PreTrainedModel, ViTConfig, ViTMAEConfig

from zoo.architecture import Architecture
from zoo.entries import ARCHITECTURES
from zoo.errors import InputError
from zoo.load import rotary_vit
from zoo.load.adapters import WITHOUT_SKIP

# Types of image-text models, and the type of their vision towers.
_TOWERS = {entry.tower_of: entry.model_type for entry in ARCHITECTURES if entry.tower_of}
# Keys that are no fields of a configuration's class, and say something of its network.
_FREE_KEYS = {"rope_theta", "rope_scaling", WITHOUT_SKIP}

_RADIO_CLASS = "RADIOModel"  # what ``architectures`` names in the repositories of RADIO's authors

# Channels, blocks, heads and channels inside the MLP of the networks that RADIO's authors name.
RADIO_SIZES = {
    "small": (384, 12, 6, 1536),
    "base": (768, 12, 12, 3072),
    "large": (1024, 24, 16, 4096),
    "so400m": (1152, 27, 16, 4304),
    "so400m_v2": (1152, 27, 16, 4320),
    "huge": (1280, 32, 16, 5120),
}
_ENCODER = (  # keys of the configuration of a ViTMAE that are of its encoder
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("layer_norm_eps", "image_size", "patch_size", "num_channels", "qkv_bias"),
)
_RADIO_NAME = re.compile(r"vit_([a-z0-9_]+?)_patch(\d+)_224")


def supported_types() -> tuple[str, ...]:
    """Names that ``model_type`` may have in a ``config.json``, sorted."""
    return tuple(sorted({entry.model_type for entry in ARCHITECTURES} | set(_TOWERS)))


def model_class(architecture: Architecture) -> type[PreTrainedModel]:
    """The class of an architecture's network."""
    holder = rotary_vit if hasattr(rotary_vit, architecture.model) else transformers
    model: type[PreTrainedModel] = getattr(holder, architecture.model)
    return model


def read_config(values: dict[str, Any], path: Path) -> tuple[Architecture, PreTrainedConfig]:
    """Architecture and configuration of the vision backbone that a ``config.json`` describes.

    ``path`` is where its values were read. Raises InputError where the model type is missing or not
    supported.
    """
    classes = values.get("architectures") or ()
    if _RADIO_CLASS in classes and isinstance(values.get("args"), Mapping):
        values = _radio_of_authors(values, path)
    kind = str(values.get("model_type"))
    if kind in _TOWERS:
        kind, values = _TOWERS[kind], dict(values.get("vision_config") or values)
    fitting = (one for one in ARCHITECTURES if one.checkpoint_class in (None, *classes))
    architecture = next((one for one in fitting if one.model_type == kind), None)
    if architecture is None:
        raise InputError(
            f"{path} describes model type '{values.get('model_type', 'none')}', which is not supported; "
            f"supported are {', '.join(supported_types())}."
        )
    if kind == "vit_mae":
        # its encoder as a plain ViT: ViTMAE itself shuffles the patches at every call
        mae = ViTMAEConfig.from_dict(_known(ViTMAEConfig, values))
        return architecture, ViTConfig(**{name: getattr(mae, name) for name in _ENCODER})
    config_class = model_class(architecture).config_class or PreTrainedConfig
    config: PreTrainedConfig = config_class.from_dict(_known(config_class, values))
    if architecture.pooling_key:
        setattr(config, architecture.pooling_key, False)
    return architecture, config


def _known(config_class: type[PreTrainedConfig], values: dict[str, Any]) -> dict[str, Any]:
    """What a configuration says of its own class's network.

    All else is dropped: transformers keeps any key as an attribute, and some of those choose what code runs
    (an implementation of attention on the Hub, say), which is not for a file to choose.
    """
    fields = config_class.__dataclass_fields__.keys() - PreTrainedConfig.__dataclass_fields__.keys()
    names = {name for name in fields if not name.startswith("_")} | {*config_class.attribute_map, *_FREE_KEYS}
    return {key: value for key, value in values.items() if key in names}


def _radio_of_authors(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A ``config.json`` of RADIO's authors as ``RadioConfig`` of transformers describes the same network.

    Each teacher has its own class token, where the authors' options say so. Registers fill class tokens up to
    a multiple, or are counted by an option of their own: ``cls_token.py`` of the authors. Raises InputError
    where the network is of a kind that is not supported.
    """
    options: Mapping[str, Any] = values["args"]
    named = _RADIO_NAME.fullmatch(str(options.get("model")))
    if named is None or named[1] not in RADIO_SIZES or not options.get("cpe_max_size"):
        raise InputError(
            f"{path} describes a RADIO network {options.get('model')!r}, which is not supported; supported "
            f"are Vision Transformers of the sizes {', '.join(RADIO_SIZES)} with a cpe_max_size."
        )
    width, blocks, heads, inner = RADIO_SIZES[named[1]]
    is_read = {"all": True}  # by the authors' summary, for each class token
    if options.get("cls_token_per_teacher"):
        is_read = {}
        for teacher in options["teachers"]:
            is_read.setdefault(str(teacher["name"]), bool(teacher.get("use_summary", True)))
    tokens, multiple = len(is_read), int(options.get("register_multiple") or 0)
    filling = multiple - tokens % multiple if multiple else 0
    return {
        "model_type": "radio",
        "hidden_size": width,
        "num_hidden_layers": blocks,
        "num_attention_heads": heads,
        "mlp_ratio": inner / width,
        "patch_size": int(values.get("patch_size") or named[2]),
        "max_img_size": int(options["cpe_max_size"]),
        "num_cls_tokens": tokens,
        "num_registers": int(options.get("cpe_num_registers") or filling),
        "summary_idxs": [index for index, read in enumerate(is_read.values()) if read],
    }
