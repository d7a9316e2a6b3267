"""Feeds of measurers: grids of a layer, attention probabilities of a block, or several taps of a block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from layerboard.tasks.framework.base import BatchPart, Feed, Portion_co
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.spec import BackboneSpec, Layer, Tap
from layerboard.zoo.view.views import tiles_of


@dataclass(frozen=True, slots=True)
class GridFeed(Feed[Tensor]):
    """Grids [images height width dim] of each layer; an image of tiles comes alone, assembled.

    Those that are ``lasting`` are in float32 and may be kept after the pass, but must not be changed: tasks
    share one copy. They are only for views with one tile per image.
    """

    lasting: bool = False

    def portion(self, shown: Sequence[Shown], part: BatchPart) -> Tensor:
        (features,) = _features(shown)
        if self.lasting:
            return features.kept_grid[part.rows]
        grids = features.grid[part.rows]
        tiles = tiles_of(part.view)
        return tiles.assemble(grids, part.size)[None] if tiles else grids


@dataclass(frozen=True, slots=True)
class _Attention(Feed[Portion_co]):
    """Attention probabilities of each block; its layers have the tap ``attention``."""

    from_first: bool = False  # whether all blocks from 1 to the last scored one are measured

    def layers(self, scored: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        blocks = _blocks(scored)
        if self.from_first:
            blocks = list(range(1, max(blocks, default=0) + 1))
        return tuple(Layer(index, "attention") for index in blocks)

    def shown(self, layer: Layer) -> tuple[Layer, ...]:
        return (Layer(layer.index, "probabilities"),)


class AttentionFeed(_Attention[AttentionMaps]):
    """Attention probabilities."""

    def portion(self, shown: Sequence[Shown], part: BatchPart) -> AttentionMaps:
        (maps,) = (features for features in shown if isinstance(features, AttentionMaps))
        return maps.of(part.rows)


# Attention of a block, and the input of the backbone, uint8 RGB [images 3 height width].
Pictured = tuple[AttentionMaps, Tensor]


class PicturedFeed(_Attention[Pictured]):
    """Attention probabilities with the pixels."""

    def portion(self, shown: Sequence[Shown], part: BatchPart) -> Pictured:
        return ATTENTION.portion(shown, part), part.pixels


@dataclass(frozen=True, slots=True)
class GridsOfPixels:
    """Grids of a layer and the input pixels."""

    grids: Tensor  # [images height width dim]; may be a view of the live activation
    pixels: Tensor  # uint8 RGB, [images 3 height width], on any device
    coarsest: tuple[int, int]  # rows and columns of the backbone's coarsest grid for this input


class PixelFeed(Feed[GridsOfPixels]):
    """Grids of every block, with the input pixels; only for views with one tile per image."""

    def layers(self, scored: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        return tuple(Layer(index) for index in sorted({layer.index for layer in scored}))

    def portion(self, shown: Sequence[Shown], part: BatchPart) -> GridsOfPixels:
        (features,) = _features(shown)
        grids = features.grid[part.rows]
        size = part.patch_size
        height, width = (side // size for side in part.pixels.shape[2:]) if size else grids.shape[1:3]
        return GridsOfPixels(grids, part.pixels, (height, width))


class ResidualFeed(Feed[Mapping[Tap, LayerFeatures]]):
    """Terms of a block's residual sums: features by tap; layers of a ConvNet are its blocks' branches."""

    def layers(self, scored: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        tap: Tap = "branch" if spec.is_convnet else "block"
        return tuple(Layer(index, tap) for index in _blocks(scored))

    def shown(self, layer: Layer) -> tuple[Layer, ...]:
        taps = dict.fromkeys(tap for term in sums_of(layer) for tap in term)
        return tuple(Layer(layer.index, tap) for tap in taps)

    def portion(self, shown: Sequence[Shown], part: BatchPart) -> Mapping[Tap, LayerFeatures]:
        return {features.layer.tap: features.of(part.rows) for features in _features(shown)}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsOrBlocksFeed(Feed[tuple[AttentionMaps | None, LayerFeatures]]):
    """Whole groups: for a transformer one block's heads with their maps, for a ConvNet its first blocks."""

    block: int  # block of a transformer whose attention probabilities and head outputs are fed
    blocks: int  # number of blocks of a ConvNet, or all if it has fewer
    whole: bool = True

    def layers(self, scored: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        if spec.heads is not None:
            return (Layer(self.block, "heads"),)
        return tuple(Layer(index) for index in range(1, min(self.blocks, spec.depth) + 1))

    def shown(self, layer: Layer) -> tuple[Layer, ...]:
        return (Layer(layer.index, "probabilities"), layer) if layer.tap == "heads" else (layer,)

    def portion(self, shown: Sequence[Shown], part: BatchPart) -> tuple[AttentionMaps | None, LayerFeatures]:
        (features,) = _features(shown)
        maps = [features.of(part.rows) for features in shown if isinstance(features, AttentionMaps)]
        return maps[0] if maps else None, features.of(part.rows)


Sum = tuple[Tap, Tap, Tap]  # taps of the skip, of the branch that is added to it, and of their sum


def sums_of(layer: Layer) -> tuple[Sum, ...]:
    """The sums of a block that a `ResidualFeed` measures: one in a ConvNet, two in a transformer."""
    if layer.tap == "branch":
        return (("skip", "branch", "block"),)
    return (("input", "attention", "mid"), ("mid", "mlp", "block"))


GRIDS = GridFeed()
WHOLE_GRIDS = GridFeed(whole=True)
LASTING_GRIDS = GridFeed(lasting=True)
ATTENTION = AttentionFeed()


def _features(shown: Sequence[Shown]) -> list[LayerFeatures]:
    return [features for features in shown if isinstance(features, LayerFeatures)]


def _blocks(scored: Sequence[Layer]) -> list[int]:
    return sorted({layer.index for layer in scored} - {0})
