"""Features of one layer, what else is read of a backbone, and what an own one must offer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from layerboard.zoo.spec import BackboneSpec, Layer


@dataclass(frozen=True, slots=True)
class LayerFeatures:
    """Features of one layer for one batch of images.

    ``cls`` is the class token, [batch dim]; None where the backbone has none. ``grid`` are patch tokens or
    the feature map, [batch height width dim], row 0 at the top. ``prefix`` are all tokens before the patches,
    [batch tokens dim], the class token first; None where the network does not show them. All may be views of
    the live activation, which stays as it is until its block ends: copy what must outlive that.
    """

    layer: Layer
    cls: Tensor | None
    grid: Tensor
    prefix: Tensor | None = None

    @property
    def mean(self) -> Tensor:
        """Average of the grid over its cells, [batch dim], float32."""
        return self.grid.float().mean(dim=(1, 2))

    def patchwise(self, width: int) -> Tensor:
        """Average of the grid after blocks of k x k cells were moved into channels, [batch dim k^2], float32.

        k is the largest power of two with ``dim k^2`` at most ``width`` and k at most the shorter side of the
        grid, so that early stages of a ConvNet give vectors about as wide as its last stage (Raghu et al.
        2021, appendix F). Cell (k y + i, k x + j) goes to channels ``(k i + j) dim`` and following; where k
        does not divide the grid's sides, the offsets that have a cell more average over one more.
        """
        _, height, columns, dim = self.grid.shape
        k = 1
        while dim * (2 * k) ** 2 <= width and 2 * k <= min(height, columns):
            k *= 2
        cells = self.grid.float()
        return torch.cat([cells[:, i::k, j::k].mean(dim=(1, 2)) for i in range(k) for j in range(k)], dim=1)

    def of(self, rows: slice) -> "LayerFeatures":
        """The features of some images of the batch; a view."""
        cls, prefix = (None if part is None else part[rows] for part in (self.cls, self.prefix))
        return LayerFeatures(self.layer, cls, self.grid[rows], prefix)


@dataclass(frozen=True)
class AttentionMaps:
    """Attention probabilities of one block for one batch of images; its layer has the tap ``probabilities``.

    They are [batch heads queries keys] in [0, 1], after any position bias and the soft-max; each row of keys
    sums to 1. Tokens are the prefix tokens, of which the first is the class token where there is one, then
    the patches in row-major order; ``cells`` are their rows and columns.
    """

    layer: Layer
    probabilities: Tensor
    prefix_tokens: int
    cells: tuple[int, int]

    @cached_property
    def patches(self) -> Tensor:
        """How patches attend to patches, [batch heads patches patches], float32; must not be changed.

        Prefix rows and columns are cut off, and each row is divided by its sum; a row that gives nothing to
        patches stays zero. It is computed once for all that look at this batch.
        """
        inside = self.probabilities[..., self.prefix_tokens :, self.prefix_tokens :]
        total = inside.sum(dim=-1, keepdim=True, dtype=torch.float32)
        return inside / torch.where(total > 0, total, 1)  # float32, without a copy of the maps

    def of(self, rows: slice) -> "AttentionMaps":
        """The maps of some images of the batch, a view; of all of them, itself."""
        if rows.indices(len(self.probabilities)) == (0, len(self.probabilities), 1):
            return self
        return AttentionMaps(self.layer, self.probabilities[rows], self.prefix_tokens, self.cells)


@dataclass(frozen=True, slots=True)
class BackboneIdentity:
    """What tells a backbone's features from those of every other."""

    revision: str  # commit of the repository, digest of local files, or seed and recipe of generated weights
    fingerprint: str  # digest of the weights' identity, the input normalisation, the dtype and the format


@dataclass(frozen=True, slots=True)
class ReceptiveField:
    """How strongly each pixel moves the centre cell of a layer, ``(rows // 2, columns // 2)`` of its grid.

    ``strength`` has the derivatives of the cell by the normalised input in size, summed over RGB and images,
    mean over channels: [height width], float32. ``cells`` are rows and columns of the layer's grid.
    """

    layer: Layer
    strength: Tensor
    cells: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that say something without an image; they must not be changed.

    ``filters`` of the first convolution act on the normalised input; BiT's are standardised, as it convolves
    with them. ``positions`` are trained embeddings of the patches' positions on the square grid of the
    training. ``position_bias`` is what BEiT and data2vec add to the scores of attention, for a grid of g x g
    patches, one block if all share it: entry ``[dy + g - 1, dx + g - 1]`` where the query is dy rows below
    and dx columns right of the key.
    """

    filters: Tensor | None  # [dim 3 height width]
    positions: Tensor | None  # [rows columns dim], without those of prefix tokens
    position_bias: Tensor | None  # [blocks heads 2g-1 2g-1]
    reason: Mapping[str, str]  # by the name of what is None: why, in a sentence


Channels = Callable[[int], Sequence[int]]  # which channels of a layer are looked at, told how many it has

# What a forward shows of a layer: attention of ``probabilities``, features of every other tap. A visitor is
# called once for each layer; it must not change what it is shown, which it may hold until the block ends.
Shown = LayerFeatures | AttentionMaps
Visitor = Callable[[Shown], None]


class Visitable(Protocol):
    """A frozen network that shows each layer of a forward to a visitor: what own objects must offer."""

    spec: BackboneSpec  # the entry that the network was loaded for
    revision: str  # resolved commit of the repository, or digest of local weights
    fingerprint: str  # tells its features from those of every other backbone: weights, dtype and format
    device: torch.device  # that the forward runs on
    dtype: torch.dtype  # that the forward computes in

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        """Run one forward and call ``visitor`` once for each layer, in order, while the forward runs.

        Args:
            pixels: uint8 RGB, [batch 3 height width], on any device; sides are multiples of the patch size.
            visitor: Called with `AttentionMaps` for each layer of the tap ``probabilities``, and with
                `LayerFeatures` for every other.
            layers: Layers to show; all of ``spec.layers`` if None, which have no probabilities. Those are
                computed only where some are asked for, one block's in memory at a time: 4 bytes (in float32)
                for each image, head, query and key.
        """
