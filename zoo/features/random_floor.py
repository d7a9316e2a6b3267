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
from zoo.spec import Layer

SEED = 0


class RandomFloor(Backbone):
    """Features that know nothing of an image but whether it is the same one.

    Each image and layer has its own draw, seeded with a digest of the pixels: neither the batch nor the
    other layers that are asked for change it.
    """

    def fields_refusal(self) -> str:
        return f"{self.spec.name} draws its features; no pixel moves one by a little."

    def weights(self) -> Weights:
        return without_weights(f"{self.spec.name} has no weights.")

    def _visit(self, pixels: Tensor, visitor: Visitor, wanted: tuple[Layer, ...], cells: Cells) -> None:
        digests = [_digest(image) for image in pixels.cpu().numpy()]
        prefix = self.spec.prefix_tokens
        for layer in wanted:
            shape = prefix + cells[0] * cells[1], self.spec.stage_of(layer).width
            drawn = np.empty((len(digests), *shape), dtype=np.float32)
            for row, digest in zip(drawn, digests, strict=True):
                seed = np.random.SeedSequence([SEED, layer.index, digest])
                np.random.Generator(np.random.SFC64(seed)).standard_normal(out=row, dtype=np.float32)
            tokens = torch.from_numpy(drawn).to(self.device, self.dtype)
            cls = tokens[:, 0] if self.spec.has_cls else None
            visitor(LayerFeatures(layer, cls, grid_of(tokens, prefix, cells)))


def _digest(image: NDArray[np.uint8]) -> int:
    shape_and_pixels = str(image.shape).encode() + np.ascontiguousarray(image).tobytes()
    return int.from_bytes(hashlib.blake2b(shape_and_pixels, digest_size=16).digest(), "big")
