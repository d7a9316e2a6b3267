"""The networks of the packaged backbones: Vision Transformers and a ResNet, loaded without transformers.

transformers, whose import takes seconds, has the same networks: `ViTModel`, `CLIPVisionModel`,
`BeitForMaskedImageModeling` and `ResNetModel` give the same numbers, bit for bit, at every layer (a test
compares them). Parts of blocks have the names of a `ViTLayer` or of transformers' ResNet.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from math import isqrt
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from layerboard.zoo.entries.architecture import Residual, StreamLayout, Sublayers
from layerboard.zoo.features.hooked import Network
from layerboard.zoo.features.weights import OUTSIDE_GRID
from layerboard.zoo.load.adapters import WITHOUT_SKIP, fitted_positions, use_rule
from layerboard.zoo.load.checkpoint import Checkpoint, read_network_json
from layerboard.zoo.load.files import FileLoader
from layerboard.zoo.spec import BackboneSpec, Layer

# Tensors that no feature depends on: of heads, and the token of masked patches.
_UNUSED = re.compile(r"lm_head\.|pooler\.|.*\.mask_token$")
_TABLE = "relative_position_bias_table"  # of BEiT
_NAMES_OF_CLIP = {  # in the order in which they are replaced
    "encoder.layers": "layers",
    "self_attn.out_proj": "attention.o_proj",
    "self_attn": "attention",
    "layer_norm1": "layernorm_before",
    "layer_norm2": "layernorm_after",
    "post_layernorm": "layernorm",
    "patch_embedding.": "patch_embeddings.projection.",
    "class_embedding": "cls_token",
    "position_embedding.weight": "position_embeddings",
}


class PackagedLoader(FileLoader):
    """Loader of the backbones whose weights are in this package."""

    def network(self, spec: BackboneSpec, checkpoint: Checkpoint) -> Network:
        assert checkpoint.config is not None
        values = read_network_json(checkpoint.config, dict[str, Any])
        (file,) = checkpoint.weights
        tensors = {_renamed(name): tensor for name, tensor in load_file(file).items()}
        tensors = {name: tensor.float() for name, tensor in tensors.items() if not _UNUSED.match(name)}
        with torch.device("meta"):
            body = resnet(values) if spec.family == "ResNet" else VisionTransformer(values, tensors)
        state = body.state_dict()
        body.load_state_dict({name: tensors[name].view(state[name].shape) for name in tensors}, assign=True)
        body.requires_grad_(requires_grad=False).train(mode=False)
        if not isinstance(body, VisionTransformer):
            blocks = tuple(module for module in body.modules() if isinstance(module, Bottleneck))
            layouts: tuple[StreamLayout, ...] = tuple("maps" for _ in range(len(blocks) + 1))
            return Network(body, blocks, None, layouts, parts=Residual("shortcut", "layer", overwrites=True))
        use_rule(body, spec.stage_of(Layer(0)).stride, spec.interpolation)
        scaled = Sublayers(attention_scale="lambda_1", mlp_scale="lambda_2")
        layouts = tuple("tokens" for _ in range(len(body.layers) + 1))
        parts = scaled if spec.family == "BEiT" else Sublayers()
        return Network(body, tuple(body.layers), body.layernorm, layouts, parts=parts)


def _renamed(name: str) -> str:
    """The name of a tensor here, of its name in transformers."""
    name = name.removeprefix("beit.")
    for old, new in _NAMES_OF_CLIP.items():
        name = name.replace(old, new)
    return name


class VisionTransformer(nn.Module):
    """A Vision Transformer as FS, DINO, MoCo and MAE train it, or with what CLIP or BEiT changes.

    CLIP has a norm before the blocks, and BEiT scales of sublayers and biases of relative positions. The
    stream of tokens [batch 1+patches width] ends with the last block; the final norm is left to the caller.
    """

    def __init__(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        # transformers' word for how attention is computed: "sdpa", fused, or "eager", with its probabilities
        self.config = SimpleNamespace(_attn_implementation="sdpa")
        width, epsilon = values["hidden_size"], values["layer_norm_eps"]
        self.embeddings = Embeddings(width, values["patch_size"], tensors)
        is_normed, table = "pre_layrnorm.weight" in tensors, tensors.get(f"shared_position_bias.{_TABLE}")
        self.pre_layrnorm = nn.LayerNorm(width, eps=epsilon) if is_normed else nn.Identity()
        self.shared_position_bias = None if table is None else PositionBias(*table.shape)
        without = values.get(WITHOUT_SKIP, ())
        numbers = range(1, values["num_hidden_layers"] + 1)
        scaled = "layers.0.lambda_1" in tensors
        self.layers = nn.ModuleList(
            Block(values, self.config, scaled=scaled, skips=number not in without) for number in numbers
        )
        self.layernorm = nn.LayerNorm(width, eps=epsilon)

    def forward(self, images: Tensor) -> Tensor:
        stream: Tensor = self.pre_layrnorm(self.embeddings(images))
        patch = self.embeddings.patch
        cells = images.shape[2] // patch, images.shape[3] // patch
        bias = None if self.shared_position_bias is None else self.shared_position_bias(cells)
        for block in self.layers:
            stream = block(stream, bias)
        return stream


class Embeddings(nn.Module):
    """The class token and the patches of images, with their positions: [batch 1+patches width]."""

    def __init__(self, width: int, patch: int, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.patch = patch
        self.cls_token = nn.Parameter(torch.empty(1, 1, width))
        bias = "embeddings.patch_embeddings.projection.bias" in tensors
        self.patch_embeddings = chain(projection=nn.Conv2d(3, width, patch, patch, bias=bias))
        table = tensors.get("embeddings.position_embeddings")
        shape = None if table is None else (1, table.numel() // width, width)
        self.position_embeddings = None if shape is None else nn.Parameter(torch.empty(shape))

    def interpolate_pos_encoding(self, _: Tensor, height: int, width: int) -> Tensor:
        """Position embeddings for images of that size in pixels, resized as transformers does."""
        assert self.position_embeddings is not None
        cells = height // self.patch, width // self.patch
        return fitted_positions(self.position_embeddings, cells, "huggingface")

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patch_embeddings(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), patches], dim=1)
        if self.position_embeddings is None:
            return tokens
        return tokens + self.interpolate_pos_encoding(tokens, *images.shape[2:])


class Block(nn.Module):
    """A block: attention, then an MLP, each after a norm; what they give is added to the stream."""

    def __init__(
        self, values: Mapping[str, Any], config: SimpleNamespace, *, scaled: bool, skips: bool
    ) -> None:
        super().__init__()
        width, epsilon = values["hidden_size"], values["layer_norm_eps"]
        self.attention = Attention(width, values["num_attention_heads"], config, key_bias=not scaled)
        self.layernorm_before = nn.LayerNorm(width, eps=epsilon)
        self.layernorm_after = nn.LayerNorm(width, eps=epsilon)
        inside = values["intermediate_size"]
        act = nn.GELU() if values["hidden_act"] == "gelu" else QuickGelu()
        self.mlp = chain(fc1=nn.Linear(width, inside), act=act, fc2=nn.Linear(inside, width))
        self.lambda_1 = nn.Parameter(torch.empty(width)) if scaled else None
        self.lambda_2 = nn.Parameter(torch.empty(width)) if scaled else None
        self.skips = skips  # whether its input bypasses its sublayers

    def forward(self, stream: Tensor, bias: Tensor | None = None) -> Tensor:
        attended, _ = self.attention(self.layernorm_before(stream), bias)
        stream = self._after(stream, attended, self.lambda_1)
        return self._after(stream, self.mlp(self.layernorm_after(stream)), self.lambda_2)

    def _after(self, stream: Tensor, output: Tensor, scale: Tensor | None) -> Tensor:
        output = output if scale is None else scale * output
        return output + stream if self.skips else output


class Attention(nn.Module):
    """Attention of several heads; gives their projected outputs, and the probabilities of an eager one."""

    def __init__(self, width: int, heads: int, config: SimpleNamespace, *, key_bias: bool) -> None:
        super().__init__()
        self.config, self.heads = config, heads
        self.q_proj, self.v_proj, self.o_proj = (nn.Linear(width, width) for _ in range(3))
        self.k_proj = nn.Linear(width, width, bias=key_bias)

    def forward(self, tokens: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        batch, count, width = tokens.shape
        query, key, value = (
            projection(tokens).view(batch, count, self.heads, -1).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        scale, maps = (width // self.heads) ** -0.5, None
        if self.config._attn_implementation == "eager":
            scores = query @ key.transpose(2, 3) * scale
            scores = scores if bias is None else scores + bias
            maps = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
            mixed = maps @ value
        else:
            mixed = functional.scaled_dot_product_attention(query, key, value, bias, scale=scale)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, count, width)), maps


class QuickGelu(nn.Module):
    """The approximation of GELU by a sigmoid with which CLIP was trained."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden * torch.sigmoid(1.702 * hidden)


class PositionBias(nn.Module):
    """BEiT's biases of attention by relative position, [1 heads tokens tokens], for a grid of any size.

    The table has a row for each offset in the training's square grid, then those of the class token; for
    another grid it is resized, as Birkl et al., arXiv:2307.14460 do.
    """

    def __init__(self, rows: int, heads: int) -> None:
        super().__init__()
        self.relative_position_bias_table = nn.Parameter(torch.empty(rows, heads))

    def forward(self, cells: tuple[int, int]) -> Tensor:
        table = self.relative_position_bias_table
        offsets, side = len(table) - OUTSIDE_GRID, isqrt(len(table) - OUTSIDE_GRID)
        size = 2 * cells[0] - 1, 2 * cells[1] - 1
        grid = table[:offsets].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        fitted = functional.interpolate(grid, size=size, mode="bilinear").permute(0, 2, 3, 1).flatten(0, 2)
        biases = torch.cat([fitted, table[offsets:]])[_relative_rows(cells).to(table.device)]
        return biases.permute(2, 0, 1).contiguous()[None]


@lru_cache(maxsize=16)
def _relative_rows(cells: tuple[int, int]) -> Tensor:
    """Row of the table of a grid for each pair of tokens: [tokens tokens], the class token first."""
    rows, columns = (index.flatten() for index in torch.meshgrid(*map(torch.arange, cells), indexing="ij"))
    down, right = (index[:, None] - index + index.max() for index in (rows, columns))
    width = 2 * cells[1] - 1
    offsets = (2 * cells[0] - 1) * width
    places = torch.full((len(rows) + 1,) * 2, offsets + 2)
    places[0, 1:], places[1:, 0] = offsets, offsets + 1
    places[1:, 1:] = down * width + right
    return places


def resnet(values: Mapping[str, Any]) -> nn.Sequential:
    """A ResNet of bottleneck blocks that ends with the last of them, at maps [batch width height width]."""
    widths, stages = (values["embedding_size"], *values["hidden_sizes"]), []
    for number, (depth, width) in enumerate(zip(values["depths"], widths[1:], strict=True)):
        first = Bottleneck(widths[number], width, 2 if number else 1)
        further = (Bottleneck(width, width) for _ in range(depth - 1))
        stages.append(chain(layers=nn.Sequential(first, *further)))
    stem = chain(embedder=convolution(3, widths[0], 7, 2), pooler=nn.MaxPool2d(3, 2, 1))
    return chain(embedder=stem, encoder=chain(stages=nn.Sequential(*stages)))


def chain(**modules: nn.Module) -> nn.Sequential:
    """Modules one after the other, by name."""
    return nn.Sequential(OrderedDict(modules))


def convolution(
    entering: int, width: int, side: int, stride: int = 1, *, ends: bool = False
) -> nn.Sequential:
    """A convolution with batch normalisation, and ReLU unless it ends a branch."""
    convolved = nn.Conv2d(entering, width, side, stride, side // 2, bias=False)
    activation = nn.Identity() if ends else nn.ReLU()
    return chain(convolution=convolved, normalization=nn.BatchNorm2d(width), activation=activation)


class Bottleneck(nn.Module):
    """A residual block of three convolutions, the inner ones with a quarter of the channels."""

    def __init__(self, entering: int, width: int, stride: int = 1) -> None:
        super().__init__()
        same, inner = entering == width, width // 4
        self.shortcut = nn.Identity() if same else convolution(entering, width, 1, stride, ends=True)
        inside = convolution(entering, inner, 1), convolution(inner, inner, 3, stride)
        self.layer = nn.Sequential(*inside, convolution(inner, width, 1, ends=True))

    def forward(self, maps: Tensor) -> Tensor:
        branch: Tensor = self.layer(maps)
        branch += self.shortcut(maps)  # in place, as `Residual.overwrites` says
        return functional.relu(branch)
