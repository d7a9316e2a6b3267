"""Propagation of the first frame's labels through a video by the similarity of its tokens.

Source: Jabri et al., Space-Time Correspondence as a Contrastive Random Walk, NeurIPS 2020, and the DAVIS
evaluation of Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021.
"""

from collections.abc import Mapping, Sequence
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.metrics.arrays import VOID, Integers, Labels
from layerboard.tasks.metrics.cell_labels import cell_areas, first_largest, resized_labels
from layerboard.tasks.metrics.neighbours import Key, mean_of
from layerboard.tasks.propagation.carrying import (
    Neighbourhood,
    Recent,
    Windows,
    carried,
    similarities,
    unit_tokens,
)

CONSTANT = 1e-6


class Propagation(Generic[Key]):
    """Propagates a label map from frame to frame for each layer, without waiting for the device.

    The source frames of a frame are the first frame and the latest ones before it. The label of a token is
    the mean of the labels of source tokens in its window, weighted by exp(cosine / temperature); the cosine
    of a layer is the mean of its members' cosines. Only the topk most similar source tokens of all frames
    together count, including ties. The products of a member are computed once, however many layers have it,
    and however many rules carry labels by them. A NaN or infinite token makes the labels NaN of all tokens
    with it in their window.
    """

    def __init__(
        self,
        first_features: Mapping[Key, Tensor],
        first_labels: Tensor,
        layers: Mapping[Key, Sequence[Key]],
        rules: Sequence[Neighbourhood],
    ) -> None:
        """Start a video.

        ``first_features`` are each member's tokens [height width dim] of the first frame, of any length.
        ``first_labels`` are [height width channels], one-hot or soft, with channel 0 for the background.
        ``layers`` lists the members of each layer: a layer that is its own member comes alone. Each of the
        ``rules`` carries labels of its own; all have the same source frames.
        """
        (latest,) = {rule.n_last_frames for rule in rules}
        self._layers, self._rules, frames = layers, tuple(rules), 1 + latest
        self._tokens = {layer: Recent(unit_tokens(grid), frames) for layer, grid in first_features.items()}
        like = next(iter(self._tokens.values())).kept
        labels = first_labels.to(like, non_blocking=True)
        self._labels = {name: [Recent(labels, frames) for _ in rules] for name in layers}
        height, width = first_labels.shape[:2]
        self._windows = [Windows((height, width), rule, like.is_cpu) for rule in rules]
        self._tiles = max(self._windows, key=lambda each: each.radius).tiles

    @torch.no_grad()
    def step(self, features: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
        """Soft label maps of the next frame for each layer: [rules height width channels], at least float32.

        ``features`` are each member's tokens [height width dim] of the frame, of the first frame's shape.
        """
        tokens = {layer: unit_tokens(features[layer]).to(own.kept) for layer, own in self._tokens.items()}
        soft = {
            name: each[0].kept.new_empty(len(each), *each[0].kept[:, :, 0].shape)
            for name, each in self._labels.items()
        }
        for tile in self._tiles:
            alike = {layer: similarities(key, self._tokens[layer], tile) for layer, key in tokens.items()}
            masks = [each.outside(tile, next(iter(tokens.values()))) for each in self._windows]
            for name, members in self._layers.items():
                mean = mean_of([alike[member] for member in members])
                for number, (rule, labels) in enumerate(zip(self._rules, self._labels[name], strict=True)):
                    last = number == len(masks) - 1  # what it may overwrite is needed no more
                    part = tile.queries(soft[name][number])
                    similarity = mean if last else mean.clone()
                    mixture = carried(similarity, masks[number], labels.around(tile), rule)
                    part.copy_(mixture.view(part.shape))
        for layer, recent in self._tokens.items():
            recent.add(tokens[layer])
        for name, each in self._labels.items():
            for labels, map_ in zip(each, soft[name], strict=True):
                labels.add(map_)
        return soft


def seed_labels(mask: Labels, grid: tuple[int, int], keep_vanished: bool) -> Tensor:
    """The first frame's object mask on a grid of tokens: [height width channels] float32, one-hot.

    The mask has object ids, with 0 and 255 for background, and is resized by nearest neighbour. With
    ``keep_vanished``, channels go up to the largest id of the full mask. An object that would vanish then
    takes the token that it covers most (ties: first row, then column) among those that are not the only token
    of another object; if there is none, it shares a token half and half. Without ``keep_vanished``, channels
    end at the largest id in the resized mask.
    """
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
    """Object ids of a soft label map [height width channels], by nearest neighbour at (width, height).

    Every channel is scaled to [0, 1] over the frame, a constant one to 0; the largest wins (ties: lower id).

    Source: the tracking notebook of DINOv3 (facebookresearch/dinov3, commit 6876159).
    """
    # all pixels of a token get the same id, so the winner is found per token
    low, high = soft.amin((0, 1)), soft.amax((0, 1))
    scaled = torch.where(high > low, (soft - low) / (high - low), 0)
    return resized_labels(first_largest(scaled.permute(2, 0, 1)).cpu().numpy(), size, centres=False)


def decode_on_frame(soft: Tensor, size: tuple[int, int], *, scaled: bool) -> Labels:
    """Object ids of a soft label map [height width channels], bilinearly at the image's (width, height).

    With ``scaled``, every channel is then scaled to [0, 1] over the frame, a constant one to 0. The largest
    wins (ties: lower id).

    Source: DINOv3 (arXiv:2508.10104, Table 5); without scaling, the code of Jabri et al., NeurIPS 2020
    (ajabri/videowalk, commit 0834ff9).
    """
    large = functional.interpolate(soft.permute(2, 0, 1)[None], size=size[::-1], mode="bilinear")[0]
    if scaled:
        low, high = large.amin((1, 2), keepdim=True), large.amax((1, 2), keepdim=True)
        varies = high - low > CONSTANT * high.abs()
        large = torch.where(varies, (large - low) / torch.where(varies, high - low, 1.0), 0)
    return first_largest(large).cpu().numpy()


def decode(soft: Tensor, size: tuple[int, int], patch: int) -> Labels:
    """Object ids of a soft label map [height width channels] at the image's (width, height).

    The map is upsampled bilinearly by the patch size in pixels. Each channel with a positive maximum is
    scaled to [0, 1] over the frame, the largest channel wins (ties: lower id), and ids are resized by nearest
    neighbour. A constant positive channel cannot be scaled and counts as 1 everywhere.
    """
    shape = (soft.shape[0] * patch, soft.shape[1] * patch)
    large = functional.interpolate(soft.permute(2, 0, 1)[None], size=shape, mode="bilinear")[0]
    low, high = large.amin((1, 2), keepdim=True), large.amax((1, 2), keepdim=True)
    constant = high - low <= CONSTANT * high.abs()
    scaled = torch.where(constant, 1.0, (large - low) / torch.where(constant, 1.0, high - low))
    return _nearest(first_largest(torch.where(high > 0, scaled, large)).cpu().numpy(), size)


def _nearest(ids: Labels, size: tuple[int, int]) -> Labels:
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
