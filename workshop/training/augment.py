"""Random views of a batch of images, as tensor operations on any device.

Every image has its own random draws. Crops, flips and blurs are products with small matrices, one per axis: a
crop is resampled with a triangle filter that is widened when it shrinks the image (anti-aliased, as in
Pillow). Colour changes are one matrix per picture, in the fixed order brightness, contrast, saturation, hue;
hue is rotated in YIQ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_LUMA = (0.299, 0.587, 0.114)
_YIQ = (_LUMA, (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingView:
    """Random variation of the views of a picture."""

    side: int  # height and width of the view in pixels
    scale: tuple[float, float] = (1.0, 1.0)  # least and largest share of the area that a crop covers
    ratio: tuple[float, float] = (3 / 4, 4 / 3)  # least and largest width by height of a crop
    flip: float = 0.0  # probability of a horizontal flip
    jitter: float = 0.0  # probability that colours are changed
    brightness: float = 0.4  # factors are drawn from 1 - b to 1 + b; likewise contrast and saturation
    contrast: float = 0.4
    saturation: float = 0.2
    hue: float = 0.1  # largest turn of the hue, as a share of the circle
    grey: float = 0.0  # probability of a greyscale view
    blur: float = 0.0  # probability of a Gaussian blur
    sigma: tuple[float, float] = (0.1, 1.0)  # least and largest standard deviation of a blur in pixels
    solarise: float = 0.0  # probability that values of at least 0.5 are inverted


Draw = Callable[[float, float], Tensor]  # a number from the first to the second for each image, [batch]


def augment(images: Tensor, view: TrainingView, generator: torch.Generator) -> Tensor:
    """A random view of each image, float32 [batch 3 side side] in [0, 1].

    Images are uint8 [batch 3 height width], and the generator is on their device.
    """

    def draw(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(images), generator=generator, device=images.device)

    with torch.autocast(images.device.type, enabled=False):
        views = _crop(images.float() / 255, view, draw)
        if view.jitter or view.grey:
            views = _recolour(views, view, draw)
        if view.blur:
            views = _blurred(views, view, draw)
        if view.solarise:
            inverted = torch.where(views >= 0.5, 1 - views, views)
            views = torch.where((draw(0, 1) < view.solarise)[:, None, None, None], inverted, views)
        return views.clamp(0, 1)


def _crop(images: Tensor, view: TrainingView, draw: Draw) -> Tensor:
    height, width = images.shape[-2:]
    area = height * width * draw(*view.scale)
    ratio = draw(*map(math.log, view.ratio)).exp() * width / height
    if view.scale == (1.0, 1.0):
        ratio = torch.full_like(ratio, width / height)
    wide, tall = (area * ratio).sqrt().clamp(max=width), (area / ratio).sqrt().clamp(max=height)
    left, top = draw(0, 1) * (width - wide), draw(0, 1) * (height - tall)
    rows, columns = resampling(top, tall, view.side, height), resampling(left, wide, view.side, width)
    flipped = (draw(0, 1) < view.flip)[:, None, None]
    return _sandwich(images, rows, torch.where(flipped, columns.flip(1), columns))


def resampling(start: Tensor, length: Tensor, out: int, size: int) -> Tensor:
    """Weights of a line's ``size`` pixels in the ``out`` pixels of a resampled piece of it, [batch out size].

    ``start`` and ``length`` [batch] of the pieces are in pixels, from pixel edges; rows sum to 1.
    """
    step = (length / out)[:, None]
    centres = start[:, None] + (torch.arange(out, device=start.device) + 0.5) * step
    pixels = torch.arange(size, device=start.device) + 0.5
    weights = (1 - (pixels - centres[..., None]).abs() / step.clamp(min=1)[..., None]).clamp(min=0)
    return torch.as_tensor(weights / weights.sum(-1, keepdim=True))


def _sandwich(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Each image [3 height width] times its own matrices of rows [out height] and columns [out width].

    The channels share a product, which is several times faster than one product each.
    """
    count, _, height, width = images.shape
    tall = torch.bmm(rows, images.transpose(1, 2).reshape(count, height, 3 * width))
    wide = torch.bmm(tall.view(count, -1, width), columns.transpose(1, 2))
    return wide.view(count, rows.shape[1], 3, -1).transpose(1, 2).contiguous()


def _recolour(images: Tensor, view: TrainingView, draw: Draw) -> Tensor:
    changed = draw(0, 1) < view.jitter

    def factor(strength: float, kept: float = 1.0) -> Tensor:
        return torch.where(changed, draw(kept - strength, kept + strength), kept)

    brightness, contrast, saturation = (
        factor(strength)[:, None, None] for strength in (view.brightness, view.contrast, view.saturation)
    )
    turn = factor(2 * math.pi * view.hue, 0.0)
    saturation = torch.where((draw(0, 1) < view.grey)[:, None, None], 0.0, saturation)
    luma = images.new_tensor(_LUMA)
    greyed = saturation * torch.eye(3, device=images.device) + (1 - saturation) * luma.expand(3, 3)
    images = brightness[..., None] * images
    level = torch.einsum("c,bchw->b", luma, images) / images[0, 0].numel()
    images = contrast[..., None] * images + (1 - contrast[..., None]) * level[:, None, None, None]
    return torch.einsum("bij,bjhw->bihw", hue_rotation(turn) @ greyed, images.clamp(0, 1))


def hue_rotation(turn: Tensor) -> Tensor:
    """Matrices that turn the hue of RGB colours by angles [batch], [batch 3 3]; greys stay as they are."""
    to_yiq = turn.new_tensor(_YIQ)
    cos, sin, zero, unit = turn.cos(), turn.sin(), torch.zeros_like(turn), torch.ones_like(turn)
    rows = ((unit, zero, zero), (zero, cos, -sin), (zero, sin, cos))
    rotation = torch.stack([torch.stack(row, -1) for row in rows], -2)
    return torch.as_tensor(torch.linalg.inv(to_yiq) @ rotation @ to_yiq)


def _blurred(images: Tensor, view: TrainingView, draw: Draw) -> Tensor:
    sigma = draw(*view.sigma)[:, None, None]
    places = torch.arange(view.side, device=images.device, dtype=images.dtype)
    kernel = torch.exp(-((places[:, None] - places).square()) / (2 * sigma.square()))
    kernel = kernel / kernel.sum(-1, keepdim=True)
    chosen = (draw(0, 1) < view.blur)[:, None, None]
    kernel = torch.where(chosen, kernel, torch.eye(view.side, device=images.device))
    return _sandwich(images, kernel, kernel)
