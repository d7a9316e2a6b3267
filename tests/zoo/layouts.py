"""Random tensors of checkpoints under the names of the original code, as `tests.zoo.originals` runs them."""

import hashlib
import math

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
