"""The random floor: Gaussian features drawn from a digest of the image."""

import hashlib
from collections.abc import Collection

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zoo.errors import InputError
from zoo.features import BackboneIdentity, Channels, LayerFeatures, ReceptiveField, Visitor, Weights
from zoo.features.layers import cells_of, grid_of, require, unknown_layer, wanted_layers
from zoo.features.weights import without_weights
from zoo.spec import BackboneSpec, Layer, Stage

SEED = 0


class RandomFloor:
    """Features that know nothing of an image but whether it is the same one.

    Each image and layer has its own draw, seeded with a digest of the pixels: neither the batch nor the
    other layers that are asked for change it.
    """

    def __init__(
        self, spec: BackboneSpec, identity: BackboneIdentity, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.spec = spec
        self.revision = identity.revision
        self.fingerprint = identity.fingerprint
        self.device = device
        self.dtype = dtype

    def refusal(self, layers: Collection[Layer]) -> str:
        """Why it cannot show one of these layers, in a sentence; see `zoo.features.Backbone`."""
        return unknown_layer(self.spec, layers)

    def fields_refusal(self) -> str:
        """Why it cannot say which pixels move a cell; see `zoo.features.Backbone`."""
        return f"{self.spec.name} draws its features; no pixel moves one by a little."

    def receptive_fields(
        self, pixels: Tensor, layers: Collection[Layer], channels: Channels
    ) -> tuple[ReceptiveField, ...]:
        """Raises InputError: it has no gradients."""
        raise InputError(self.fields_refusal())

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        """Call ``visitor`` once for each layer, in order; see `zoo.features.Backbone`."""
        rows, columns = cells_of(self.spec, pixels)
        wanted = wanted_layers(self.spec, layers)
        require(self.refusal(wanted))
        digests = [_digest(image) for image in pixels.cpu().numpy()]
        for layer in wanted:
            stage = self.spec.stage_of(layer)
            tokens = torch.from_numpy(_draw(digests, layer, stage, self.spec.prefix_tokens + rows * columns))
            tokens = tokens.to(self.device, self.dtype)
            grid = grid_of(tokens, self.spec.prefix_tokens, (rows, columns))
            visitor(LayerFeatures(layer, tokens[:, 0] if self.spec.has_cls else None, grid))

    def weights(self) -> Weights:
        """None: its features are draws."""
        return without_weights(f"{self.spec.name} has no weights.")


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
