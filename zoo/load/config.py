"""Interpretation of a ``config.json``: architecture, configuration in transformers, and facts of an entry."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers import Aimv2VisionConfig, HieraConfig, PreTrainedConfig, PreTrainedModel, RadioConfig

from layerboard.zoo.entries import ARCHITECTURES
from layerboard.zoo.entries.architecture import Architecture
from layerboard.zoo.entries.family import BASE, HUGE, LARGE, SMALL, SO400M
from layerboard.zoo.errors import InputError, ensure
from layerboard.zoo.load import rotary_vit
from layerboard.zoo.load.adapters import WITHOUT_SKIP
from layerboard.zoo.spec import BackboneSpec, Layer, Stage

# Types of image-text models, and the types of their vision towers.
_TOWERS = {entry.tower_of: entry.model_type for entry in ARCHITECTURES if entry.tower_of}
# Keys that are no fields of a configuration class, but describe its network.
_FREE_KEYS = {"rope_theta", "rope_scaling", WITHOUT_SKIP}

# Errors that an inconsistent configuration may cause.
_MALFORMED = (StrictDataclassError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_RADIO_CLASS = "RADIOModel"  # the value of ``architectures`` in the repositories of RADIO's authors

# Of the networks that RADIO's authors name.
RADIO_SIZES = {
    "small": SMALL,
    "base": BASE,
    "large": LARGE,
    "so400m": SO400M,
    "so400m_v2": replace(SO400M, mlp=4320),
    "huge": HUGE,
}
_RADIO_NAME = re.compile(r"vit_([a-z0-9_]+?)_patch(\d+)_224")


def model_class(architecture: Architecture) -> type[PreTrainedModel]:
    """The class of an architecture's network."""
    usual: Any = transformers.MODEL_MAPPING
    model: type[PreTrainedModel]
    if name := architecture.model:
        model = getattr(rotary_vit if hasattr(rotary_vit, name) else transformers, name)
    else:
        model = usual[transformers.CONFIG_MAPPING[architecture.model_type]]
    return model


def read_config(values: dict[str, Any], path: Path) -> tuple[Architecture, PreTrainedConfig]:
    """Architecture and configuration of the vision backbone in a ``config.json``, read from ``path``."""
    classes = values.get("architectures") or ()
    if _RADIO_CLASS in classes and isinstance(values.get("args"), Mapping):
        values = _radio_of_authors(values, path)
    kind = str(values.get("model_type"))
    if kind in _TOWERS:
        kind, values = _TOWERS[kind], dict(values.get("vision_config") or values)
    of_kind = (candidate for candidate in ARCHITECTURES if candidate.model_type == kind)
    architecture = next((fit for fit in of_kind if not fit.is_named or fit.model in classes), None)
    if architecture is None:
        supported = sorted({each.model_type for each in ARCHITECTURES} | {*_TOWERS})
        raise InputError(
            f"{path} describes model type '{values.get('model_type', 'none')}', which is not supported; "
            f"supported are {', '.join(supported)}."
        )
    config_class = model_class(architecture).config_class or PreTrainedConfig
    config: PreTrainedConfig = config_class.from_dict(_known(config_class, values))
    if architecture.pooling_key:
        setattr(config, architecture.pooling_key, False)
    return architecture, config


def _known(config_class: type[PreTrainedConfig], values: dict[str, Any]) -> dict[str, Any]:
    """The entries of a configuration that its own class knows.

    All others are dropped: transformers keeps any key as an attribute, and some of those choose the code to
    run (such as an implementation of attention on the Hub), which a file must not decide.
    """
    fields = config_class.__dataclass_fields__.keys() - PreTrainedConfig.__dataclass_fields__.keys()
    names = {name for name in fields if not name.startswith("_")} | {*config_class.attribute_map, *_FREE_KEYS}
    return {key: value for key, value in values.items() if key in names}


def _radio_of_authors(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A ``config.json`` of RADIO's authors, translated to ``RadioConfig`` of transformers.

    Each teacher has its own class token if the authors' options say so. Registers pad class tokens to a
    multiple, or have their own option: ``cls_token.py`` of the authors.
    """
    options: Mapping[str, Any] = values["args"]
    named = _RADIO_NAME.fullmatch(str(options.get("model")))
    if named is None or named[1] not in RADIO_SIZES or not options.get("cpe_max_size"):
        raise InputError(
            f"{path} describes a RADIO network {options.get('model')!r}, which is not supported; supported "
            f"are Vision Transformers of the sizes {', '.join(RADIO_SIZES)} with a cpe_max_size."
        )
    size = RADIO_SIZES[named[1]]
    ((blocks,), (width,)) = size.blocks, size.widths
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
        "num_attention_heads": size.heads,
        "mlp_ratio": (size.mlp or 4 * width) / width,
        "patch_size": int(values.get("patch_size") or named[2]),
        "max_img_size": int(options["cpe_max_size"]),
        "num_cls_tokens": tokens,
        "num_registers": int(options.get("cpe_num_registers") or filling),
        "summary_idxs": [index for index, read in enumerate(is_read.values()) if read],
    }


def read_network(values: dict[str, Any], path: Path) -> tuple[Architecture, PreTrainedConfig, BackboneSpec]:
    """Architecture, configuration and facts of a consistent ``config.json``, read from ``path``."""
    try:
        architecture, config = read_config(values, path)
        facts = spec_from_config(architecture, config)
    except InputError:
        raise
    except _MALFORMED as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} describes no network that transformers can build: {reason}.") from error
    numbers = [number for stage in facts.stages for number in (stage.blocks, stage.width, stage.stride)]
    channels = getattr(config, "num_channels", getattr(config, "in_chans", 3))
    if min(numbers, default=0) < 1 or (facts.heads is not None and facts.heads < 1):
        raise InputError(f"{path} gives a number of blocks, channels, heads or pixels below 1.")
    ensure(channels == 3, f"{path} describes a network for images of {channels} channels; expected 3, RGB.")
    return architecture, config, facts


def spec_from_config(architecture: Architecture, config: PreTrainedConfig) -> BackboneSpec:
    """The facts about a backbone in its configuration, as a spec without a name and a repository."""
    facts = BackboneSpec(
        name="",
        family=architecture.family,
        supervision="unknown",
        repository="",
        stages=(),
        heads=None,
        prefix_tokens=0,
        has_cls=False,
        has_final=architecture.final_norm is not None,
    )
    if architecture.layout == "maps":
        return _convolutional_facts(facts, config)
    if "*" in architecture.blocks:  # stages, between which tokens become fewer and wider
        return _hierarchical_facts(facts, config)
    return _plain_facts(facts, architecture, config)


def _hierarchical_facts(facts: BackboneSpec, config: PreTrainedConfig) -> BackboneSpec:
    heads = getattr(config, "num_heads", None)
    if isinstance(config, HieraConfig):
        stages = _hiera_stages(config)
    else:
        widths = [int(config.embed_dim) * 2**index for index in range(len(config.depths))]
        stages = _stages(config.depths, widths, _side(config.patch_size))
    heads = int(heads[-1]) if heads else None
    return replace(facts, stages=stages, heads=heads, trained_size=_side(config.image_size))


def _plain_facts(facts: BackboneSpec, architecture: Architecture, config: PreTrainedConfig) -> BackboneSpec:
    """The facts about a transformer with equal tokens in all blocks."""
    # BEiT averages tokens before its norm if the configuration says so, except the pre-trained network
    lacks_norm = not architecture.is_named and bool(getattr(config, "use_mean_pooling", False))
    first = getattr(config, "n_cls_tokens", architecture.prefix_tokens)  # Pixio has several
    has_cls, registers = architecture.prefix_tokens > 0, getattr(config, "num_register_tokens", 0)
    if isinstance(config, rotary_vit.PerceptionEncoderConfig):
        first, has_cls, lacks_norm = config.class_token, config.class_token, config.norm_after == "none"
    elif isinstance(config, RadioConfig):
        first, registers = config.num_cls_tokens, config.num_registers
    inner = getattr(config, "intermediate_size", getattr(config, "mlp_dim", None))
    inner = int(config.hidden_size * config.mlp_ratio if inner is None else inner)
    is_swiglu = getattr(config, "use_swiglu_ffn", False)
    is_gated = is_swiglu or getattr(config, "use_gated_mlp", isinstance(config, Aimv2VisionConfig))
    is_any_size = getattr(config, "is_native", False)  # AIMv2's: its positions are computed
    return replace(
        facts,
        stages=(Stage(int(config.num_hidden_layers), int(config.hidden_size), _side(config.patch_size)),),
        heads=int(config.num_attention_heads),
        prefix_tokens=int(first) + int(registers),
        has_cls=has_cls,
        has_final=facts.has_final and not lacks_norm,
        trained_size=None if is_any_size else _side(getattr(config, "image_size", None) or config.crop_size),
        mlp_width=(int(inner * 2 / 3) + 7) // 8 * 8 if is_swiglu else inner,  # as ``Dinov2SwiGLUFFN`` rounds
        gated_mlp=bool(is_gated),
    )


def _convolutional_facts(facts: BackboneSpec, config: PreTrainedConfig) -> BackboneSpec:
    widths = [int(width) * int(getattr(config, "width_factor", 1)) for width in config.hidden_sizes]
    stem = int(getattr(config, "embedding_size", widths[0]))
    doubled = 2 if getattr(config, "downsample_in_first_stage", False) else 1
    is_normed = getattr(config, "layer_type", "preactivation") == "preactivation"
    return replace(
        facts,
        stages=_stages(config.depths, widths, int(getattr(config, "patch_size", 4)) * doubled),
        has_final=facts.has_final and is_normed,
        stem_width=None if stem == widths[0] else stem,
    )


def _hiera_stages(config: HieraConfig) -> tuple[Stage, ...]:
    """Stages of a Hiera that pools before each of them but the first, down to one cell per mask unit.

    The repositories of the pre-training (``-mae-hf``) say that the last stage is not pooled, since their
    decoder needs it finer; the others contain the same weights and pool it.
    """
    pools = len(config.depths) - 1
    first = int(config.patch_stride[0])
    expected = {
        "num_query_pool": (config.num_query_pool, pools),
        "query_stride": (tuple(config.query_stride), (2, 2)),
        "masked_unit_size": (tuple(config.masked_unit_size), (2**pools, 2**pools)),
        "patch_stride": (tuple(config.patch_stride), (first, first)),
    }
    wrong = [f"{what} is {has}, not {should}" for what, (has, should) in expected.items() if has != should]
    if wrong:
        raise InputError(
            f"A Hiera of {pools + 1} stages should pool by twos before each but the first, but the "
            f"configuration's {'; '.join(wrong)}; in place of a checkpoint of the pre-training, "
            "facebook/hiera-*-mae-hf, give the one without -mae, which holds the same weights."
        )
    widths = [int(config.embed_dim * config.embed_dim_multiplier**index) for index in range(pools + 1)]
    return _stages(config.depths, widths, first)


def _stages(depths: Iterable[int], widths: Iterable[int], first: int) -> tuple[Stage, ...]:
    """Stages whose stride doubles from the first on."""
    pairs = enumerate(zip(depths, widths, strict=True))
    return tuple(Stage(int(blocks), width, first * 2**index) for index, (blocks, width) in pairs)


def _side(size: int | Sequence[int]) -> int:
    """The side of a square given as a number or as a pair; raises InputError if the sides differ."""
    first, second = (size, size) if isinstance(size, int) else size
    if first != second:
        sides = f"the configuration says {first} x {second}"
        raise InputError(f"Patches and training images must be square; {sides}.")
    return int(first)


def check_facts(spec: BackboneSpec, facts: BackboneSpec) -> None:
    """Raise InputError if an entry and its checkpoint differ, with all differences."""
    pairs: dict[str, tuple[object, object]] = {}
    if len(spec.stages) == len(facts.stages) == 1:
        numbers = zip(astuple(spec.stages[0]), astuple(facts.stages[0]), strict=True)
        pairs |= dict(zip(("blocks", "width", "patch size"), numbers, strict=True))
    else:
        stages = [list(map(astuple, side.stages)) for side in (spec, facts)]
        pairs["stages (blocks, width, stride)"] = stages[0], stages[1]
    pairs |= {
        "attention heads": (spec.heads, facts.heads),
        "prefix tokens": (spec.prefix_tokens, facts.prefix_tokens),
        "a class token": (spec.has_cls, facts.has_cls),
        "a final norm": (spec.has_final, facts.has_final),
        "channels of the stem": (spec.stage_of(Layer(0)).width, facts.stage_of(Layer(0)).width),
    }
    if spec.trained_size is not None:
        pairs["pixels a side of its training images"] = spec.trained_size, facts.trained_size or "any"
    if facts.mlp_width is not None and len(spec.stages) == 1:
        pairs["width inside the MLP"] = spec.mlp_width or 4 * spec.width, facts.mlp_width
        pairs["a gated MLP"] = spec.gated_mlp, facts.gated_mlp
    differences = [f"{what}: {has}, not {should}" for what, (should, has) in pairs.items() if should != has]
    if differences:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} differs from the entry: {'; '.join(differences)}."
        )
