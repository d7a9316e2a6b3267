"""The base class of all backbones of the zoo, with its checks, and two floors."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import (
    BackboneIdentity,
    Channels,
    LayerFeatures,
    ReceptiveField,
    Visitor,
    Weights,
)
from layerboard.zoo.features.layers import Cells, cells_of, grid_of, unknown_layer, wanted_layers
from layerboard.zoo.features.pass_context import PassLock, pass_context
from layerboard.zoo.features.weights import without_weights
from layerboard.zoo.spec import BackboneSpec, Layer, Layers

SEED = 0  # of the random floor


class Backbone(ABC):
    """A frozen network that shows every layer of one forward pass to a visitor (`zoo.features.Visitable`).

    Threads may share it: one at a time passes, since its hooks are those of one pass.
    """

    compiled: tuple[Callable[..., object], ...] = ()  # compiled forwards of the blocks

    def __init__(self, spec: BackboneSpec, identity: BackboneIdentity, device: torch.device) -> None:
        self.spec, self.device = spec, device
        self.dtype: torch.dtype = getattr(torch, "float32" if spec.mixed else spec.dtype)  # of weights
        self.revision, self.fingerprint = identity.revision, identity.fingerprint
        self.sha256 = identity.sha256
        self._lock = PassLock()

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        """Run one forward pass (see `zoo.features.Visitable`); InputError if it does not fit the spec."""
        cells, wanted = cells_of(self.spec, pixels), wanted_layers(self.spec, layers)
        if reason := self.refusal(wanted):
            raise InputError(reason)
        with pass_context(), self._lock:
            self._visit(pixels, visitor, wanted, cells)

    def refusal(self, layers: Collection[Layer]) -> str:
        """Why `visit` would refuse one of these layers, in the same sentence; "" if it can show them all."""
        wanted = wanted_layers(self.spec, layers)
        return unknown_layer(self.spec, wanted) or next(filter(None, map(self._refused, wanted)), "")

    def receptive_fields(
        self,
        pixels: Tensor,
        layers: Collection[Layer],
        channels: Channels,
        advance: Callable[[float], None] = lambda share: None,
    ) -> tuple[ReceptiveField, ...]:
        """How strongly each pixel affects the centre cell of each of these layers, in forward order.

        Memory for the gradients of all layers is needed at once, and each chosen channel costs a backward
        pass through the network; ``advance`` is called with shares of the work. Raises InputError if it
        cannot tell, with the sentence of `fields_refusal`, or has no such layer.
        """
        wanted = wanted_layers(self.spec, layers)
        if reason := self.refusal(wanted) or self.fields_refusal():
            raise InputError(reason)
        with pass_context(gradients=True), self._lock:
            return self._fields(pixels, wanted, channels, advance)

    def compile(self) -> None:  # noqa: B027  # most have nothing to compile
        """Compile what later forward passes run, if useful; features differ by no more than rounding."""

    @abstractmethod
    def fields_refusal(self) -> str:
        """Why the backbone cannot compute receptive fields, in a sentence; "" if it can."""

    def weights(self) -> Weights:
        """Filters, position embeddings and position biases, float32 on its device; none if it has none."""
        return without_weights(f"{self.spec.name} has no weights.")

    @abstractmethod
    def _visit(self, pixels: Tensor, visitor: Visitor, wanted: Layers, cells: Cells) -> None:
        """Show existing layers, in order."""

    def _refused(self, layer: Layer) -> str:
        """Why the backbone cannot show a layer that its spec has; "" if it can."""
        return ""

    def _fields(
        self, pixels: Tensor, wanted: Layers, channels: Channels, advance: Callable[[float], None]
    ) -> tuple[ReceptiveField, ...]:
        """Receptive fields of existing layers, if it supports them."""
        raise NotImplementedError


class RandomFloor(Backbone):
    """Random features that only depend on the identity of an image.

    Each image and layer has its own draw, seeded with a digest of the pixels: neither the batch nor other
    requested layers change it.
    """

    def fields_refusal(self) -> str:
        return f"{self.spec.name} draws its features; no pixel moves one by a little."

    def _visit(self, pixels: Tensor, visitor: Visitor, wanted: Layers, cells: Cells) -> None:
        facts = [str(image.shape).encode() + image.tobytes() for image in pixels.cpu().numpy()]
        digests = [int.from_bytes(hashlib.blake2b(fact, digest_size=16).digest(), "big") for fact in facts]
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


class RawPixels(Backbone):
    """The normalised pixels of a patch as its token, and the image, downsampled to one patch, as class token.

    Each value of the downsampled image is the mean of the pixels that it covers. Every layer shows the same.
    """

    def fields_refusal(self) -> str:
        return f"{self.spec.name} shows the pixels themselves: a patch is its receptive field."

    def _visit(self, pixels: Tensor, visitor: Visitor, wanted: Layers, cells: Cells) -> None:
        spec, side = self.spec, self.spec.patch_size
        mean, std = (torch.tensor(each, device=self.device)[:, None, None] for each in (spec.mean, spec.std))
        images = (pixels.to(self.device, torch.float32) / 255 - mean) / std
        small = functional.adaptive_avg_pool2d(images, side).flatten(1)
        patches = functional.unfold(images, side, stride=side).transpose(1, 2)
        tokens = torch.cat((small[:, None], patches), dim=1).to(self.dtype)
        for layer in wanted:
            visitor(LayerFeatures(layer, tokens[:, 0], grid_of(tokens, 1, cells)))
