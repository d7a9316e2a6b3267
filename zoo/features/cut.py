"""A backbone cut after one layer: maps images to its vectors, and computes and keeps nothing beyond."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Literal

import torch
from PIL import Image
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.census import Census
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.photos import as_seen, decoding, open_file
from layerboard.zoo.view.views import View, tiles_of

# What is read of a layer: its class token, the mean of its patch tokens, the mean of both together, the patch
# tokens in their places, or their mean after blocks of cells were concatenated
# (`zoo.features.LayerFeatures.patchwise`).
Pooled = Literal["cls", "mean", "all", "grid", "patchwise"]
ImageOrPath = Image.Image | str | Path
Images = ImageOrPath | Sequence[ImageOrPath] | Tensor

BATCH = 32  # batch size for lists of images


class _Reached(Exception):  # noqa: N818  # no error: the forward pass has done its work
    """Ends a forward pass at the requested layer."""


def pooled(features: LayerFeatures, pooling: Pooled, width: int) -> Tensor:
    """The pooled features of a layer, [batch dim] or [batch rows columns dim], float32, not a view.

    ``width`` is that of the backbone's last block.
    """
    if pooling == "mean":
        return features.mean
    if pooling == "patchwise":
        return features.patchwise(width)
    if pooling == "all":
        assert features.cls is not None
        patches = features.grid.shape[1] * features.grid.shape[2]
        return (features.cls.to(torch.float32) + patches * features.mean) / (patches + 1)
    tokens = features.cls if pooling == "cls" else features.grid
    assert tokens is not None
    return tokens.to(torch.float32, copy=True)  # a view would keep the whole activation


def require_pooling(spec: BackboneSpec, pooling: Pooled) -> None:
    """Raise InputError if a backbone's layers do not support the pooling."""
    if spec.vectors not in (None, pooling):
        raise InputError(f"{spec.name} gives vectors of the pooling {spec.vectors!r} only")
    if pooling in ("cls", "all") and not spec.has_cls:
        raise InputError(f"{spec.name} has no class token; take the pooling 'mean' or 'grid'")
    if pooling == "patchwise" and spec.has_cls:
        raise InputError(f"{spec.name} has a class token; take the pooling 'cls', 'mean', 'all' or 'grid'")


def _seen(image: ImageOrPath) -> Image.Image:
    if isinstance(image, Image.Image):
        return as_seen(image)
    with decoding(f"cannot decode image {image}"), open_file(image) as opened:
        return as_seen(opened)


class CutBackbone:
    """Maps images to vectors of one layer of a frozen backbone.

    Blocks after the layer never run. Weights that no forward pass reads any more are freed for networks of
    transformers; a user's own Python object keeps its memory. ``view`` is scaled to the input size, ``dim``
    is the number of channels of the output, ``parameters`` that of the weights that the forward pass reads, 0
    if they are not parameters of torch.
    """

    def __init__(self, backbone: Backbone, layer: Layer, pooling: Pooled, view: View) -> None:
        if reason := backbone.refusal([layer]):
            raise InputError(reason)
        self.spec: BackboneSpec = backbone.spec
        require_pooling(self.spec, pooling)
        self.layer, self.pooling, self.view = layer, pooling, view
        self._backbone = backbone
        side = self.spec.input_size
        with Census() as read:
            features = self._show(torch.zeros(1, 3, side, side, dtype=torch.uint8))
        self.dim, self.parameters = int(self._pooled(features).shape[-1]), read.count
        if isinstance(backbone, HookedBackbone):
            backbone.release(read.weights.values())

    def __call__(self, images: Images) -> Tensor:
        """Vectors of images, [images dim], or grids, [images rows columns dim]; float32 on its device.

        Images are a Pillow image or a path, a sequence of these, or uint8 RGB pixels [images 3 height width]
        that are used unchanged, with sides that are multiples of ``spec.patch_size``. Raises InputError if
        one cannot be read, if pixels are of another kind, or if the grids of the images differ in size.
        """
        if isinstance(images, Tensor):
            return self._pooled(self._show(images))
        vectors = [*self._of_images([images] if isinstance(images, ImageOrPath) else images)]
        if not vectors:
            return torch.empty(0, self.dim, device=self._backbone.device)
        if len({part.shape[1:] for part in vectors}) > 1:
            raise InputError(
                f"{self.spec.name}: the grids of these images are of different sizes; give one at a time"
            )
        return torch.cat(vectors)

    def _of_images(self, images: Sequence[ImageOrPath]) -> Iterator[Tensor]:
        """Outputs for images, in order; images of the same size share a batch."""
        for start in range(0, len(images), BATCH):
            seen = map(_seen, images[start : start + BATCH])
            rendered = ((self.view.render(image), image.size) for image in seen)
            for _, group in groupby(rendered, key=lambda pair: pair[0].shape):
                pixels, sizes = zip(*group, strict=True)
                if (cut := tiles_of(self.view)) is None:
                    yield self._pooled(self._show(torch.cat(pixels)))
                    continue
                if self.pooling in ("cls", "all"):
                    raise InputError(
                        f"{self.spec.name} is shown images in tiles, which have no one class token"
                    )
                for tiles, size in zip(pixels, sizes, strict=True):
                    grid = cut.assemble(self._show(tiles).grid, self.view.geometry(size).size)
                    yield self._pooled(LayerFeatures(self.layer, None, grid[None]))

    def _pooled(self, features: LayerFeatures) -> Tensor:
        return pooled(features, self.pooling, self.spec.width)

    def _show(self, pixels: Tensor) -> LayerFeatures:
        """The layer's features of a batch; the forward pass ends there."""
        reached: list[LayerFeatures] = []

        def keep(shown: Shown) -> None:
            assert isinstance(shown, LayerFeatures)
            reached.append(shown)
            raise _Reached

        with suppress(_Reached):
            self._backbone.visit(pixels, keep, (self.layer,))
        return reached[0]
