"""Recompute the k-NN column of the board ``real`` by other code: timm, transformers, Pillow, torch and numpy.

    python -m workshop.real.check DIR TABLE.csv

DIR is what ``python -m workshop.real --to DIR`` wrote, TABLE.csv the board's table of its photographs. Nothing
of layerboard is imported. A line for each layer says how many of the tested images are classified otherwise
than the table says; the exit code is 1 if they are more than one.
"""

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor
from transformers import Dinov2Model

Floats = NDArray[np.floating[Any]]
Vectors = dict[str, list[Floats]]
"""By layer and pooling, such as ``7 cls``, a batch of vectors each."""

NEIGHBOURS, TEMPERATURE, BATCH = 20, 0.07, 32
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def shown(file: Path, short: int, crop: int, colours: tuple[tuple[float, ...], ...]) -> Tensor:
    """A photograph with its shorter side at that size, its central square, normalised: [3 crop crop]."""
    with Image.open(file) as opened:
        image = opened.convert("RGB")
    scale = short / min(image.size)
    width, height = (short if side == min(image.size) else int(side * scale) for side in image.size)
    left, top = round((width - crop) / 2), round((height - crop) / 2)
    square = image.resize((width, height), Image.Resampling.BICUBIC).crop(
        (left, top, left + crop, top + crop)
    )
    mean, std = (torch.tensor(values)[:, None, None] for values in colours)
    return (torch.from_numpy(np.array(square)).permute(2, 0, 1) / 255 - mean) / std


def pooled(tokens: Tensor, prefix: int) -> dict[str, Tensor]:
    """The class token and the mean of the patches of [batch tokens width]; the latter alone without one."""
    every = {"mean": tokens[:, prefix:].mean(1)}
    return every | ({"cls": tokens[:, 0]} if prefix else {})


def of_tokens(network: Any, blocks: Any, prefix: int, norm: Any) -> Callable[[Tensor], dict[str, Tensor]]:
    """Vectors of every block of a transformer, and after its final norm."""
    seen: list[Tensor] = []
    for block in blocks:
        block.register_forward_hook(lambda _, __, tokens: seen.append(tokens))

    def vectors(images: Tensor) -> dict[str, Tensor]:
        seen.clear()
        network(images)
        layers = {str(number): tokens for number, tokens in enumerate(seen, 1)} | {"final": norm(seen[-1])}
        return {
            f"{layer} {pooling}": vector
            for layer, tokens in layers.items()
            for pooling, vector in pooled(tokens, prefix).items()
        }

    return vectors


def of_maps(network: Any) -> Callable[[Tensor], dict[str, Tensor]]:
    """Vectors of every block of a convolutional network: means of its maps."""
    seen: list[Tensor] = []
    for block in (block for stage in network.blocks for block in stage):
        block.register_forward_hook(lambda _, __, maps: seen.append(maps))

    def vectors(images: Tensor) -> dict[str, Tensor]:
        seen.clear()
        network.forward_features(images)
        return {f"{number} mean": maps.mean((2, 3)) for number, maps in enumerate(seen, 1)}

    return vectors
