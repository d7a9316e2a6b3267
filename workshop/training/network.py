"""The networks that are trained: of the very classes that the zoo loads, drawn from a seed.

With them, the heads that are trained beside a backbone and dropped afterwards.
"""

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BeitForMaskedImageModeling, PreTrainedModel, ResNetModel, ViTModel

from layerboard.mini.random_weights import build
from layerboard.zoo.spec import BackboneSpec
from workshop.training.data import seeded

_EMBEDDING_STD = 0.02


def fresh(spec: BackboneSpec, seed: int) -> Any:  # noqa: ANN401  # see below
    """An untrained network of an entry, float32 on the CPU, of any class, since its parts differ by class."""
    shape = build(spec)
    model: PreTrainedModel = type(shape)(shape.config)
    if isinstance(model, ViTModel):
        model.pooler = None  # No objective has a use for it.
    initialise(model, seeded("weights", spec.name, seed))
    return model


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw all weights of a module anew, in the order in which it names them.

    Matrices and patch projections are Glorot-uniform (as in MAE and MoCo-v3), kernels of a ConvNet He-normal,
    tokens, positions and words normal with a standard deviation of 0.02. Norms are the identity, biases zero;
    LayerScale and tables of relative positions stay as they were made.
    """
    for part in module.modules():
        if isinstance(part, (nn.Linear, nn.Conv2d)) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight, generator=generator)
        elif isinstance(part, nn.MultiheadAttention):
            nn.init.xavier_uniform_(part.in_proj_weight, generator=generator)
            nn.init.zeros_(part.in_proj_bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=_EMBEDDING_STD, generator=generator)
        elif isinstance(part, nn.Conv2d):
            if part.kernel_size == part.stride and part.kernel_size[0] > 1:
                nn.init.xavier_uniform_(part.weight.data.flatten(1), generator=generator)
            else:
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu", generator=generator)
    for name, weight in module.named_parameters():
        leaf = name.rsplit(".", 1)[-1]
        if leaf in ("cls_token", "mask_token", "position_embeddings", "class_embedding"):
            nn.init.normal_(weight, std=_EMBEDDING_STD, generator=generator)


def tokens(model: Any, images: Tensor) -> Tensor:  # noqa: ANN401  # as `fresh` gives it
    """Tokens of a transformer after the final norm, class token first, [batch 1+cells width].

    The images are normalised, [batch 3 side side], of any side that is a multiple of the patch size.
    """
    if isinstance(model, BeitForMaskedImageModeling):
        # BEiT's positions are relative and follow the side by themselves.
        return torch.as_tensor(model.layernorm(model.beit(images).last_hidden_state))
    hidden: Tensor = model(images, interpolate_pos_encoding=True).last_hidden_state
    # What transformers gives of CLIP is not normed here.
    return hidden if isinstance(model, ViTModel) else torch.as_tensor(model.post_layernorm(hidden))


def pooled_vectors(model: Any, images: Tensor) -> dict[str, Tensor]:  # noqa: ANN401  # as `fresh` gives it
    """Vectors after the final norm by pooling, [batch width]: ``cls`` (not of ConvNets) and ``mean``."""
    if isinstance(model, ResNetModel):
        return {"mean": model(images).last_hidden_state.mean(dim=(2, 3))}
    hidden = tokens(model, images)
    return {"cls": hidden[:, 0], "mean": hidden[:, 1:].mean(dim=1)}


def spread(features: Tensor) -> Tensor:
    """Spread of directions over a batch [batch width]: 0 if all are equal, about 1 at random.

    The mean over channels of the standard deviation of L2-normalised features, times the root of the width.
    """
    directions = nn.functional.normalize(features.detach().float(), dim=1)
    return directions.std(dim=0).mean() * math.sqrt(features.shape[1])


def sine_positions(cells: int, width: int) -> Tensor:
    """Fixed positions of a class token (zero) and a square grid, [1 1+cells*cells width].

    Half of the channels follow the row, half the column; sines and cosines of wavelengths from 2 pi to
    10000 x 2 pi cells (MAE, MoCo-v3).
    """
    quarter = width // 4
    frequencies = 1 / 10000 ** (torch.arange(quarter, dtype=torch.float64) / quarter)
    angles = torch.arange(cells, dtype=torch.float64)[:, None] * frequencies
    rows = torch.cat([angles.sin(), angles.cos()], dim=1)[:, None].expand(cells, cells, -1)
    grid = torch.cat([rows.transpose(0, 1), rows], dim=2).reshape(1, cells * cells, -1)
    grid = nn.functional.pad(grid, (0, width - 4 * quarter))
    return torch.cat([torch.zeros(1, 1, width), grid.float()], dim=1)


def perceptron(*widths: int) -> nn.Sequential:
    """An MLP of MoCo-v3: layers without bias, batch norm and ReLU between them, bare batch norm behind."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths[:-1]):
        layers += [nn.Linear(before, after, bias=False), nn.BatchNorm1d(after), nn.ReLU()]
    last = [nn.Linear(widths[-2], widths[-1], bias=False), nn.BatchNorm1d(widths[-1], affine=False)]
    return nn.Sequential(*layers, *last)


class Prototypes(nn.Module):
    """DINO's head: an MLP to a bottleneck of unit length, then cosines with weight-normalised prototypes."""

    def __init__(self, width: int, hidden: int, bottleneck: int, outputs: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, bottleneck),
        )
        self.directions = nn.Linear(bottleneck, outputs, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        """Cosines in [-1, 1], [batch outputs], from [batch width]."""
        return cosines(self.mlp(features), self.directions.weight)


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Cosines of all rows of one matrix with all rows of another, [first second], float32 even in autocast.

    A soft-max of small temperature follows, which would show bfloat16's rounding.
    """
    with torch.autocast(first.device.type, enabled=False):
        left, other = (nn.functional.normalize(rows.float(), dim=-1) for rows in (first, second))
        return left @ other.T


def transformer(width: int, depth: int, heads: int) -> nn.TransformerEncoder:
    """Pre-norm blocks with an MLP of four times the width, for text towers and decoders."""
    block = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(block, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)


def right(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of the rows whose largest logit is the label's."""
    return (logits.detach().argmax(-1) == labels).float().mean()
