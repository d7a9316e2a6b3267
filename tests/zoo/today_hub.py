"""Networks of today's families in the format of the Hub, in plain torch, under the names of their files."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from tests.zoo import originals
from tests.zoo.layouts import Tensors
from tests.zoo.today import bilinear


def radio(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Ranzinger et al. 2024: the table is fitted to the longer side and cut; no final norm."""
    tensors = {name.removeprefix("radio_model."): tensor for name, tensor in tensors.items()}
    conditioner, generator = "input_conditioner.norm", "model.patch_generator"
    images = (images - tensors[f"{conditioner}_mean"]) / tensors[f"{conditioner}_std"]
    weight = tensors[f"{generator}.embedder.weight"]
    size = math.isqrt(weight.shape[1] // 3)
    rows, columns = (count // size for count in images.shape[2:])
    longer = max(rows, columns)
    table = bilinear(tensors[f"{generator}.pos_embed"][0], (longer, longer), 0, antialias=False)
    table = table.view(longer, longer, -1)[:rows, :columns].flatten(0, 1)
    x = originals._patches(weight.view(-1, 3, size, size), None, images) + table
    x = torch.cat([tensors[f"{generator}.cls_token.token"].expand(len(x), -1, -1), x], dim=1)
    layers = [x]
    for index in range(sum(name.endswith("attn.proj.weight") for name in tensors)):
        block = f"model.blocks.{index}"
        y = originals._norm(tensors, f"{block}.norm1", x, 1e-6)
        mixed = originals._attend(originals._linear(tensors, f"{block}.attn.qkv", y), heads)
        x = x + originals._linear(tensors, f"{block}.attn.proj", mixed)
        x = x + originals._mlp(tensors, f"{block}.mlp", originals._norm(tensors, f"{block}.norm2", x, 1e-6))
        layers.append(x)
    return layers


def tips(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Cao et al. 2026: DINOv2 with one register, which is a second class token; bilinear positions."""
    named = {name.removeprefix("vision_encoder."): t for name, t in tensors.items() if "vision_enc" in name}
    named = {
        name.replace("mlp.c_fc", "mlp.fc1").replace("mlp.c_proj", "mlp.fc2"): t for name, t in named.items()
    }
    cells = (images.shape[2] // 14, images.shape[3] // 14)
    assert cells[0] == cells[1]  # What follows fits squares alone.
    named["pos_embed"] = bilinear(named["pos_embed"][0], cells, 1, antialias=True)[None]
    return originals.vit(named, images, heads, 1e-6)


def sam(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Kirillov et al. 2023: windows of 14 cells, padded after the norm; the second block has none."""
    named = {name.removeprefix("vision_encoder."): tensor for name, tensor in tensors.items()}
    weight = named["patch_embed.projection.weight"]
    x = originals._patches(weight, named["patch_embed.projection.bias"], images)
    cells = (images.shape[2] // weight.shape[-1], images.shape[3] // weight.shape[-1])
    x = x + originals.positions(named["pos_embed"].flatten(0, 2), cells, 0)
    layers = [x]
    for index in range(sum(name.endswith("attn.proj.weight") for name in named)):
        block = f"layers.{index}"
        y = originals._norm(named, f"{block}.layer_norm1", x, 1e-6).unflatten(1, cells)
        out = torch.zeros_like(y)
        step = max(cells) if index % 2 else 14
        for top in range(0, cells[0], step):
            for left in range(0, cells[1], step):
                piece = y[:, top : top + step, left : left + step]
                height, width = piece.shape[1:3]
                if not index % 2:
                    piece = functional.pad(piece, (0, 0, 0, step - width, 0, step - height))
                mixed = _window(named, f"{block}.attn", piece, heads)
                out[:, top : top + step, left : left + step] = mixed[:, :height, :width]
        x = x + out.flatten(1, 2)
        y = originals._norm(named, f"{block}.layer_norm2", x, 1e-6)
        x = x + originals._linear(
            named, f"{block}.mlp.lin2", originals._gelu(originals._linear(named, f"{block}.mlp.lin1", y))
        )
        layers.append(x)
    return layers


def _window(tensors: Tensors, name: str, x: Tensor, heads: int) -> Tensor:
    """Attention inside a grid; scores get what the query makes of the rows and of the columns between."""
    height, width = x.shape[1:3]
    q, k, v = (
        part.unflatten(-1, (heads, -1)).permute(0, 3, 1, 2, 4)
        for part in originals._linear(tensors, f"{name}.qkv", x).chunk(3, -1)
    )
    scores = torch.einsum("bnijd,bnkld->bnijkl", q, k) / math.sqrt(q.shape[-1])
    down, right = (
        _stretched(tensors[f"{name}.rel_pos_{axis}"], n) for axis, n in (("h", height), ("w", width))
    )
    for i in range(height):
        for k_row in range(height):
            scores[:, :, i, :, k_row] += (q[:, :, i] @ down[i - k_row + height - 1])[..., None]
    for j in range(width):
        for k_column in range(width):
            scores[:, :, :, j, :, k_column] += (q[:, :, :, j] @ right[j - k_column + width - 1])[..., None]
    shares = scores.flatten(-2).softmax(-1).unflatten(-1, (height, width))
    mixed = torch.einsum("bnijkl,bnkld->bijnd", shares, v).flatten(-2)
    return originals._linear(tensors, f"{name}.proj", mixed)


def _stretched(table: Tensor, count: int) -> Tensor:
    """Relative positions [2 count - 1, channels] of a side of so many cells, linearly."""
    return functional.interpolate(table.T[None], size=2 * count - 1, mode="linear")[0].T


def vjepa(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Assran et al. 2025, a clip of two equal frames: rows and columns turn a third of a head each."""
    named = {name.removeprefix("encoder."): tensor for name, tensor in tensors.items()}
    weight = named["embeddings.patch_embeddings.proj.weight"].sum(2)
    x = originals._patches(weight, named["embeddings.patch_embeddings.proj.bias"], images)
    rows, columns = (count // weight.shape[-1] for count in images.shape[2:])
    layers = [x]
    for index in range(sum(name.endswith("attention.proj.weight") for name in named)):
        block = f"layer.{index}"
        y = originals._norm(named, f"{block}.norm1", x, 1e-6)
        q, k, v = (
            originals._linear(named, f"{block}.attention.{part}", y) for part in ("query", "key", "value")
        )
        q, k = (_by_thirds(part.unflatten(-1, (heads, -1)), rows, columns).flatten(-2) for part in (q, k))
        mixed = originals._attend(torch.cat([q, k, v], -1), heads)
        x = x + originals._linear(named, f"{block}.attention.proj", mixed)
        x = x + originals._mlp(named, f"{block}.mlp", originals._norm(named, f"{block}.norm2", x, 1e-6))
        layers.append(x)
    return [*layers, originals._norm(named, "layernorm", x, 1e-6)]


def _by_thirds(x: Tensor, rows: int, columns: int) -> Tensor:
    """The first third of a head turns with the frame, which is the first; what is left over does not turn.

    Neighbours are turned together, each by the angle of its own place in half the third, as the authors do.
    """
    third = 2 * (x.shape[-1] // 3 // 2)
    out = x.clone()
    places = [(row, column) for row in range(rows) for column in range(columns)]
    for token, place in enumerate(places):
        for axis in (0, 1):
            first = third * (axis + 1)
            for channel in range(third):
                angle = place[axis] * 10_000 ** (-(channel % (third // 2)) / (third // 2))
                other = channel + 1 if channel % 2 == 0 else channel - 1
                sign = -1 if channel % 2 == 0 else 1
                one, two = x[:, token, :, first + channel], x[:, token, :, first + other]
                out[:, token, :, first + channel] = one * math.cos(angle) + sign * two * math.sin(angle)
    return out


def pixio(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Yang et al. 2025: a plain Vision Transformer with eight class tokens, each with a position."""
    named = {_PIXIO.get(name, name): tensor for name, tensor in tensors.items()}
    for index in range(sum(name.endswith("norm1.bias") for name in tensors)):
        block = f"encoder.layer.{index}"
        for kind in ("weight", "bias"):
            parts = [named.pop(f"{block}.attention.attention.{part}.{kind}") for part in _PARTS]
            named[f"blocks.{index}.attn.qkv.{kind}"] = torch.cat(parts)
            for old, new in _PIXIO_BLOCK.items():
                named[f"blocks.{index}.{new}.{kind}"] = named.pop(f"{block}.{old}.{kind}")
    return originals.vit(named, images, heads, 1e-6)


_PIXIO = {
    "embeddings.cls_token": "cls_token",
    "embeddings.position_embeddings": "pos_embed",
    "embeddings.patch_embeddings.projection.weight": "patch_embed.proj.weight",
    "embeddings.patch_embeddings.projection.bias": "patch_embed.proj.bias",
    "layernorm.weight": "norm.weight",
    "layernorm.bias": "norm.bias",
}
_PARTS = ("query", "key", "value")
_PIXIO_BLOCK = {
    "norm1": "norm1",
    "attention.output.dense": "attn.proj",
    "norm2": "norm2",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
}


def hiera(tensors: Tensors, images: Tensor, heads: list[int]) -> list[Tensor]:
    """Ryali et al. 2023, row by row all the time: units of 32 px are cut out of the grid; no final norm.

    ``heads`` are those of each stage. Attention is inside units in the first two stages and in the block that
    pools what the second gives.
    """
    named = {name.removeprefix("hiera."): tensor for name, tensor in tensors.items()}
    projection = "embeddings.patch_embeddings.projection"
    weight, bias = named[f"{projection}.weight"], named[f"{projection}.bias"]
    x = functional.conv2d(images, weight, bias, stride=4, padding=3).permute(0, 2, 3, 1)
    table = originals.positions(named["embeddings.position_embeddings"][0], x.shape[1:3], 0)  # type: ignore[arg-type]
    x = x + table.view(x.shape[1:])
    layers, unit = [x.flatten(1, 2)], 8
    for stage, count in enumerate(heads):
        depth = sum(
            name.startswith(f"encoder.stages.{stage}.") and name.endswith("fc1.bias") for name in named
        )
        for index in range(depth):
            block, pools = f"encoder.stages.{stage}.layers.{index}", stage > 0 and index == 0
            local = stage < 2 or (stage == 2 and pools)
            y = originals._norm(named, f"{block}.layernorm_before", x, 1e-6)
            skip = _pooled(originals._linear(named, f"{block}.proj", y)) if pools else x
            parts = originals._linear(named, f"{block}.attn.qkv", y).chunk(3, -1)
            mixed = _inside(parts, count, unit if local else max(x.shape), pools)
            x = skip + originals._linear(named, f"{block}.attn.proj", mixed)
            y = originals._norm(named, f"{block}.layernorm_after", x, 1e-6)
            x = x + originals._mlp(named, f"{block}.mlp", y)
            unit = unit // 2 if pools else unit
            layers.append(x.flatten(1, 2))
    return layers


def _pooled(grid: Tensor) -> Tensor:
    """The maximum of two by two cells, channel by channel."""
    return functional.max_pool2d(grid.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)


def _inside(parts: tuple[Tensor, ...], heads: int, side: int, pools: bool) -> Tensor:
    """What queries, keys and values [batch rows columns channels] give, inside squares of so many cells."""
    rows, columns = parts[0].shape[1:3]
    strips = []
    for top in range(0, rows, side):
        strip = []
        for left in range(0, columns, side):
            q, k, v = (part[:, top : top + side, left : left + side] for part in parts)
            q = _pooled(q) if pools else q
            one, many, others = (part.flatten(1, 2).unflatten(-1, (heads, -1)) for part in (q, k, v))
            scores = torch.einsum("bqhd,bkhd->bhqk", one, many) / math.sqrt(one.shape[-1])
            strip.append(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), others).reshape(q.shape))
        strips.append(torch.cat(strip, dim=2))
    return torch.cat(strips, dim=1)
