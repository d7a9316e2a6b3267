"""The original architectures in plain torch, written from the papers, on tensors with the original names.

Each function gives layer 0, the output of every block and, for transformers, the last after the final norm.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from tests.zoo.layouts import Tensors

Cells = tuple[int, int]


def _linear(tensors: Tensors, name: str, x: Tensor) -> Tensor:
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def _norm(tensors: Tensors, name: str, x: Tensor, epsilon: float) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def _quick_gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def _attend(qkv: Tensor, heads: int, bias: Tensor | None = None) -> Tensor:
    """Multi-head attention of [batch tokens 3 * width]; ``bias`` is [heads tokens tokens]."""
    batch, tokens, triple = qkv.shape
    query, key, value = qkv.view(batch, tokens, 3, heads, triple // 3 // heads).permute(2, 0, 3, 1, 4)
    scores = torch.einsum("bhid,bhjd->bhij", query, key) / math.sqrt(query.shape[-1])
    if bias is not None:
        scores = scores + bias
    return torch.einsum("bhij,bhjd->bihd", scores.softmax(-1), value).flatten(2)


def _patches(weight: Tensor, bias: Tensor | None, images: Tensor) -> Tensor:
    """Non-overlapping patches times a matrix, [batch patches width], in row-major order."""
    size = weight.shape[-1]
    pieces = functional.unfold(images, size, stride=size).transpose(1, 2)
    out = pieces @ weight.flatten(1).T
    return out if bias is None else out + bias


def positions(embedding: Tensor, cells: Cells, prefix: int = 1) -> Tensor:
    """Position embeddings [prefix + cells, width] for a grid of other size, resized bicubically."""
    side = math.isqrt(len(embedding) - prefix)
    if cells == (side, side):
        return embedding
    grid = embedding[prefix:].T.reshape(1, -1, side, side)
    grid = functional.interpolate(grid, size=cells, mode="bicubic", align_corners=False)
    return torch.cat([embedding[:prefix], grid[0].flatten(1).T])


def vit(tensors: Tensors, images: Tensor, heads: int, epsilon: float) -> list[Tensor]:
    """Dosovitskiy et al. 2021: pre-norm blocks, exact GELU.

    A distilled DeiT (Touvron et al. 2021) has a second token, and DINOv2 (Oquab et al. 2024) scales what each
    half of a block adds, has registers after the class token that have no position (Darcet et al. 2024), and
    in its largest network a gated MLP.
    """
    weight = tensors["patch_embed.proj.weight"]
    x = _patches(weight, tensors["patch_embed.proj.bias"], images)
    tokens = [tensors[name] for name in ("cls_token", "dist_token") if name in tensors]
    x = torch.cat([*(token.expand(len(x), -1, -1) for token in tokens), x], dim=1)
    cells = (images.shape[2] // weight.shape[-1], images.shape[3] // weight.shape[-1])
    x = x + positions(tensors["pos_embed"][0], cells, sum(token.shape[1] for token in tokens))
    if "register_tokens" in tensors:
        x = torch.cat([x[:, :1], tensors["register_tokens"].expand(len(x), -1, -1), x[:, 1:]], dim=1)
    layers = [x]
    for index in range(sum(name.endswith("attn.proj.weight") for name in tensors)):
        block = f"blocks.{index}"
        qkv = _linear(tensors, f"{block}.attn.qkv", _norm(tensors, f"{block}.norm1", x, epsilon))
        one, two = (tensors.get(f"{block}.ls{half}.gamma", torch.ones(())) for half in (1, 2))
        x = x + one * _linear(tensors, f"{block}.attn.proj", _attend(qkv, heads))
        x = x + two * _mlp(tensors, f"{block}.mlp", _norm(tensors, f"{block}.norm2", x, epsilon))
        layers.append(x)
    return [*layers, _norm(tensors, "norm", x, epsilon)]


def _mlp(tensors: Tensors, name: str, x: Tensor) -> Tensor:
    if f"{name}.w12.weight" not in tensors:
        return _linear(tensors, f"{name}.fc2", _gelu(_linear(tensors, f"{name}.fc1", x)))
    gate, value = _linear(tensors, f"{name}.w12", x).chunk(2, dim=-1)
    return _linear(tensors, f"{name}.w3", gate * torch.sigmoid(gate) * value)


def clip(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Radford et al. 2021: a norm before the blocks, quick GELU, patches without bias."""
    epsilon, weight = 1e-5, tensors["conv1.weight"]
    x = _patches(weight, None, images)
    x = torch.cat([tensors["class_embedding"].expand(len(x), 1, -1), x], dim=1)
    cells = (images.shape[2] // weight.shape[-1], images.shape[3] // weight.shape[-1])
    x = _norm(tensors, "ln_pre", x + positions(tensors["positional_embedding"], cells), epsilon)
    layers = [x]
    for index in range(sum(name.endswith("out_proj.weight") for name in tensors)):
        block = f"transformer.resblocks.{index}"
        qkv = _norm(tensors, f"{block}.ln_1", x, epsilon) @ tensors[f"{block}.attn.in_proj_weight"].T
        mixed = _attend(qkv + tensors[f"{block}.attn.in_proj_bias"], heads)
        x = x + _linear(tensors, f"{block}.attn.out_proj", mixed)
        hidden = _linear(tensors, f"{block}.mlp.c_fc", _norm(tensors, f"{block}.ln_2", x, epsilon))
        x = x + _linear(tensors, f"{block}.mlp.c_proj", _quick_gelu(hidden))
        layers.append(x)
    return [*layers, _norm(tensors, "ln_post", x, epsilon)]


def relative_bias(table: Tensor, cells: Cells) -> Tensor:
    """Bias [heads tokens tokens] of a grid: one row of the table per offset, three for the class token.

    The table is that of a square grid, resized bilinearly for others.
    """
    (rows, columns), trained = cells, math.isqrt(len(table) - 3)
    offsets = table[:-3].T.reshape(1, -1, trained, trained)
    if (2 * rows - 1, 2 * columns - 1) != (trained, trained):
        offsets = functional.interpolate(offsets, size=(2 * rows - 1, 2 * columns - 1), mode="bilinear")
    count = rows * columns
    bias = torch.empty(count + 1, count + 1, table.shape[1])
    for i in range(count):
        for j in range(count):
            down, right = i // columns - j // columns, i % columns - j % columns
            bias[i + 1, j + 1] = offsets[0, :, down + rows - 1, right + columns - 1]
    bias[0, :], bias[:, 0], bias[0, 0] = table[-3], table[-2], table[-1]
    return bias.permute(2, 0, 1)


def beit(tensors: Tensors, images: Tensor, heads: int, epsilon: float) -> list[Tensor]:
    """Bao et al. 2022: relative positions of all blocks or each one's, no bias of keys, layer scale.

    Networks that were fine-tuned have no final norm over all tokens.
    """
    weight = tensors["patch_embed.proj.weight"]
    x = _patches(weight, tensors["patch_embed.proj.bias"], images)
    cells = (images.shape[2] // weight.shape[-1], images.shape[3] // weight.shape[-1])
    name = "relative_position_bias_table"
    shared = f"rel_pos_bias.{name}" in tensors
    bias = relative_bias(tensors[f"rel_pos_bias.{name}" if shared else f"blocks.0.attn.{name}"], cells)
    x = torch.cat([tensors["cls_token"].expand(len(x), -1, -1), x], dim=1)
    layers = [x]
    for index in range(sum(name.endswith("attn.proj.weight") for name in tensors)):
        block = f"blocks.{index}"
        q_bias, v_bias = tensors[f"{block}.attn.q_bias"], tensors[f"{block}.attn.v_bias"]
        qkv = _norm(tensors, f"{block}.norm1", x, epsilon) @ tensors[f"{block}.attn.qkv.weight"].T
        qkv = qkv + torch.cat([q_bias, torch.zeros_like(q_bias), v_bias])
        if not shared:
            bias = relative_bias(tensors[f"{block}.attn.{name}"], cells)
        mixed = _linear(tensors, f"{block}.attn.proj", _attend(qkv, heads, bias))
        x = x + tensors[f"{block}.gamma_1"] * mixed
        hidden = _gelu(_linear(tensors, f"{block}.mlp.fc1", _norm(tensors, f"{block}.norm2", x, epsilon)))
        x = x + tensors[f"{block}.gamma_2"] * _linear(tensors, f"{block}.mlp.fc2", hidden)
        layers.append(x)
    return [*layers, _norm(tensors, "norm", x, epsilon)] if "norm.weight" in tensors else layers


def _conv_norm(tensors: Tensors, conv: str, norm: str, x: Tensor, stride: int = 1) -> Tensor:
    weight = tensors[f"{conv}.weight"]
    x = functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
    scale = tensors[f"{norm}.weight"] / (tensors[f"{norm}.running_var"] + 1e-5).sqrt()
    shift = tensors[f"{norm}.bias"] - tensors[f"{norm}.running_mean"] * scale
    return x * scale[:, None, None] + shift[:, None, None]


def resnet(tensors: Tensors, images: Tensor) -> list[Tensor]:
    """He et al. 2016, version 1.5; gives feature maps.

    Blocks have two 3x3 convolutions, of which the first strides, or three, of which the 3x3 one does.
    """
    x = _conv_norm(tensors, "conv1", "bn1", images, 2).relu()
    x = functional.max_pool2d(x, 3, 2, 1)
    layers = [x]
    blocks = [name.removesuffix(".conv1.weight") for name in tensors if name.endswith(".conv1.weight")]
    for block in blocks:
        is_bottleneck = f"{block}.conv3.weight" in tensors
        stride = 2 if block.endswith(".0") and not block.startswith("layer1.") else 1
        y = _conv_norm(tensors, f"{block}.conv1", f"{block}.bn1", x, 1 if is_bottleneck else stride).relu()
        y = _conv_norm(tensors, f"{block}.conv2", f"{block}.bn2", y, stride if is_bottleneck else 1)
        if is_bottleneck:
            y = _conv_norm(tensors, f"{block}.conv3", f"{block}.bn3", y.relu())
        if f"{block}.downsample.0.weight" in tensors:
            x = _conv_norm(tensors, f"{block}.downsample.0", f"{block}.downsample.1", x, stride)
        x = (x + y).relu()
        layers.append(x)
    return layers
