"""Checkpoints of today's families as their authors publish them, and their networks in plain torch.

Written from the papers and from what the authors' code computes; tensors have the names of their files.
"""

import math
import re

import torch
from torch import Tensor
from torch.nn import functional

from layerboard.zoo.spec import BackboneSpec
from tests.zoo import layouts, originals
from tests.zoo.layouts import Shapes, Tensors

ROTARY = ("CAPI", "PE")
"""Families whose heads need several channels for each direction."""


SCALED = ("pe-lang-l14", "pe-lang-g14", "pe-spatial-g14")
"""Perception Encoders that scale what each half of a block adds."""


def side_of(spec: BackboneSpec) -> int:
    """Patches a side of an entry's images."""
    return spec.input_size // spec.patch_size


def gated(width: int) -> int:
    """Channels on either side of the gate of DINOv2's MLP."""
    return (8 * width // 3 + 7) // 8 * 8


def franca_shapes(spec: BackboneSpec) -> Shapes:
    """Franca: DINOv2 with a gated MLP in networks of all sizes."""
    shapes = layouts.vit_shapes(spec.depth, spec.width, spec.patch_size, side_of(spec), classes=0)
    shapes = {name: shape for name, shape in shapes.items() if ".mlp." not in name}
    shapes["mask_token"] = (1, spec.width)
    inner = gated(spec.width)
    for index in range(spec.depth):
        block = f"blocks.{index}"
        shapes |= {f"{block}.ls{half}.gamma": (spec.width,) for half in (1, 2)}
        shapes |= {f"{block}.mlp.w12.weight": (2 * inner, spec.width), f"{block}.mlp.w12.bias": (2 * inner,)}
        shapes |= {f"{block}.mlp.w3.weight": (spec.width, inner), f"{block}.mlp.w3.bias": (spec.width,)}
    return shapes


def franca_content(tensors: Tensors) -> object:
    """A teacher whose blocks are in chunks, with the heads of its training and of RASA."""
    teacher = {
        re.sub(r"^blocks\.(\d+)\.", lambda found: f"blocks.{int(found[1]) // 2}.{found[1]}.", name): tensor
        for name, tensor in tensors.items()
    }
    head = {"dino_head.mlp.0.weight": torch.ones(2, 2), "rasa_head.pos_pred.weight": torch.ones(2, 2)}
    return {"teacher": {f"backbone.{name}": tensor for name, tensor in (teacher | head).items()}}


def capi_shapes(spec: BackboneSpec) -> Shapes:
    """CAPI's encoder."""
    width = spec.width
    shapes: Shapes = {
        "registers": (1, spec.prefix_tokens, width),
        "patch_embed.weight": (width, 3, spec.patch_size, spec.patch_size),
        "patch_embed.bias": (width,),
    }
    for index in range(spec.depth):
        first, second = (f"encoder.blocks.{index}.residual{half}" for half in (1, 2))
        shapes[f"{first}.norm.weight"] = (width,)
        shapes |= {
            f"{first}.fn.{part}.weight": (width, width) for part in ("q_proj", "k_proj", "v_proj", "proj")
        }
        shapes[f"{first}.fn.rope.freqs"] = (2, width // (spec.heads or 1))
        shapes[f"{second}.norm.weight"] = (width,)
        shapes |= {
            f"{second}.fn.fc1.weight": (4 * width, width),
            f"{second}.fn.fc2.weight": (width, 4 * width),
        }
    return shapes


def capi_content(tensors: Tensors) -> object:
    """The file has the decoder and the head of the training, too."""
    more: Shapes = {"mask_token": (1, 8), "decoder.blocks.0.residual1.fn.q_proj.weight": (8, 8)}
    backbone = {f"backbone.{name}": tensor for name, tensor in (tensors | layouts.fill(more)).items()}
    return backbone | {"head.last_layer.weight_g": torch.ones(2, 1)}


def capi(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Darcet et al. 2025: RMSNorm, no biases, angles from coordinates between 0 and 1."""
    weight = tensors["patch_embed.weight"]
    x = originals._patches(weight, tensors["patch_embed.bias"], images)
    rows, columns = (count // weight.shape[-1] for count in images.shape[2:])
    registers = tensors["registers"]
    places = _edge(registers.shape[1], rows > 1, columns > 1)
    steps = (max(rows - 1, 1), max(columns - 1, 1))
    places += [(row / steps[0], column / steps[1]) for row in range(rows) for column in range(columns)]
    x = torch.cat([registers.expand(len(x), -1, -1), x], dim=1)
    layers = [x]
    for index in range(sum(name.endswith("fc1.weight") for name in tensors)):
        first, second = (f"encoder.blocks.{index}.residual{half}" for half in (1, 2))
        angles = torch.tensor(places) @ tensors[f"{first}.fn.rope.freqs"]
        y = _root_mean_square(x) * tensors[f"{first}.norm.weight"]
        q, k, v = (y @ tensors[f"{first}.fn.{part}_proj.weight"].T for part in "qkv")
        q, k = (_turned_halves(part, angles, heads) for part in (q, k))
        x = x + originals._attend(torch.cat([q, k, v], -1), heads) @ tensors[f"{first}.fn.proj.weight"].T
        y = _root_mean_square(x) * tensors[f"{second}.norm.weight"]
        hidden = originals._gelu(y @ tensors[f"{second}.fn.fc1.weight"].T)
        x = x + hidden @ tensors[f"{second}.fn.fc2.weight"].T
        layers.append(x)
    return [*layers, _root_mean_square(x)]


def _edge(count: int, tall: bool, wide: bool) -> list[tuple[float, float]]:
    quarter = count // 4
    ways = [index / quarter for index in range(quarter)]
    round_trip = [*((w, 0.0) for w in ways), *((1.0, w) for w in ways)]
    round_trip += [*((1 - w, 1.0) for w in ways), *((0.0, 1 - w) for w in ways)]
    return [(row * tall, column * wide) for row, column in round_trip]


def _root_mean_square(x: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def _turned_halves(x: Tensor, angles: Tensor, heads: int) -> Tensor:
    """Each channel with that half a head away, by its own angle."""
    x = x.unflatten(-1, (heads, -1))
    channels = x.shape[-1]
    out = torch.empty_like(x)
    for channel in range(channels):
        other = (channel + channels // 2) % channels
        sign = -1 if channel < channels // 2 else 1
        angle = angles[:, channel, None]
        out[..., channel] = x[..., channel] * angle.cos() + sign * x[..., other] * angle.sin()
    return out.flatten(-2)


def pe_shapes(spec: BackboneSpec) -> Shapes:
    """The Perception Encoder's vision tower, with what its pooling has."""
    shapes = layouts.clip_shapes(spec.depth, spec.width, spec.patch_size, side_of(spec))
    if not spec.has_cls:
        del shapes["class_embedding"]
        shapes["positional_embedding"] = (side_of(spec) ** 2, spec.width)
    if spec.name in SCALED:
        for index in range(spec.depth):
            shapes |= {f"transformer.resblocks.{index}.ls_{half}.gamma": (spec.width,) for half in (1, 2)}
    if not spec.has_final:
        del shapes["ln_post.weight"], shapes["ln_post.bias"]
    return shapes


def pe_content(tensors: Tensors) -> object:
    """Core: a whole image-text model; the others: the vision tower alone."""
    if "ln_post.weight" not in tensors:
        return tensors
    more: Shapes = {"attn_pool.probe": (1, 1, 8), "attn_pool.attn.in_proj_weight": (24, 8), "proj": (8, 8)}
    text: Shapes = {"positional_embedding": (4, 8), "token_embedding.weight": (8, 8), "logit_scale": ()}
    visual = {f"visual.{name}": tensor for name, tensor in (tensors | layouts.fill(more)).items()}
    return visual | layouts.fill(text)


def pe(tensors: Tensors, images: Tensor, heads: int) -> list[Tensor]:
    """Bolya et al. 2025: absolute positions, then rotary ones in neighbouring channels."""
    weight, table = tensors["conv1.weight"], tensors["positional_embedding"]
    x = originals._patches(weight, None, images)
    rows, columns = (count // weight.shape[-1] for count in images.shape[2:])
    first = int("class_embedding" in tensors)
    if first:
        x = torch.cat([tensors["class_embedding"].expand(len(x), 1, -1), x], dim=1)
    x = x + bilinear(table, (rows, columns), first, antialias=False)
    x = originals._norm(tensors, "ln_pre", x, 1e-5)
    places = [(0, 0)] * first + [(r + first, c + first) for r in range(rows) for c in range(columns)]
    layers = [x]
    for index in range(sum(name.endswith("out_proj.weight") for name in tensors if "resblocks" in name)):
        block = f"transformer.resblocks.{index}"
        y = originals._norm(tensors, f"{block}.ln_1", x, 1e-5)
        qkv = y @ tensors[f"{block}.attn.in_proj_weight"].T + tensors[f"{block}.attn.in_proj_bias"]
        q, k, v = qkv.chunk(3, -1)
        q, k = (_turned_neighbours(part, places, heads) for part in (q, k))
        mixed = originals._attend(torch.cat([q, k, v], -1), heads)
        one, two = (tensors.get(f"{block}.ls_{half}.gamma", torch.ones(())) for half in (1, 2))
        x = x + one * originals._linear(tensors, f"{block}.attn.out_proj", mixed)
        y = originals._norm(tensors, f"{block}.ln_2", x, 1e-5)
        hidden = originals._gelu(originals._linear(tensors, f"{block}.mlp.c_fc", y))
        x = x + two * originals._linear(tensors, f"{block}.mlp.c_proj", hidden)
        layers.append(x)
    return [*layers, originals._norm(tensors, "ln_post", x, 1e-5)] if "ln_post.weight" in tensors else layers


def _turned_neighbours(x: Tensor, places: list[tuple[int, int]], heads: int) -> Tensor:
    """Pairs of channels as complex numbers: the first half of a head by columns, the other by rows."""
    pairs = torch.view_as_complex(x.unflatten(-1, (heads, -1, 2)).contiguous())
    quarter = pairs.shape[-1] // 2
    steps = torch.tensor([10_000 ** (-index / quarter) for index in range(quarter)])
    angles = torch.stack([torch.cat([column * steps, row * steps]) for row, column in places])
    turned = pairs * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.view_as_real(turned).flatten(-3)


def bilinear(table: Tensor, cells: originals.Cells, prefix: int, *, antialias: bool) -> Tensor:
    """Position embeddings [prefix + cells, width] for a grid of another size."""
    side = math.isqrt(len(table) - prefix)
    if cells == (side, side):
        return table
    grid = table[prefix:].T.reshape(1, -1, side, side)
    grid = functional.interpolate(grid, cells, mode="bilinear", align_corners=False, antialias=antialias)
    return torch.cat([table[:prefix], grid[0].flatten(1).T])
