"""Propagation of the first frame's labels through a video by the similarity of its tokens.

Source: Jabri et al., Space-Time Correspondence as a Contrastive Random Walk, NeurIPS 2020, and the DAVIS
evaluation of Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from tasks.metrics.arrays import VOID, Integers, Labels
from tasks.metrics.carrying import (
    Neighbourhood,
    Recent,
    Tile,
    Windows,
    carried,
    similarities,
    unit_tokens,
)
from tasks.metrics.cell_labels import cell_areas, first_largest
from tasks.metrics.neighbours import Key, mean_of

CONSTANT = 1e-6


class PropagationOfSets(Generic[Key]):
    """Carries a label map from frame to frame for each of several sets of layers, and never asks for a value.

    Sources of a frame are the first frame and the latest ones before it. A token's label is the mean of the
    sources' labels in its window, weighted by exp(cosine / temperature), where the cosine of a set is the
    mean of its layers' cosines; only sources at least as similar as the topk-th best of all frames together
    count, ties included. The products of a layer are made once, however many sets it is in. A token that is
    NaN or infinite makes the labels of all tokens NaN that have it in their window.
    """

    def __init__(
        self,
        first_features: Mapping[Key, Tensor],
        first_labels: Tensor,
        sets: Mapping[Key, Sequence[Key]],
        heard: Neighbourhood,
    ) -> None:
        """Start a video.

        Args:
            first_features: For each layer [height width dim] tokens of the first frame, any length of vector.
            first_labels: [height width channels], one-hot or soft; channel 0 is background.
            sets: For each set its layers, all of them among those of the first frame.
            heard: What a token listens to.

        Raises:
            ValueError: Shapes do not fit.
        """
        for features in first_features.values():
            _check_first(features, first_labels)
        self._shapes = {layer: features.shape for layer, features in first_features.items()}
        self._sets, self._heard = sets, heard
        frames = 1 + heard.n_last_frames
        self._tokens = {layer: Recent(unit_tokens(grid), frames) for layer, grid in first_features.items()}
        like = next(iter(self._tokens.values())).kept
        labels = first_labels.to(like, non_blocking=True)
        self._labels = {name: Recent(labels, frames) for name in sets}
        height, width = first_labels.shape[:2]
        self._windows = Windows((height, width), heard, like.is_cpu)

    @torch.no_grad()
    def step(self, features: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
        """Soft label map of the next frame of each set: [height width channels], at least float32.

        Args:
            features: For each layer [height width dim] tokens of the frame.

        Raises:
            ValueError: Another shape than the first frame's.
        """
        for layer, shape in self._shapes.items():
            if features[layer].shape != shape:
                shapes = f"{tuple(features[layer].shape)} after {tuple(shape)}"
                raise ValueError(f"expected tokens of the first frame's shape, found {shapes}")
        tokens = {
            layer: unit_tokens(features[layer]).to(kept_frames.kept)
            for layer, kept_frames in self._tokens.items()
        }
        soft = {
            name: torch.empty_like(kept_frames.kept[:, :, 0]) for name, kept_frames in self._labels.items()
        }
        for tile in self._windows.tiles:
            for name, labels in self._measured(tokens, tile):
                part = tile.queries(soft[name])
                part.copy_(labels.view(part.shape))
        for layer, recent in self._tokens.items():
            recent.add(tokens[layer])
        for name, recent in self._labels.items():
            recent.add(soft[name])
        return soft

    def _measured(self, tokens: Mapping[Key, Tensor], tile: Tile) -> Iterator[tuple[Key, Tensor]]:
        """Label maps of a tile's queries for each set: [queries channels]."""
        alike = {layer: similarities(key, self._tokens[layer], tile) for layer, key in tokens.items()}
        outside = self._windows.outside(tile, next(iter(tokens.values())))
        shared = len(self._sets) > 1  # then a layer alone must not be overwritten
        for name, members in self._sets.items():
            mean = mean_of([alike[key] for key in members])
            mean = mean.clone() if shared and len(members) == 1 else mean
            yield name, carried(mean, outside, self._labels[name].around(tile), self._heard)


class Propagation:
    """Carries the label map of one layer from frame to frame, as `PropagationOfSets` does of several.

    `Propagator` refuses tokens that are NaN or infinite.
    """

    def __init__(self, first_features: Tensor, first_labels: Tensor, heard: Neighbourhood) -> None:
        """Start a video.

        Args:
            first_features: [height width dim] tokens of the first frame, any length of vector.
            first_labels: [height width channels], one-hot or soft; channel 0 is background.
            heard: What a token listens to.

        Raises:
            ValueError: Shapes do not fit.
        """
        self._of_one = PropagationOfSets({0: first_features}, first_labels, {0: (0,)}, heard)

    def step(self, features: Tensor) -> Tensor:
        """Soft label map of the next frame: [height width channels], at least float32.

        Args:
            features: [height width dim] tokens of the frame.

        Raises:
            ValueError: Another shape than the first frame's.
        """
        return self._of_one.step({0: features})[0]


class Propagator(Propagation):
    """`Propagation` that raises ValueError where a token or a first label is NaN or infinite."""

    def __init__(self, first_features: Tensor, first_labels: Tensor, heard: Neighbourhood) -> None:
        """Start a video, as `Propagation` does."""
        super().__init__(first_features, first_labels, heard)
        _look(first_features, "tokens")
        _look(first_labels, "the first labels")

    def step(self, features: Tensor) -> Tensor:
        """Soft label map of the next frame, as of `Propagation`."""
        _look(features, "tokens")
        return super().step(features)


def _look(values: Tensor, what: str) -> None:
    if not values.isfinite().all():
        raise ValueError(f"{what} must not hold NaN or infinite values")


def seed_labels(mask: Labels, grid: tuple[int, int], keep_vanished: bool) -> Tensor:
    """The first frame's object mask on the token grid: [height width channels] float32, one-hot.

    The mask is resized by nearest neighbour. With ``keep_vanished`` channels go up to the largest id of the
    full mask, and an object that would vanish takes the token that it covers most (ties: first row, then
    column) of those that are not another object's only one; where no such token is left, it shares one by
    halves. Without it channels end at the largest id that is still there.

    Args:
        mask: [image height, image width] object ids; 0 and 255 are background.
        grid: Height and width in tokens.
        keep_vanished: Whether small objects survive.

    Raises:
        ValueError: The mask is no uint8 image or the grid is empty.
    """
    if mask.ndim != 2 or not mask.size or mask.dtype != np.uint8:
        raise ValueError(f"expected a mask [height width] of uint8, found {mask.shape} {mask.dtype}")
    if min(grid) < 1:
        raise ValueError(f"expected a grid of at least one token, found {grid}")
    clean = np.where(mask == VOID, np.uint8(0), mask)
    small = _nearest(clean, (grid[1], grid[0])).astype(np.int64)
    channels = 1 + int((clean if keep_vanished else small).max())
    labels = np.eye(channels, dtype=np.float32)[small]
    if keep_vanished:
        present = np.bincount(clean.ravel(), minlength=channels) > 0
        vanished = np.flatnonzero(present & (labels.sum(axis=(0, 1)) == 0))
        for number in vanished[vanished > 0]:
            _rescue(labels, int(number), cell_areas(clean == number, grid))
    return torch.from_numpy(labels)


def decode_nearest(soft: Tensor, size: tuple[int, int]) -> Labels:
    """Object ids of a soft label map at the image's size, without interpolation: [image height, image width].

    Every channel is scaled to [0, 1] over the frame, a constant one to 0; the largest wins (ties: lower id).
    Source: the tracking notebook of DINOv3 (facebookresearch/dinov3, commit 6876159).

    Args:
        soft: [height width channels].
        size: Image width and height.

    Raises:
        ValueError: Wrong shape or size, or a value is NaN or infinite.
    """
    if soft.ndim != 3 or not soft.numel() or min(size) < 1:
        shapes = f"{tuple(soft.shape)} and {size}"
        raise ValueError(f"expected a map [height width channels] and a size, found {shapes}")
    if not bool(torch.isfinite(soft).all()):
        raise ValueError("the label map must not hold NaN or infinite values")
    # the pixels of a token are alike, and every token has one: what wins can be found token by token
    low, high = soft.amin((0, 1)), soft.amax((0, 1))
    scaled = torch.where(high > low, (soft - low) / (high - low), 0)
    ids = first_largest(scaled.permute(2, 0, 1)).cpu().numpy()
    rows, columns = (
        np.arange(length) * cells // length
        for length, cells in zip((size[1], size[0]), ids.shape, strict=True)
    )
    return np.asarray(ids[rows][:, columns])


def decode(soft: Tensor, size: tuple[int, int], patch: int) -> Labels:
    """Object ids of a soft label map at the image's size: [image height, image width].

    The map is upsampled bilinearly by the patch size, each channel with a positive maximum is scaled to
    [0, 1] over the frame, the largest channel wins (ties: lower id) and ids are resized by nearest neighbour.
    A positive channel that is constant has no range to scale: it counts as 1 everywhere.

    Args:
        soft: [height width channels].
        size: Image width and height.
        patch: Pixels a token.

    Raises:
        ValueError: Wrong shape, size or patch, or a value is NaN or infinite.
    """
    if soft.ndim != 3 or not soft.numel() or min(*size, patch) < 1:
        shapes = f"{tuple(soft.shape)}, {size}, {patch}"
        raise ValueError(f"expected a map [height width channels], a size and a patch, found {shapes}")
    if not bool(torch.isfinite(soft).all()):
        raise ValueError("the label map must not hold NaN or infinite values")
    shape = (soft.shape[0] * patch, soft.shape[1] * patch)
    large = functional.interpolate(soft.permute(2, 0, 1)[None], size=shape, mode="bilinear")[0]
    low, high = large.amin((1, 2), keepdim=True), large.amax((1, 2), keepdim=True)
    constant = high - low <= CONSTANT * high.abs()
    scaled = torch.where(constant, 1.0, (large - low) / torch.where(constant, 1.0, high - low))
    ids = first_largest(torch.where(high > 0, scaled, large))
    return _nearest(ids.cpu().numpy(), size)


def _check_first(features: Tensor, labels: Tensor) -> None:
    shape, other = tuple(features.shape), tuple(labels.shape)
    if len(shape) != 3 or len(other) != 3 or other[:2] != shape[:2] or 0 in (*shape, *other):
        shapes = f"{shape} and {other}"
        raise ValueError(f"expected [height width dim] and [height width channels], found {shapes}")


def _nearest(ids: Labels, size: tuple[int, int]) -> Labels:
    """Ids resized to width and height by Pillow's nearest neighbour."""
    return np.asarray(Image.fromarray(ids).resize(size, Image.Resampling.NEAREST), dtype=np.uint8)


def _rescue(labels: NDArray[np.float32], number: int, cover: Integers) -> None:
    """Give a vanished object its token in the label map, in place."""
    owner = labels.argmax(axis=-1)
    single = np.bincount(owner.ravel(), minlength=labels.shape[-1]) <= 1
    single[0] = False
    free = np.where(single[owner] | (labels.max(axis=-1) < 1), 0, cover)
    row, column = divmod(int((free if free.any() else cover).argmax()), cover.shape[1])
    labels[row, column] *= 0.0 if free.any() else 0.5
    labels[row, column, number] = 1 - labels[row, column].sum()
