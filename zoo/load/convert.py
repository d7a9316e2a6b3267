"""Conversion of state dicts with the names of the original code to networks of transformers.

The layout is recognised from the names. It may be timm's Vision Transformer (FS, DINO, MoCo-v3, MAE, iBOT,
DeiT), DINOv2 and Franca, CAPI, BEiT, OpenAI's CLIP, the Perception Encoder or torchvision's ResNet, on its
own or inside a training checkpoint. The names are defined in `zoo.entries`, beside the backbones.
"""

import re
from collections.abc import Callable, Mapping

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedConfig

from layerboard.zoo.entries.architecture import HEADS
from layerboard.zoo.entries.contrastive import CLIP_NAMES, PE_NAMES
from layerboard.zoo.entries.distilled import DINOV2_NAMES
from layerboard.zoo.entries.masked import BEIT_NAMES, BEIT_TABLES, CAPI_NAMES
from layerboard.zoo.entries.supervised import VIT_NAMES
from layerboard.zoo.errors import InputError, some
from layerboard.zoo.features.weights import OUTSIDE_GRID
from layerboard.zoo.load.renaming import (
    Tensors,
    check_names,
    depth_of,
    grid_side,
    needed,
    refuse,
    rename,
    shape_of,
    sizes_of,
)
from layerboard.zoo.load.rotary_vit import CapiViTConfig, PerceptionEncoderConfig
from layerboard.zoo.spec import BackboneSpec

_VIT_EPSILON = 1e-6  # epsilon of every layer norm in the original code of timm's networks, BEiT and DINOv2
_EPSILON = 1e-5  # of every norm of OpenAI's CLIP, in the Perception Encoder's pe.py and in CAPI's model.py
_THETA = 10_000.0  # base of the rotary frequencies in the Perception Encoder's ``rope.py``
_CAPI_SIDE = 224  # side in pixels of CAPI's training images; positions are rotary and the same at every size
_GATED_RATIO = 4  # ratio of DINOv2's MLP to the network's width, before a gated MLP takes two thirds of it
_RESNET_STAGES = 4
_TIMM_HEADS = {"tiny": 3, "small": 6, "base": 12, "large": 16, "huge": 16}

# Types of networks that `convert` makes; a file of any other type needs the directory saved by transformers.
CONVERTED = {"beit", "capi", "clip_vision_model", "deit", "dinov2", "dinov2_with_registers"} | {
    *("perception_encoder", "resnet", "vit", "vit_mae")
}

# A configuration inferred from shapes, and a state dict with the names of transformers.
Converted = tuple[PreTrainedConfig, dict[str, Tensor]]


def convert(tensors: Tensors, spec: BackboneSpec, activation: str = "") -> Converted:
    """Configuration and tensors of a network of transformers, from an unwrapped state dict.

    The number of heads cannot be inferred from most layouts: it is that of the entry. Nor can the activation
    of CLIP: it is the stated one (`stated_activation`).
    """
    if {"conv1.weight", "transformer.resblocks.0.ln_1.weight"} <= tensors.keys() and (
        "attn_pool.probe" in tensors or not {"ln_post.weight", "ln_post.bias", "proj"} & tensors.keys()
    ):  # with OpenAI's names, but with attention pooling, or without pooling
        return _convert_perception(tensors, spec)
    if "class_embedding" in tensors:
        return _convert_clip(tensors, spec, activation)
    for mark, converter in _CONVERTERS:
        if mark in tensors:
            return converter(tensors, spec)
    if tensors and not needed(tensors, (HEADS,)):
        raise InputError(
            f"{spec.name}: {spec.repository} holds only a head ({some(sorted(tensors))}); "
            "give the backbone's file."
        )
    names = some(sorted(tensors)) or "none"
    raise InputError(
        f"{spec.name}: the tensors of {spec.repository} have names of no known layout: {names}; "
        "known are those of timm's Vision Transformer, BEiT, DINOv2, Franca, CAPI, OpenAI's CLIP, the "
        "Perception Encoder and torchvision's ResNet."
    )


def stated_heads(values: Mapping[str, object]) -> int | None:
    """Number of heads in timm's ``config.json``, by its arguments or its architecture; None if unknown."""
    for holder in (values, values.get("model_args")):
        heads = holder.get("num_heads") if isinstance(holder, Mapping) else None
        if isinstance(heads, int):
            return heads
    size = re.match(r"(?:vit|deit|beit)_([a-z]+)_", str(values.get("architecture")))
    return _TIMM_HEADS.get(size[1]) if size else None


def _convert_vit(tensors: Tensors, spec: BackboneSpec) -> Converted:
    distilled = "dist_token" in tensors
    renamed = rename(tensors, VIT_NAMES, spec)
    side = grid_side(tensors, "pos_embed", 1 + distilled, spec)
    kind: Callable[..., PreTrainedConfig] = transformers.DeiTConfig if distilled else transformers.ViTConfig
    return kind(**sizes_of(tensors, VIT_NAMES, side, spec), layer_norm_eps=_VIT_EPSILON), renamed


def _convert_dinov2(tensors: Tensors, spec: BackboneSpec) -> Converted:
    """DINOv2 and Franca, with or without registers."""
    configure: Callable[..., PreTrainedConfig] = transformers.Dinov2Config
    registers: dict[str, int] = {}
    if "register_tokens" in tensors:
        registers["num_register_tokens"] = shape_of(tensors, "register_tokens", 3, spec)[1]
        configure = transformers.Dinov2WithRegistersConfig
    renamed = rename(tensors, DINOV2_NAMES, spec)
    sizes = sizes_of(tensors, DINOV2_NAMES, grid_side(tensors, "pos_embed", 1, spec), spec)
    inner = sizes.pop("intermediate_size", _GATED_RATIO * sizes["hidden_size"])
    config = configure(
        **sizes,
        **registers,
        mlp_ratio=inner // sizes["hidden_size"],
        layer_norm_eps=_VIT_EPSILON,
        use_swiglu_ffn="blocks.0.mlp.w12.weight" in tensors,
        use_mask_token=False,
    )
    return config, renamed


def _convert_beit(tensors: Tensors, spec: BackboneSpec) -> Converted:
    """BEiT, with relative positions shared by all blocks or separate in each block.

    Fine-tuned files have ``fc_norm``, a norm of the pooled patches alone, in place of the final norm.
    """
    in_block, shared = BEIT_NAMES.old_block.format(0) + BEIT_TABLES[0], BEIT_TABLES[1]
    each, pooled = in_block in tensors, "fc_norm.weight" in tensors
    name = in_block if each else shared
    certain = {name} if pooled else {name, "norm.weight", "norm.bias"}
    check_names(tensors.keys() & certain, certain, BEIT_NAMES.layout, spec)
    if pooled and "norm.weight" in tensors:
        refuse(spec, "it has two final norms: norm and fc_norm")
    renamed = rename(tensors, BEIT_NAMES, spec)
    side = (1 + grid_side(tensors, name, OUTSIDE_GRID, spec)) // 2
    config = transformers.BeitConfig(
        **sizes_of(tensors, BEIT_NAMES, side, spec, tensors[name].shape[1]),
        layer_norm_eps=_VIT_EPSILON,
        use_relative_position_bias=each,
        use_shared_relative_position_bias=not each,
        use_mean_pooling=pooled,
        use_mask_token=False,
    )
    return config, renamed


def stated_activation(content: Mapping[str, object], described: Mapping[str, object] | None) -> str:
    """The activation of a CLIP under OpenAI's names, as transformers calls it; "" if nothing says it.

    OpenAI's own networks, which have three numbers beside their weights, take x * sigmoid(1.702 x) for GELU.
    Those of open_clip do if their ``open_clip_config.json``, which is ``described``, or the name of their
    training says so. Weights are the same for both.
    """
    if described is not None:
        model = described.get("model_cfg")
        return "quick_gelu" if isinstance(model, Mapping) and model.get("quick_gelu") is True else "gelu"
    is_quick = "input_resolution" in content or "quickgelu" in str(content.get("name", "")).lower()
    return "quick_gelu" if is_quick else ""


def _convert_clip(tensors: Tensors, spec: BackboneSpec, activation: str) -> Converted:
    """A vision tower of CLIP under OpenAI's names, in any precision; the epsilon is OpenAI's, too."""
    is_clip = not spec.model_types or "clip_vision_model" in spec.model_types
    if is_clip and not activation:
        refuse(
            spec,
            "it is CLIP under OpenAI's names, and no tensor tells whether its activation is QuickGELU, as in "
            "OpenAI's own networks and open_clip's -quickgelu, or GELU; say it in a file beside it, "
            'open_clip_config.json: {"model_cfg": {"quick_gelu": true}} or false',
        )
    renamed = rename(tensors, CLIP_NAMES, spec)
    sizes = sizes_of(tensors, CLIP_NAMES, grid_side(tensors, "positional_embedding", 1, spec), spec)
    return transformers.CLIPVisionConfig(**sizes, hidden_act=activation, layer_norm_eps=_EPSILON), renamed


def _convert_capi(tensors: Tensors, spec: BackboneSpec) -> Converted:
    """CAPI's encoder; the decoder, which predicts clusters, is left out."""
    renamed = rename(tensors, CAPI_NAMES, spec)
    sizes = sizes_of(tensors, CAPI_NAMES, 1, spec)
    config = CapiViTConfig(
        **{**sizes, "image_size": _CAPI_SIDE // sizes["patch_size"] * sizes["patch_size"]},
        layer_norm_eps=_EPSILON,
        num_register_tokens=shape_of(tensors, "registers", 3, spec)[1],
    )
    return config, renamed


def _convert_perception(tensors: Tensors, spec: BackboneSpec) -> Converted:
    """The Perception Encoder's vision tower, without its attention pooling.

    The authors rotate neighbouring channels of a head as pairs, the network here its halves: rows of queries
    and keys are permuted inside each head, which does not change their products.
    """
    renamed = rename(tensors, PE_NAMES, spec)
    classed = "class_embedding" in tensors
    sizes = sizes_of(tensors, PE_NAMES, grid_side(tensors, "positional_embedding", int(classed), spec), spec)
    config = PerceptionEncoderConfig(
        **sizes,
        layer_norm_eps=_EPSILON,
        class_token=classed,
        norm_after="weights" if "ln_post.weight" in tensors else "none",
        layer_scale="transformer.resblocks.0.ls_1.gamma" in tensors,
    )
    table, class_token = PE_NAMES.fixed["positional_embedding"], PE_NAMES.fixed["class_embedding"]
    renamed[table] = renamed[table][None]
    if classed:
        renamed[class_token] = renamed[class_token].view(1, 1, -1)
    heads, width = sizes["num_attention_heads"], sizes["hidden_size"]
    for index in range(sizes["num_hidden_layers"]):
        renamed[f"layers.{index}.rotary.frequencies"] = _frequencies(width // heads)
        for part in ("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias"):
            name = f"layers.{index}.attention.{part}"
            rows = renamed[name]
            if len(rows) == width and width // heads % 4 == 0:  # otherwise loading reports a misfit
                pairs = rows.reshape(heads, width // heads // 2, 2, *rows.shape[1:])
                renamed[name] = pairs.transpose(1, 2).flatten(0, 2)
    return config, renamed


def _frequencies(channels: int) -> Tensor:
    """Angles per row and per column, float32 [2 channels], for heads with that many channels.

    Half of the pairs rotate with the column, half with the row: ``Rope2D`` in the authors' ``rope.py``.
    """
    steps = _THETA ** -(torch.arange(0, channels // 2, 2) / (channels // 2))
    still = torch.zeros_like(steps)
    return torch.stack([torch.cat(pair).repeat(2) for pair in ((still, steps), (steps, still))])


def _convert_resnet(tensors: Tensors, spec: BackboneSpec) -> Converted:
    """A ResNet under torchvision's names: blocks of three convolutions stride in the 3x3 one (v1.5)."""
    if spec.heads is not None:
        refuse(spec, "it is a ResNet, and the entry is a transformer")
    depths = [depth_of(tensors, f"layer{number}.{{}}.") for number in range(1, _RESNET_STAGES + 1)]
    convolutions = 3 if "layer1.0.conv3.weight" in tensors else 2
    parts = [("conv1", "bn1", "embedder.embedder")]  # convolutions, the batch norms after them, new names
    for stage, depth in enumerate(depths):
        for index in range(depth):
            old, new = f"layer{stage + 1}.{index}.", f"encoder.stages.{stage}.layers.{index}."
            parts += [
                (f"{old}conv{n}", f"{old}bn{n}", f"{new}layer.{n - 1}") for n in range(1, convolutions + 1)
            ]
            if f"{old}downsample.0.weight" in tensors:
                parts.append((f"{old}downsample.0", f"{old}downsample.1", f"{new}shortcut"))
    table = {f"{convolution}.weight": f"{new}.convolution.weight" for convolution, _, new in parts}
    for _, norm, new in parts:
        for name in ("weight", "bias", "running_mean", "running_var"):
            table[f"{norm}.{name}"] = f"{new}.normalization.{name}"
    names = needed(tensors, (HEADS, r"num_batches_tracked$"))
    check_names(names, table, "torchvision's ResNet", spec)
    if 0 in depths:
        refuse(spec, f"its {_RESNET_STAGES} stages have {depths} blocks")
    last = (f"layer{number}.0.conv{convolutions}.weight" for number in range(1, _RESNET_STAGES + 1))
    width, channels, *_ = shape_of(tensors, "conv1.weight", 4, spec)
    config = transformers.ResNetConfig(
        num_channels=channels,
        embedding_size=width,
        hidden_sizes=[shape_of(tensors, name, 4, spec)[0] for name in last],
        depths=depths,
        layer_type="bottleneck" if convolutions == 3 else "basic",
    )
    return config, {new: tensors[old] for old, new in table.items()}


# A name that distinguishes each layout from those below it, and its conversion.
_CONVERTERS: tuple[tuple[str, Callable[[Tensors, BackboneSpec], Converted]], ...] = (
    ("layer1.0.conv1.weight", _convert_resnet),
    ("encoder.blocks.0.residual1.norm.weight", _convert_capi),
    ("blocks.0.attn.q_bias", _convert_beit),
    ("blocks.0.ls1.gamma", _convert_dinov2),
    ("patch_embed.proj.weight", _convert_vit),
)
