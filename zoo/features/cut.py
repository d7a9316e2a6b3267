"""A backbone cut after one layer: maps images to its vectors, and computes and keeps nothing beyond."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from layerboard.zoo.errors import InputError, ensure
from layerboard.zoo.features import LayerFeatures, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.census import Census
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.features.pass_context import pass_context
from layerboard.zoo.spec import BackboneSpec, Layer, VectorPooling
from layerboard.zoo.view.pixels import is_one
from layerboard.zoo.view.pixels import pixels as seen
from layerboard.zoo.view.views import View, tiles_of

# What is read of a layer: its class token, the mean of its patch tokens, both one after the other, the
# generalised mean of the patch tokens (`zoo.features.LayerFeatures.gem`), the mean of all tokens, the patch
# tokens in their places, or their mean after blocks of cells were concatenated
# (`zoo.features.LayerFeatures.patchwise`).
Pooled = Literal[VectorPooling, "all", "grid"]
OF_CLS = ("cls", "cls+mean", "all")  # those that need a class token
ImageOrPath = Image.Image | str | Path | bytes | NDArray[np.uint8] | Tensor
Images = ImageOrPath | Iterable[ImageOrPath] | Tensor

BATCH = 32  # batch size for images that are preprocessed


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
    if pooling == "gem":
        return features.gem
    if pooling == "cls+mean":
        assert features.cls is not None
        return torch.cat([features.cls.to(torch.float32), features.mean], dim=1)
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
    if pooling in OF_CLS and not spec.has_cls:
        raise InputError(f"{spec.name} has no class token; take the pooling 'mean', 'gem' or 'grid'")
    if pooling == "patchwise" and spec.has_cls:
        raise InputError(
            f"{spec.name} has a class token; take the pooling {', '.join(map(repr, OF_CLS))}, 'mean', 'gem' "
            "or 'grid'"
        )


class CutBackbone:
    """Maps images to vectors of one layer of a frozen backbone.

    Blocks after the layer never run. Weights that no forward pass reads any more are freed for networks of
    transformers; a user's own Python object keeps its memory. ``view`` is scaled to the input size, ``dim``
    is the number of channels of the output, ``parameters`` that of the weights that the forward pass reads, 0
    if they are not parameters of torch.
    """

    @pass_context()
    def __init__(self, backbone: Backbone, layer: Layer, pooling: Pooled, view: View) -> None:
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

        Images are what `zoo.view.pixels` takes, such as a Pillow image, a path, bytes or an array uint8
        [height width channels], or any iterable of these, such as a list, a generator, a column of a dataset
        or an array [images height width channels]; all of them are preprocessed. A tensor of four axes is
        uint8 RGB pixels [images 3 height width] that are used unchanged, with sides that are multiples of
        ``spec.patch_size``. Raises InputError if one cannot be
        read, if pixels are of another kind, or if the grids of the images differ in size.
        """
        if isinstance(images, Tensor) and images.ndim not in (2, 3):
            return self._pooled(self._show(images))
        vectors = [*self._of_images(iter([images] if is_one(images) else images))]  # type: ignore[arg-type,list-item]
        if not vectors:
            return torch.empty(0, self.dim, dtype=torch.float32, device=self._backbone.device)
        differ = f"{self.spec.name}: the grids of these images are of different sizes; give one at a time"
        ensure(len({part.shape[1:] for part in vectors}) == 1, differ)
        return torch.cat(vectors)

    @property
    def module(self) -> "CutModule":
        """The cut network as a module of torch, for a head on top of it."""
        return CutModule(self)

    def preprocess(self, image: ImageOrPath) -> Tensor:
        """The pixels in which the network is shown an image, uint8 [3 height width], such as for a dataset.

        Raises InputError if it cannot be read, or if the network is shown images in several tiles.
        """
        ensure(tiles_of(self.view) is None, f"{self.spec.name} is shown images in tiles, not in one piece")
        return self._rendered(seen(image))[0]

    def _of_images(self, images: Iterator[ImageOrPath]) -> Iterator[Tensor]:
        """Outputs for images, in order; images of the same size share a batch."""
        while batch := [*islice(images, BATCH)]:
            rendered = ((self._rendered(image), image.size) for image in map(seen, batch))
            for _, group in groupby(rendered, key=lambda pair: pair[0].shape):
                pixels, sizes = zip(*group, strict=True)
                if (cut := tiles_of(self.view)) is None:
                    yield self._pooled(self._show(torch.cat(pixels)))
                    continue
                lacks = f"{self.spec.name} is shown images in tiles, which have no one class token"
                ensure(self.pooling not in OF_CLS, lacks)
                for tiles, size in zip(pixels, sizes, strict=True):
                    grid = cut.assemble(self._show(tiles).grid, self.view.geometry(size).size)
                    yield self._pooled(LayerFeatures(self.layer, None, grid[None]))

    @pass_context()
    def _rendered(self, image: Image.Image) -> Tensor:
        return self.view.render(image)

    @pass_context()
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


class CutModule(nn.Module):
    """A cut backbone as a module: pixels uint8 [images 3 height width] to vectors [images dim], float32.

    The backbone is frozen and no part of it: it has no parameters and an empty ``state_dict``, so that an
    optimizer trains, and a checkpoint stores, only what is put on top. It stays on its own device, to which
    it takes pixels, and where its vectors are.
    """

    def __init__(self, cut: CutBackbone) -> None:
        super().__init__()
        self.cut = cut

    def forward(self, pixels: Tensor) -> Tensor:
        vectors: Tensor = self.cut(pixels)
        return vectors
