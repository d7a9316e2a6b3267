"""What a ``config.json`` says about a backbone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from transformers import HieraConfig, PreTrainedConfig, RadioConfig, ViTConfig, ViTMAEConfig

from zoo.errors import InputError
from zoo.load.architecture import ARCHITECTURES, Architecture
from zoo.load.hiera import hiera_stages
from zoo.load.radio import as_transformers, is_of_authors
from zoo.load.rotary_vit import RotaryViTConfig
from zoo.load.skips import WITHOUT_SKIP
from zoo.spec import Stage

_TOWERS = {
    "aimv2": "aimv2_vision_model",
    "clip": "clip_vision_model",
    "metaclip_2": "metaclip_2_vision_model",
    "sam": "sam_vision_model",
    "siglip": "siglip_vision_model",
    "tipsv2": "tipsv2_vision_model",
}
"""Types of image-text models, and the type of their vision towers."""

_KEPT = {"rope_theta", "rope_scaling", WITHOUT_SKIP}
"""Keys that are no fields of a configuration's class, and say something of its network."""

_POOLED = {"siglip_vision_model": "vision_use_head", "aimv2_vision_model": "use_head"}
"""Option of the types whose networks end in attention pooling, which is of no use here."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a configuration says about a backbone.

    Attributes:
        stages: Blocks with their widths and strides.
        heads: Attention heads; None for a ConvNet.
        prefix_tokens: Tokens before the patch tokens, registers included.
        has_cls: Whether there is a class token.
        has_final: Whether a norm of all tokens follows the last block.
        stem_width: Channels of layer 0.
        input_size: Side in pixels of the training images; None where the configuration does not know it.
        mlp_width: Channels inside the MLP of a plain Vision Transformer; None for others.
    """

    stages: tuple[Stage, ...]
    heads: int | None
    prefix_tokens: int
    has_cls: bool
    has_final: bool
    stem_width: int
    input_size: int | None
    mlp_width: int | None = None


def supported_types() -> tuple[str, ...]:
    """Names that ``model_type`` may have in a ``config.json``, sorted."""
    return tuple(sorted({entry.model_type for entry in ARCHITECTURES} | set(_TOWERS)))


def read_network(values: dict[str, Any], path: Path) -> tuple[Architecture, PreTrainedConfig, Facts]:
    """Architecture, configuration and facts of a ``config.json`` that makes sense.

    Args:
        values: Content of the file.
        path: Where it was read, for the error.

    Raises:
        InputError: It makes none, or its model type is not supported.
    """
    try:
        architecture, config = read_config(values, path)
        facts = read_facts(architecture, config)
    except InputError:
        raise
    except (
        StrictDataclassError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} describes no network that transformers can build: {reason}.") from error
    numbers = [number for stage in facts.stages for number in (stage.blocks, stage.width, stage.stride)]
    channels = getattr(config, "num_channels", getattr(config, "in_chans", 3))
    if facts.heads is not None:
        numbers.append(facts.heads)
    if min(numbers, default=0) < 1:
        raise InputError(f"{path} gives a number of blocks, channels, heads or pixels below 1.")
    if channels != 3:
        raise InputError(f"{path} describes a network for images of {channels} channels; expected 3, RGB.")
    return architecture, config, facts


def read_config(values: dict[str, Any], path: Path) -> tuple[Architecture, PreTrainedConfig]:
    """Architecture and configuration of the vision backbone that a ``config.json`` describes.

    Args:
        values: Content of the file.
        path: Where it was read, for the error.

    Raises:
        InputError: The model type is missing or not supported.
    """
    if is_of_authors(values):
        values = as_transformers(values, path)
    kind = str(values.get("model_type"))
    classes = values.get("architectures") or ()
    if kind in _TOWERS:
        kind, values = _TOWERS[kind], dict(values.get("vision_config") or values)
    architecture = _select(kind, classes)
    if architecture is None:
        raise InputError(
            f"{path} describes model type '{values.get('model_type', 'none')}', which is not supported; "
            f"supported are {', '.join(supported_types())}."
        )
    if kind == "vit_mae":
        return architecture, _encoder_of_mae(_known(ViTMAEConfig, values))
    config_class = architecture.model.config_class or PreTrainedConfig
    config: PreTrainedConfig = config_class.from_dict(_known(config_class, values))
    if kind in _POOLED:
        setattr(config, _POOLED[kind], False)
    return architecture, config


def _known(config_class: type[PreTrainedConfig], values: dict[str, Any]) -> dict[str, Any]:
    """What a configuration says of its own class's network.

    All else is dropped: transformers keeps any key as an attribute, and some of those choose what code runs
    (an implementation of attention on the Hub, say), which is not for a file to choose.
    """
    own = config_class.__dataclass_fields__.keys() - PreTrainedConfig.__dataclass_fields__.keys()
    names = {name for name in own if not name.startswith("_")} | set(config_class.attribute_map) | _KEPT
    return {key: value for key, value in values.items() if key in names}


def _select(kind: str, classes: Iterable[str]) -> Architecture | None:
    for entry in ARCHITECTURES:
        if entry.model_type == kind and (entry.checkpoint_class is None or entry.checkpoint_class in classes):
            return entry
    return None


def _encoder_of_mae(values: dict[str, Any]) -> PreTrainedConfig:
    """The encoder of a ViTMAE as a plain ViT: ViTMAE itself shuffles the patches at every call."""
    config = ViTMAEConfig.from_dict(values)
    return ViTConfig(
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        hidden_act=config.hidden_act,
        layer_norm_eps=config.layer_norm_eps,
        image_size=config.image_size,
        patch_size=config.patch_size,
        num_channels=config.num_channels,
        qkv_bias=config.qkv_bias,
    )


def read_facts(architecture: Architecture, config: PreTrainedConfig) -> Facts:
    """What the configuration says about the backbone."""
    if architecture.convolutional:
        return _convolutional_facts(architecture, config)
    if architecture.hierarchical:
        return _hierarchical_facts(architecture, config)
    patch = _side(config.patch_size)
    has_cls = config.class_token if isinstance(config, RotaryViTConfig) else architecture.has_cls
    return Facts(
        stages=(Stage(int(config.num_hidden_layers), int(config.hidden_size), patch),),
        heads=int(config.num_attention_heads),
        prefix_tokens=_prefix_tokens(architecture, config),
        has_cls=has_cls,
        has_final=architecture.final_norm is not None and not _ends_without_norm(architecture, config),
        stem_width=int(config.hidden_size),
        input_size=_side(getattr(config, "image_size", None) or config.crop_size),
        mlp_width=_mlp_width(config),
    )


def _prefix_tokens(architecture: Architecture, config: PreTrainedConfig) -> int:
    """Tokens before the patch tokens."""
    if isinstance(config, RadioConfig):
        return int(config.num_cls_tokens) + int(config.num_registers)
    usual = getattr(config, "n_cls_tokens", architecture.prefix_tokens)  # Pixio has several
    first = config.class_token if isinstance(config, RotaryViTConfig) else usual
    return int(first) + int(getattr(config, "num_register_tokens", 0))


def _ends_without_norm(architecture: Architecture, config: PreTrainedConfig) -> bool:
    """Whether a network whose kind may end in a norm of all tokens has none."""
    if isinstance(config, RotaryViTConfig):
        return config.norm_after == "none"
    return architecture.mean_pooled and bool(config.use_mean_pooling)


def _mlp_width(config: PreTrainedConfig) -> int:
    inner = getattr(config, "intermediate_size", getattr(config, "mlp_dim", None))
    return int(config.hidden_size * config.mlp_ratio) if inner is None else int(inner)


def _convolutional_facts(architecture: Architecture, config: PreTrainedConfig) -> Facts:
    widths = [int(width) * int(getattr(config, "width_factor", 1)) for width in config.hidden_sizes]
    stem = int(getattr(config, "embedding_size", widths[0]))
    first = int(getattr(config, "patch_size", 4)) * (
        2 if getattr(config, "downsample_in_first_stage", False) else 1
    )
    is_normed = getattr(config, "layer_type", "preactivation") == "preactivation"
    return Facts(
        stages=_stages(config.depths, widths, first),
        heads=None,
        prefix_tokens=0,
        has_cls=False,
        has_final=architecture.final_norm is not None and is_normed,
        stem_width=stem,
        input_size=None,
    )


def _hierarchical_facts(architecture: Architecture, config: PreTrainedConfig) -> Facts:
    widths = [int(config.embed_dim) * 2**index for index in range(len(config.depths))]
    heads = getattr(config, "num_heads", None)
    return Facts(
        stages=hiera_stages(config)
        if isinstance(config, HieraConfig)
        else _stages(config.depths, widths, _side(config.patch_size)),
        heads=int(heads[-1]) if heads else None,
        prefix_tokens=0,
        has_cls=False,
        has_final=architecture.final_norm is not None,
        stem_width=widths[0],
        input_size=_side(config.image_size),
    )


def _stages(depths: Iterable[int], widths: Iterable[int], first: int) -> tuple[Stage, ...]:
    """Stages whose stride doubles from the first on."""
    pairs = enumerate(zip(depths, widths, strict=True))
    return tuple(Stage(int(blocks), width, first * 2**index) for index, (blocks, width) in pairs)


def _side(size: int | Sequence[int]) -> int:
    """One side of a square given as a number or as a pair.

    Raises:
        InputError: The sides differ.
    """
    if isinstance(size, int):
        return size
    first, second = size
    if first != second:
        raise InputError(
            f"Patches and training images must be square; the configuration says {first} x {second}."
        )
    return int(first)
