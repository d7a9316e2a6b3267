"""Features of one layer, other data read from a backbone, and the protocol of a user's own backbone."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from layerboard.zoo.spec import BackboneSpec, Layer

LEAST, EXPONENT = 1e-6, 3  # of the generalised mean


@dataclass(frozen=True)
class LayerFeatures:
    """Features of one layer for one batch of images.

    ``cls`` is the class token, [batch dim]; None if the backbone has none. ``grid`` are patch tokens or the
    feature map, [batch height width dim], row 0 at the top. ``prefix`` are all tokens before the patches,
    [batch tokens dim], the class token first; None if the network does not show them. All may be views of the
    live activation, which is unchanged until its block ends: copy what must outlive that.
    """

    layer: Layer
    cls: Tensor | None
    grid: Tensor
    prefix: Tensor | None = None

    @property
    def mean(self) -> Tensor:
        """Average of the grid over its cells, [batch dim], float32."""
        # the sum casts as it reads: a copy in float32 would take longer than the sum on a GPU
        return self.grid.mean(dim=(1, 2), dtype=torch.float32)

    @property
    def gem(self) -> Tensor:
        """Generalised mean of the grid over its cells, [batch dim], float32: mean of cubes, cubic root.

        Values below `LEAST` count as `LEAST`, as in the code of its source (Radenović, Tolias and Chum,
        TPAMI 2018, arXiv:1711.02512, p = 3), whose features follow a ReLU. Tokens of transformers have both
        signs: what is negative is lost, and a channel that is negative in all cells is `LEAST`.
        """
        cubes = self.grid.to(torch.float32).clamp(min=LEAST) ** EXPONENT
        return cubes.mean(dim=(1, 2)) ** (1 / EXPONENT)

    @cached_property
    def kept_grid(self) -> Tensor:
        """A copy of the grid, float32, that outlives the pass; made once for all users of this batch."""
        return self.grid.to(torch.float32, copy=True)

    def patchwise(self, width: int) -> Tensor:
        """Average of the grid after blocks of k x k cells were concatenated, [batch dim k^2], float32.

        k is the largest power of two with ``dim k^2`` at most ``width`` and k at most the shorter side of the
        grid, so that early stages of a ConvNet give vectors about as wide as its last stage (Raghu et al.
        2021, appendix F). Cell (k y + i, k x + j) goes to channels ``(k i + j) dim`` and following; if k does
        not divide the sides of the grid, offsets with one cell more average over one more.
        """
        _, height, columns, dim = self.grid.shape
        k = 1
        while dim * (2 * k) ** 2 <= width and 2 * k <= min(height, columns):
            k *= 2
        parts = [self.grid[:, i::k, j::k] for i in range(k) for j in range(k)]
        return torch.cat([part.mean(dim=(1, 2), dtype=torch.float32) for part in parts], dim=1)

    def of(self, rows: slice) -> "LayerFeatures":
        """The features of some images of the batch; a view."""
        cls, prefix = (None if part is None else part[rows] for part in (self.cls, self.prefix))
        return LayerFeatures(self.layer, cls, self.grid[rows], prefix)


@dataclass(frozen=True)
class AttentionMaps:
    """Attention probabilities of one block for one batch of images; its layer has the tap ``probabilities``.

    They are [batch heads queries keys] in [0, 1], after any position bias and the soft-max; each row of keys
    sums to 1. Tokens are the prefix tokens, the class token first if there is one, then the patches in
    row-major order; ``cells`` are their rows and columns.
    """

    layer: Layer
    probabilities: Tensor
    prefix_tokens: int
    cells: tuple[int, int]

    @cached_property
    def patches(self) -> Tensor:
        """Attention among patches, [batch heads patches patches], float32; must not be changed.

        Prefix rows and columns are removed, and each row is divided by its sum; a row without attention to
        patches stays zero. Computed once for all users of this batch.
        """
        inside = self.probabilities[..., self.prefix_tokens :, self.prefix_tokens :]
        total = inside.sum(dim=-1, keepdim=True, dtype=torch.float32)
        return inside / torch.where(total > 0, total, 1)  # float32, without a copy of the maps

    def of(self, rows: slice) -> "AttentionMaps":
        """The maps of some images of the batch, a view; itself for all of them."""
        if rows.indices(len(self.probabilities)) == (0, len(self.probabilities), 1):
            return self
        return AttentionMaps(self.layer, self.probabilities[rows], self.prefix_tokens, self.cells)


@dataclass(frozen=True, slots=True)
class BackboneIdentity:
    """Distinguishes a backbone's features from those of every other."""

    revision: str  # commit of the repository, digest of local files, or seed and recipe of generated weights
    fingerprint: str  # digest of the weights' identity, the input normalisation, the dtype and the format
    # of its weights (`zoo.load.checkpoint.weights_sha256`); "" if they are not in files, or nobody read these
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ReceptiveField:
    """How strongly each pixel affects the centre cell of a layer, ``(rows // 2, columns // 2)`` of its grid.

    ``strength`` are absolute derivatives of the cell by the normalised input, summed over RGB and images,
    mean over channels: [height width], float32. ``cells`` are rows and columns of the layer's grid.
    """

    layer: Layer
    strength: Tensor
    cells: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that can be analysed without an image; they must not be changed.

    ``filters`` of the first convolution act on the normalised input; BiT's are standardised, as it convolves
    with them. ``positions`` are trained position embeddings of the patches on the square training grid.
    ``position_bias`` is what BEiT and data2vec add to attention scores, for a grid of g x g patches, one
    block if all share it: entry ``[dy + g - 1, dx + g - 1]`` if the query is dy rows below and dx columns
    right of the key.
    """

    filters: Tensor | None  # [dim 3 height width]
    positions: Tensor | None  # [rows columns dim], without those of prefix tokens
    position_bias: Tensor | None  # [blocks heads 2g-1 2g-1]
    reason: Mapping[str, str]  # by the name of each None: why, in a sentence


Channels = Callable[[int], Sequence[int]]  # chooses channels of a layer from their number

# What a forward pass shows of a layer: attention for ``probabilities``, features for every other tap. A
# visitor is called once per layer; it must not change what it is shown, and may hold it until the block ends.
Shown = LayerFeatures | AttentionMaps
Visitor = Callable[[Shown], None]


class Visitable(Protocol):
    """A frozen network that shows each layer of a forward pass to a visitor: the protocol of a backbone."""

    spec: BackboneSpec  # the entry that the network was loaded for
    revision: str  # resolved commit of the repository, or digest of local weights
    fingerprint: str  # distinguishes its features from all others: weights, dtype and format
    device: torch.device  # of the forward pass
    dtype: torch.dtype  # of the forward pass

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        """Run one forward pass and call ``visitor`` once per layer, in order, while it runs.

        Args:
            pixels: uint8 RGB, [batch 3 height width], on any device; sides are multiples of the patch size.
            visitor: Called with `AttentionMaps` for each layer of the tap ``probabilities``, and with
                `LayerFeatures` for every other.
            layers: Layers to show; all of ``spec.layers`` if None, which include no probabilities. These are
                computed only on request, with those of one block in memory at a time: 4 bytes (in float32)
                for each image, head, query and key.
        """
