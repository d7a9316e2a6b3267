"""The random floor: Gaussian features drawn from a digest of the image."""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zoo.features import LayerFeatures, Visitor, Weights
from zoo.features.backbone import Backbone
from zoo.features.layers import Cells, grid_of
from zoo.features.weights import without_weights
from zoo.spec import Layer, Stage

SEED = 0


class RandomFloor(Backbone):
    """Features that know nothing of an image but whether it is the same one.

    Each image and layer has its own draw, seeded with a digest of the pixels: neither the batch nor the
    other layers that are asked for change it.
    """

    def fields_refusal(self) -> str:
        """Why it cannot say which pixels move a cell: none does."""
        return f"{self.spec.name} draws its features; no pixel moves one by a little."

    def weights(self) -> Weights:
        """No weights: its features are draws."""
        return without_weights(f"{self.spec.name} has no weights.")

    def _visit(self, pixels: Tensor, visitor: Visitor, wanted: tuple[Layer, ...], cells: Cells) -> None:
        digests = [_digest(image) for image in pixels.cpu().numpy()]
        for layer in wanted:
            stage = self.spec.stage_of(layer)
            drawn = _draw(digests, layer, stage, self.spec.prefix_tokens + cells[0] * cells[1])
            tokens = torch.from_numpy(drawn).to(self.device, self.dtype)
            grid = grid_of(tokens, self.spec.prefix_tokens, cells)
            visitor(LayerFeatures(layer, tokens[:, 0] if self.spec.has_cls else None, grid))


def _digest(image: NDArray[np.uint8]) -> int:
    shape_and_pixels = str(image.shape).encode() + np.ascontiguousarray(image).tobytes()
    return int.from_bytes(hashlib.blake2b(shape_and_pixels, digest_size=16).digest(), "big")


def _draw(digests: list[int], layer: Layer, stage: Stage, tokens: int) -> NDArray[np.float32]:
    """Standard normal numbers, [batch tokens width]."""
    out = np.empty((len(digests), tokens, stage.width), dtype=np.float32)
    for row, digest in zip(out, digests, strict=True):
        seed = np.random.SeedSequence([SEED, layer.index, digest])
        np.random.Generator(np.random.SFC64(seed)).standard_normal(out=row, dtype=np.float32)
    return out
