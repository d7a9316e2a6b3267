"""Views of single evaluations as their authors released them; no other task uses them.

They are defined in absolute sizes or in tokens, not in proportion to a backbone's input size: a published
number belongs to one size.
"""

from dataclasses import dataclass, replace
from math import ceil

import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from layerboard.zoo.view.geometry import Box, Geometry, cropped_size, nearest_multiple
from layerboard.zoo.view.views import (
    Letterbox,
    Part,
    Resize,
    Resized,
    Stretch,
    WholeFrame,
    crop_to_box,
    to_tensor,
)

# Mean colour of ImageNet in whole pixel values, which most backbones normalise to nearly 0.
IMAGENET_MEAN = (124, 116, 104)
WHITE = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class _Square:
    """A square view whose side does not follow the backbone's input size."""

    view: "Letterbox | Stretch | CornerSquare"

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        return self.view.geometry(size, box)

    def render(self, image: Image.Image, box: Box | None = None) -> Tensor:
        return self.view.render(image, box)


@dataclass(frozen=True, slots=True)
class OfTokens(_Square):
    """A square view of ``tokens`` patch tokens per side, whatever their size; ``view`` is the paper's own."""

    tokens: int

    def scaled(self, input_size: int, multiple: int) -> "OfTokens":
        return replace(self, view=replace(self.view, side=self.tokens * multiple))


@dataclass(frozen=True, slots=True)
class OfPixels(_Square):
    """A square view of a fixed number of pixels per side, rounded to whole tokens."""

    def scaled(self, input_size: int, multiple: int) -> "OfPixels":
        return OfPixels(replace(self.view, side=nearest_multiple(self.view.side, multiple)))


@dataclass(frozen=True, slots=True)
class CornerSquare:
    """The image in the upper left corner of a white square, at ``side``, then padded to the multiple.

    That padding, which patches of 14 pixels need, surrounds the square and is grey. Source: the
    correspondence of probe3d (El Banani et al., CVPR 2024; commit a1f1464).
    """

    side: int
    multiple: int = 1

    def scaled(self, input_size: int, multiple: int) -> "CornerSquare":
        return replace(self, multiple=multiple)

    def stated(self, size: tuple[int, int]) -> Geometry:
        """Coordinate map for an image of that size as in the released code, which ignores the padding."""
        scale, side = self.side / max(size), float(self.side)
        content = (0.0, 0.0, min(side, size[0] * scale), min(side, size[1] * scale))
        return Geometry((scale, scale), (0.0, 0.0), (self.side, self.side), content)

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        cropped, (x, y) = cropped_size(size, box)
        seen, before = self.stated(cropped), self._padding // 2
        scale, whole = seen.scale[0], self.side + self._padding
        offset = (before - x * scale, before - y * scale)
        left, top, right, bottom = (edge + before for edge in seen.content)
        return Geometry(seen.scale, offset, (whole, whole), (left, top, right, bottom))

    def render(self, image: Image.Image, box: Box | None = None) -> Tensor:
        image = crop_to_box(image, box)
        square = Image.new("RGB", (max(image.size),) * 2, WHITE)
        square.paste(image)
        whole = Image.new("RGB", (self.side + self._padding,) * 2, IMAGENET_MEAN)
        resized = square.resize((self.side, self.side), Image.Resampling.BICUBIC)
        whole.paste(resized, (self._padding // 2,) * 2)
        return to_tensor(whole)[None]

    @property
    def _padding(self) -> int:
        """Pixels that the square lacks to a multiple."""
        return self.multiple * ceil(self.side / self.multiple) - self.side


@dataclass(frozen=True, slots=True)
class TokenFrame(WholeFrame):
    """A whole frame of as many tokens as ``short`` has at patches of 16 pixels: 840 of 960 for patches of 14.

    Source: Siméoni et al., DINOv3, 2025, Table 5.
    """

    def scaled(self, input_size: int, multiple: int) -> "TokenFrame":
        return TokenFrame(self.short * multiple // 16, multiple)


@dataclass(frozen=True, slots=True)
class NativeFrame(WholeFrame):
    """A whole frame whose shorter side is the backbone's input size, but at most ``short``.

    Source: Bolya et al., Perception Encoder, 2025, section B.3.3.
    """

    def scaled(self, input_size: int, multiple: int) -> "NativeFrame":
        return NativeFrame(nearest_multiple(min(input_size, self.short), multiple), multiple)


@dataclass(frozen=True, slots=True)
class NativeSquare(Stretch):
    """The whole frame as a square of the backbone's input size, but at most ``side``; see `NativeFrame`."""

    def scaled(self, input_size: int, multiple: int) -> "NativeSquare":
        return replace(self, side=nearest_multiple(min(input_size, self.side), multiple))


def _unfiltered(image: Image.Image, size: tuple[int, int], part: Part) -> Tensor:
    """A whole image (the only part requested), resized as OpenCV does by default."""
    pixels = to_tensor(image)[None].float()
    resized = functional.interpolate(pixels, size=size[::-1], mode="bilinear", align_corners=False)
    return resized[0].round().clamp(0, 255).to(torch.uint8)


@dataclass(frozen=True, slots=True)
class ScriptFrame(Resized):
    """Shorter side to ``short``, the longer one in proportion, down to a multiple of ``step``.

    Resizing is bilinear without antialiasing, on pixel values, as OpenCV's default. If the multiple that a
    backbone needs does not divide both, the shorter side is rounded to the nearest multiple of it and the
    longer one is rounded down. Source: the DAVIS script of DINO (facebookresearch/dino, commit 7c446df).
    """

    short: int
    step: int
    multiple: int = 1

    def scaled(self, input_size: int, multiple: int) -> "ScriptFrame":
        return replace(self, multiple=multiple)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        short = nearest_multiple(self.short, self.multiple)
        step = self.step if self.step % self.multiple == 0 else self.multiple
        long = max(step, step * int(short * max(size) / min(size) / step))
        return (long, short) if size[0] >= size[1] else (short, long)

    @property
    def resize(self) -> Resize:
        return _unfiltered
