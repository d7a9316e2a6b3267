"""Checkpoints as their authors publish them, with random tensors, and the same under the Hub's older names.

Tensors are made under the names of the original code; `tests.zoo.originals` runs them as they are. The Hub's
files of these families were written by transformers 4, whose names the functions below give.
"""

import hashlib
import math
import re

import torch
from torch import Tensor

Tensors = dict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]


def fill(shapes: Shapes, seed: int = 0) -> Tensors:
    """Random tensors that keep activations near one, each from its own name and the seed."""
    out = {}
    for name, shape in shapes.items():
        key = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=6).digest()
        noise = torch.randn(shape, generator=torch.Generator().manual_seed(int.from_bytes(key, "big")))
        if name.endswith("running_var"):
            noise = 1 + 0.5 * noise.tanh()
        elif len(shape) == 1 and name.endswith("weight"):
            noise = 1 + 0.2 * noise
        elif len(shape) > 1 and name.endswith(("weight", "in_proj_weight")):
            noise = noise / math.sqrt(math.prod(shape[1:]))
        else:
            noise = 0.3 * noise
        out[name] = noise
    return out


def _affine(shapes: Shapes, name: str, rows: int, columns: int | None = None) -> None:
    shapes[f"{name}.weight"] = (rows,) if columns is None else (rows, columns)
    shapes[f"{name}.bias"] = (rows,)


def vit_shapes(depth: int, width: int, patch: int, side: int, classes: int = 5) -> Shapes:
    """timm's Vision Transformer; ``side`` is the number of patches a side."""
    shapes: Shapes = {"cls_token": (1, 1, width), "pos_embed": (1, side * side + 1, width)}
    shapes["patch_embed.proj.weight"] = (width, 3, patch, patch)
    shapes["patch_embed.proj.bias"] = (width,)
    for index in range(depth):
        block = f"blocks.{index}"
        _affine(shapes, f"{block}.norm1", width)
        _affine(shapes, f"{block}.attn.qkv", 3 * width, width)
        _affine(shapes, f"{block}.attn.proj", width, width)
        _affine(shapes, f"{block}.norm2", width)
        _affine(shapes, f"{block}.mlp.fc1", 4 * width, width)
        _affine(shapes, f"{block}.mlp.fc2", width, 4 * width)
    _affine(shapes, "norm", width)
    if classes:
        _affine(shapes, "head", classes, width)
    return shapes


def beit_shapes(depth: int, width: int, heads: int, patch: int, side: int) -> Shapes:
    """BEiT's original names, with one table of relative positions for all blocks."""
    shapes = vit_shapes(depth, width, patch, side, classes=0)
    del shapes["pos_embed"]
    shapes["mask_token"] = (1, 1, width)
    shapes["rel_pos_bias.relative_position_bias_table"] = ((2 * side - 1) ** 2 + 3, heads)
    for index in range(depth):
        block = f"blocks.{index}"
        del shapes[f"{block}.attn.qkv.bias"]
        for name in ("attn.q_bias", "attn.v_bias", "gamma_1", "gamma_2"):
            shapes[f"{block}.{name}"] = (width,)
    _affine(shapes, "lm_head", 16, width)
    return shapes


def clip_shapes(depth: int, width: int, patch: int, side: int) -> Shapes:
    """OpenAI's names of the vision tower."""
    shapes: Shapes = {"class_embedding": (width,), "positional_embedding": (side * side + 1, width)}
    shapes["conv1.weight"] = (width, 3, patch, patch)
    _affine(shapes, "ln_pre", width)
    for index in range(depth):
        block = f"transformer.resblocks.{index}"
        _affine(shapes, f"{block}.ln_1", width)
        shapes[f"{block}.attn.in_proj_weight"] = (3 * width, width)
        shapes[f"{block}.attn.in_proj_bias"] = (3 * width,)
        _affine(shapes, f"{block}.attn.out_proj", width, width)
        _affine(shapes, f"{block}.ln_2", width)
        _affine(shapes, f"{block}.mlp.c_fc", 4 * width, width)
        _affine(shapes, f"{block}.mlp.c_proj", width, 4 * width)
    _affine(shapes, "ln_post", width)
    return shapes


def _normalised_conv(shapes: Shapes, conv: str, norm: str, channels: tuple[int, int], kernel: int) -> None:
    shapes[f"{conv}.weight"] = (*channels, kernel, kernel)
    for part in ("weight", "bias", "running_mean", "running_var"):
        shapes[f"{norm}.{part}"] = (channels[0],)


def resnet_shapes(stem: int, stages: list[tuple[int, int]], *, basic: bool = False) -> Shapes:
    """torchvision's names of a ResNet with stages of (blocks, width); its blocks are bottlenecks or basic."""
    shapes: Shapes = {}
    _normalised_conv(shapes, "conv1", "bn1", (stem, 3), 7)
    before = stem
    for number, (blocks, width) in enumerate(stages, start=1):
        for index in range(blocks):
            block, inner = f"layer{number}.{index}", width // 4
            kernels: tuple[tuple[tuple[int, int], int], ...]
            kernels = (((inner, before), 1), ((inner, inner), 3), ((width, inner), 1))
            if basic:
                kernels = (((width, before), 3), ((width, width), 3))
            for part, (channels, kernel) in enumerate(kernels, start=1):
                _normalised_conv(shapes, f"{block}.conv{part}", f"{block}.bn{part}", channels, kernel)
            if index == 0 and not (basic and before == width):
                _normalised_conv(shapes, f"{block}.downsample.0", f"{block}.downsample.1", (width, before), 1)
            before = width
    _affine(shapes, "fc", 5, before)
    return shapes


_HUB_VIT = (
    (r"^cls_token$", "embeddings.cls_token"),
    (r"^mask_token$", "embeddings.mask_token"),
    (r"^pos_embed$", "embeddings.position_embeddings"),
    (r"^patch_embed\.proj", "embeddings.patch_embeddings.projection"),
    (r"^rel_pos_bias\.", "encoder.relative_position_bias."),
    (r"^blocks\.(\d+)\.", r"encoder.layer.\1."),
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.attn\.proj\.", ".attention.output.dense."),
    (r"\.attn\.q_bias$", ".attention.attention.query.bias"),
    (r"\.attn\.v_bias$", ".attention.attention.value.bias"),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
    (r"\.gamma_", ".lambda_"),
    (r"^norm\.", "layernorm."),
)


def _renamed(name: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def hub_vit(tensors: Tensors, prefix: str = "") -> Tensors:
    """A ViT or BEiT under the names of transformers 4; heads keep theirs."""
    out: Tensors = {}
    for name, tensor in tensors.items():
        match = re.match(r"blocks\.(\d+)\.attn\.qkv\.(weight|bias)$", name)
        if match:
            for part, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                key = f"{prefix}encoder.layer.{match[1]}.attention.attention.{part}.{match[2]}"
                out[key] = piece.clone()
        elif name.startswith(("head.", "lm_head.")):
            out[name.replace("head.", "classifier.") if name.startswith("head.") else name] = tensor
        else:
            out[prefix + _renamed(name, _HUB_VIT)] = tensor
    return out


def hub_mae(tensors: Tensors) -> Tensors:
    """An MAE with its decoder."""
    decoder: Shapes = {"decoder.mask_token": (1, 1, 8), "decoder.decoder_embed.weight": (8, 8)}
    return hub_vit(tensors, "vit.") | fill(decoder)


def hub_beit(tensors: Tensors) -> Tensors:
    """BEiT for masked image modelling: its norm sits beside the body, and its index buffer is stored."""
    out = hub_vit(tensors, "beit.")
    for part in ("weight", "bias"):
        out[f"layernorm.{part}"] = out.pop(f"beit.layernorm.{part}")
    out["beit.encoder.relative_position_bias.relative_position_index"] = torch.zeros(2, 2, dtype=torch.long)
    return out


_HUB_CLIP = (
    (r"^class_embedding$", "embeddings.class_embedding"),
    (r"^positional_embedding$", "embeddings.position_embedding.weight"),
    (r"^conv1\.", "embeddings.patch_embedding."),
    (r"^ln_pre\.", "pre_layrnorm."),
    (r"^ln_post\.", "post_layernorm."),
    (r"^transformer\.resblocks\.", "encoder.layers."),
    (r"\.ln_(\d)\.", r".layer_norm\1."),
    (r"\.attn\.out_proj\.", ".self_attn.out_proj."),
    (r"\.mlp\.c_fc\.", ".mlp.fc1."),
    (r"\.mlp\.c_proj\.", ".mlp.fc2."),
)


def hub_clip(tensors: Tensors) -> Tensors:
    """A whole CLIP: vision tower, and some of the text tower and projections."""
    out: Tensors = {}
    for name, tensor in tensors.items():
        match = re.match(r"transformer\.resblocks\.(\d+)\.attn\.in_proj_(weight|bias)$", name)
        if match:
            for part, piece in zip("qkv", tensor.chunk(3), strict=True):
                key = f"vision_model.encoder.layers.{match[1]}.self_attn.{part}_proj.{match[2]}"
                out[key] = piece.clone()
        else:
            out["vision_model." + _renamed(name, _HUB_CLIP)] = tensor
    out["vision_model.embeddings.position_ids"] = torch.arange(4)[None]
    text: Shapes = {
        "logit_scale": (),
        "text_projection.weight": (8, 8),
        "visual_projection.weight": (8, 8),
        "text_model.final_layer_norm.weight": (8,),
    }
    return out | fill(text)


def hub_resnet(tensors: Tensors) -> Tensors:
    """A ResNet for image classification."""
    out: Tensors = {}
    for name, tensor in tensors.items():
        name = re.sub(r"^conv1\.", "resnet.embedder.embedder.convolution.", name)
        name = re.sub(r"^bn1\.", "resnet.embedder.embedder.normalization.", name)
        match = re.match(r"layer(\d)\.(\d+)\.(conv|bn|downsample\.)(\d)\.(\w+)$", name)
        if match:
            stage, block, kind, part = int(match[1]) - 1, match[2], match[3], int(match[4])
            holder = f"resnet.encoder.stages.{stage}.layers.{block}"
            if kind == "downsample.":
                name = f"{holder}.shortcut.{('convolution', 'normalization')[part]}.{match[5]}"
            else:
                what = "convolution" if kind == "conv" else "normalization"
                name = f"{holder}.layer.{part - 1}.{what}.{match[5]}"
        out[re.sub(r"^fc\.", "classifier.1.", name)] = tensor
    return out
