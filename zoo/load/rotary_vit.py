"""A Vision Transformer with 2D rotary positions, for families that transformers lacks.

CAPI and the Perception Encoder are networks of this one class. It has the interface of a transformers class,
so that loading, checks, taps and attention work as for all others; `zoo.load.convert` fills it.
"""

from typing import Any, Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.dinov2.modeling_dinov2 import Dinov2LayerScale

from layerboard.zoo.features.taps import Rotary, rotated
from layerboard.zoo.load.adapters import fitted_positions


@strict
class PerceptionEncoderConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Sizes of the network under the names of transformers.

    The Perception Encoder has LayerNorm, also before the first block, biases, and both absolute and rotary
    positions: rows and columns, from 1 after a class token at (0, 0), and from 0 without one.
    """

    model_type = "perception_encoder"
    is_capi = False

    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    patch_size: int = 14
    image_size: int = 224  # side in pixels of the images that the table of positions is for
    num_channels: int = 3
    layer_norm_eps: float = 1e-5  # of every norm
    class_token: bool = False
    num_register_tokens: int = 0
    norm_after: Literal["none", "weights"] = "weights"  # whether a norm comes after the last block
    layer_scale: bool = False  # whether the output of each half of a block is scaled by channel
    layerscale_value: float = 1.0  # before the weights are filled in


@strict
class CapiViTConfig(PerceptionEncoderConfig):  # type: ignore[no-untyped-call]
    """CAPI has RMSNorm, the last without weights, one bias, for patches, and rotary positions in [0, 1]."""

    model_type = "capi"
    is_capi = True


def _norm(config: PerceptionEncoderConfig, *, affine: bool = True) -> nn.Module:
    kind: type[nn.Module] = nn.RMSNorm if config.is_capi else nn.LayerNorm
    return kind(config.hidden_size, config.layer_norm_eps, elementwise_affine=affine)


class RotaryEmbeddings(nn.Module):
    """Class token, registers and patch tokens, in this order."""

    def __init__(self, config: PerceptionEncoderConfig) -> None:
        super().__init__()
        width, patch = config.hidden_size, config.patch_size
        self.patch_size = patch
        self.patch_embeddings = nn.Conv2d(config.num_channels, width, patch, patch, bias=config.is_capi)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width)) if config.class_token else None
        count = config.num_register_tokens
        self.register_tokens = nn.Parameter(torch.zeros(1, count, width)) if count else None
        rows = config.class_token + (config.image_size // patch) ** 2
        self.position_embeddings = None if config.is_capi else nn.Parameter(torch.zeros(1, rows, width))
        self.norm = nn.Identity() if config.is_capi else _norm(config)

    def interpolate_pos_encoding(self, tokens: Tensor, height: int, width: int) -> Tensor:
        """Positions of class and patch tokens for images of that size in pixels, [1 tokens dim].

        A grid of another size is resized bilinearly, without antialiasing: ``_sample_abs_posemb`` in the
        Perception Encoder's ``pe.py``.
        """
        assert self.position_embeddings is not None
        cells = (height // self.patch_size, width // self.patch_size)
        return fitted_positions(self.position_embeddings, cells, "bilinear")

    def forward(self, pixels: Tensor) -> Tensor:
        """Tokens [batch tokens dim] of normalised images [batch channels height width]."""
        tokens = self.patch_embeddings(pixels).flatten(2).transpose(1, 2)
        if self.cls_token is not None:
            tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], dim=1)
        if self.position_embeddings is not None:
            tokens = tokens + self.interpolate_pos_encoding(tokens, *pixels.shape[-2:])
        if self.register_tokens is not None:
            first = 0 if self.cls_token is None else 1
            registers = self.register_tokens.expand(len(tokens), -1, -1)
            tokens = torch.cat([tokens[:, :first], registers, tokens[:, first:]], dim=1)
        normed: Tensor = self.norm(tokens)
        return normed


def coordinates_of(config: PerceptionEncoderConfig, rows: int, columns: int, device: torch.device) -> Tensor:
    """Row and column of every token of a grid of patches, float32 [tokens 2]."""
    first = int(config.class_token)
    if config.is_capi:
        sides = [torch.linspace(0, 1, count, device=device) for count in (rows, columns)]
    else:
        sides = [torch.arange(first, first + count, device=device).float() for count in (rows, columns)]
    prefix = [torch.zeros(first, 2, device=device)]
    if config.num_register_tokens:
        # A grid of one row or column has its edge where that is, at 0.
        extent = torch.tensor([float(rows > 1), float(columns > 1)], device=device)
        prefix.append(edge(config.num_register_tokens, device) * extent)
    return torch.cat([*prefix, torch.cartesian_prod(*sides)])


def edge(count: int, device: torch.device) -> Tensor:
    """Equidistant points along the edge of the unit square, float32 [count 2]; ``count`` is 4 x n.

    They begin at (0, 0) and go around by (1, 0), (1, 1) and (0, 1): ``get_edge_coordinates`` in CAPI's
    ``model.py``.
    """
    way = torch.arange(count // 4, device=device) / (count // 4)
    start, end = torch.zeros_like(way), torch.ones_like(way)
    sides = [(way, start), (end, way), (1 - way, end), (start, 1 - way)]
    return torch.cat([torch.stack(side, dim=1) for side in sides])


class RotaryEmbedding(nn.Module):
    """Angles of tokens from their coordinates; frequencies stay float32 in networks of any dtype."""

    frequencies: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.zeros(2, channels))

    def _apply(self, fn: Any, recurse: bool = True) -> "RotaryEmbedding":  # noqa: ANN401  # torch's
        exact = self.frequencies
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.frequencies = exact.to(self.frequencies.device)
        return self

    def forward(self, coordinates: Tensor) -> Rotary:
        """Cosines and sines [tokens channels] for coordinates [tokens 2]."""
        angles = coordinates @ self.frequencies
        return angles.cos(), angles.sin()


class RotaryAttention(nn.Module):
    """Multi-head attention whose queries and keys are rotated."""

    def __init__(self, config: PerceptionEncoderConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(width, width, bias=not config.is_capi) for _ in range(4)
        )

    def forward(self, tokens: Tensor, position_embeddings: Rotary) -> tuple[Tensor, Tensor | None]:
        """What the attention adds to the stream, and its probabilities if the configuration is eager."""
        query, key, value = (
            project(tokens).unflatten(-1, (self.config.num_attention_heads, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = rotated(query, *position_embeddings), rotated(key, *position_embeddings)
        probabilities: Tensor | None = None
        if self.config._attn_implementation == "eager":
            probabilities = (query @ key.mT * query.shape[-1] ** -0.5).softmax(-1)
            heads = probabilities @ value
        else:
            heads = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.o_proj(heads.transpose(1, 2).flatten(2)), probabilities


class RotaryBlock(nn.Module):
    """A pre-norm block."""

    def __init__(self, config: PerceptionEncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.norm1 = _norm(config)
        self.rotary = RotaryEmbedding(width // config.num_attention_heads)
        self.attention = RotaryAttention(config)
        self.layer_scale1 = Dinov2LayerScale(config) if config.layer_scale else nn.Identity()
        self.norm2 = _norm(config)
        self.mlp = nn.Sequential()
        self.mlp.fc1 = nn.Linear(width, config.intermediate_size, bias=not config.is_capi)
        self.mlp.act = nn.GELU()
        self.mlp.fc2 = nn.Linear(config.intermediate_size, width, bias=not config.is_capi)
        self.layer_scale2 = Dinov2LayerScale(config) if config.layer_scale else nn.Identity()

    def forward(self, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """The stream after the block, [batch tokens dim], for coordinates [tokens 2]."""
        added, _ = self.attention(self.norm1(tokens), position_embeddings=self.rotary(coordinates))
        tokens = tokens + self.layer_scale1(added)
        out: Tensor = tokens + self.layer_scale2(self.mlp(self.norm2(tokens)))
        return out


class PerceptionEncoderModel(PreTrainedModel):  # type: ignore[no-untyped-call]
    """The network of Bolya et al., Perception Encoder, arXiv:2504.13181."""

    config_class = PerceptionEncoderConfig
    config: PerceptionEncoderConfig
    main_input_name = "pixel_values"
    _supports_sdpa = True

    def __init__(self, config: PerceptionEncoderConfig) -> None:
        super().__init__(config)
        self.embeddings = RotaryEmbeddings(config)
        self.layers = nn.ModuleList(RotaryBlock(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.Identity() if config.norm_after == "none" else _norm(config, affine=not config.is_capi)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, pixel_values: Tensor) -> Tensor:
        """The last block's stream, [batch tokens dim], of normalised images [batch channels height width]."""
        tokens: Tensor = self.embeddings(pixel_values)
        rows, columns = (side // self.config.patch_size for side in pixel_values.shape[-2:])
        coordinates = coordinates_of(self.config, rows, columns, tokens.device)
        for block in self.layers:
            tokens = block(tokens, coordinates)
        return tokens


class CapiModel(PerceptionEncoderModel):  # type: ignore[no-untyped-call]
    """The network of Darcet et al., CAPI, arXiv:2502.08769."""

    config_class = CapiViTConfig
