"""What the overlaps of attention maps with objects say of heads, layers and the backbone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.analyses.tally import NOT_FINITE, Tally, joined, keys_of, seen
from tasks.base import Findings, LayerOutcome, Measurements, Outcome, Source
from tasks.checks import nothing_read
from tasks.metrics.arrays import Floats
from tasks.metrics.saliency import held_out_best
from zoo.spec import WHOLE_BACKBONE, Layer

NO_OBJECT = "no image has an object in its view"
"""Why there are no overlaps."""

BEST = "saliency-iou-best"


@dataclass(frozen=True)
class _Overlaps:
    """Overlaps of one block, of the images that show an object.

    Attributes:
        keys: The images.
        iou: [images heads modes].
        merged: Of the mean over heads, [images modes].
        rollout: [images variants].
        floor: Of a map that marks everything, [images].
        rollout_map: Mean over all images of rollout, [patches].
    """

    keys: tuple[str, ...]
    iou: Floats
    merged: Floats
    rollout: Floats
    floor: Floats
    rollout_map: Floats

    @classmethod
    def read(cls, source: Source, measurements: Sequence[Measurements]) -> "_Overlaps | None":
        """From what the groups left behind; None where no image could be read."""
        found = seen(source, measurements)
        if not found:
            return None
        keys, objects = keys_of(found), joined(found, "objects")
        there = np.flatnonzero(objects)
        iou, merged, rollout = (joined(found, name)[there] for name in ("iou", "merged", "rollout"))
        floor = objects[there] / np.prod(np.asarray(found[0][1]["cells"][0], np.int64))
        rolled = sum(np.asarray(one["rollout_map"], np.float64).sum(axis=0) for _, one in found)
        return cls(tuple(keys[place] for place in there), iou, merged, rollout, floor, rolled / len(keys))

    @property
    def poolings(self) -> tuple[str, ...]:
        """The modes in order: ``cls`` where there is a class token, and ``patch``."""
        return ("cls", "patch")[-self.iou.shape[2] :]

    @property
    def best_heads(self) -> NDArray[np.int64]:
        """The head with the best mean of each mode; of equal ones the first."""
        return np.asarray(self.iou.mean(axis=0).round(12).argmax(axis=0))

    def outcome(self, pooling: str, rollouts: Iterable[str], splits: tuple[int, int]) -> Outcome:
        """Scores of one kind of maps; those of rollout beside the first kind."""
        if not len(self.keys):
            return Outcome((), empty=NO_OBJECT)
        mode = self.poolings.index(pooling)
        heads = self.iou[:, :, mode]
        if not np.isfinite(heads).all():
            return Outcome((), empty=NOT_FINITE)
        tally = Tally(self.keys)
        tally.images(BEST, heads[:, self.best_heads[mode]])
        _held_out(tally, heads, splits)
        tally.images("saliency-iou-oracle", heads.max(axis=1))
        tally.images("saliency-iou-merged", self.merged[:, mode])
        tally.heads("saliency-iou", heads)
        tally.images("saliency-iou-uniform", self.floor)
        for place, name in enumerate(rollouts):
            # attention that overflowed in a block before is in every rollout from there on
            if mode == 0 and np.isfinite(self.rollout[:, place]).all():
                tally.images(name, self.rollout[:, place])
        return tally.outcome()


def find(
    source: Source,
    rollouts: Mapping[str, object],
    splits: tuple[int, int],
    measured: Mapping[Layer, Sequence[Measurements]],
) -> Findings:
    """What the overlaps say; raises UnreadableImageError where no image could be read.

    Scores of the poolings ``cls`` (maps of what the class token gives to the patches, where there is one) and
    ``patch`` (of what all patches give), over the images that show an object: ``saliency-iou`` of heads and
    their mean; ``saliency-iou-best`` of the head with the best mean, chosen on the images that it is scored
    on; ``saliency-iou-best-held-out``, chosen on one half of the images and scored on the other;
    ``saliency-iou-oracle``, of the best head of each image; ``saliency-iou-merged``, of the mean over heads;
    ``saliency-iou-uniform``, of a map that marks everything; ``rollout-iou`` and variants, of rollout up to
    the block, beside ``cls``, and beside ``patch`` where there is no class token. The best and the held-out
    best of all heads of all blocks are scores of the whole backbone.

    Arrays: ``iou`` [images blocks heads 2], modes ``cls`` (NaN without a class token) and ``patch``;
    ``best_head`` [blocks 2], -1 where there is none; ``rollout_iou`` [images blocks]; ``rollout_map`` [blocks
    patches], the mean over all images, not normalised; ``image`` [images] keys; ``block`` [blocks].

    Args:
        source: The images.
        rollouts: Variants of rollout by metric, in the order of their measurements.
        splits: How many random halves, and the seed that draws them.
        measured: As `AnalysisProblem.findings` has it.
    """
    found: dict[Layer, _Overlaps] = {}
    for layer in measured:
        if (one := _Overlaps.read(source, measured[layer])) is not None:
            found[layer] = one
    if not found:
        raise nothing_read(source)
    outcomes = [
        LayerOutcome(layer, pooling, one.outcome(pooling, rollouts, splits))
        for layer, one in found.items()
        for pooling in one.poolings
    ]
    return Findings((*outcomes, *_whole(list(found.values()), splits)), _arrays(found))


def _whole(every: Sequence[_Overlaps], splits: tuple[int, int]) -> list[LayerOutcome]:
    """The best of all heads of all blocks, in each mode."""
    outcomes = []
    for mode, pooling in enumerate(every[0].poolings):
        heads = np.concatenate([one.iou[:, :, mode] for one in every], axis=1)
        outcome = Outcome((), empty=NO_OBJECT if not len(heads) else NOT_FINITE)
        if len(heads) and np.isfinite(heads).all():
            tally = Tally(every[0].keys)
            tally.images(BEST, heads[:, heads.mean(axis=0).round(12).argmax()])
            _held_out(tally, heads, splits)
            outcome = tally.outcome()
        outcomes.append(LayerOutcome(WHOLE_BACKBONE, pooling, outcome))
    return outcomes


def _held_out(tally: Tally, heads: Floats, splits: tuple[int, int]) -> None:
    """The score of a choice that one image does not allow."""
    if len(heads) > 1:
        tally.number(f"{BEST}-held-out", held_out_best(heads, *splits), len(heads), "images")


def _arrays(found: Mapping[Layer, _Overlaps]) -> dict[str, NDArray[np.generic]]:
    every = list(found.values())
    missing = 2 - len(every[0].poolings)
    padding = ((0, 0), (0, 0), (0, 0), (missing, 0))
    iou = np.stack([one.iou for one in every], axis=1)
    there = len(every[0].keys) > 0
    best = [np.pad(one.best_heads, (missing, 0), constant_values=-1) if there else [-1, -1] for one in every]
    return {
        "iou": np.pad(iou, padding, constant_values=np.nan).astype(np.float32),
        "best_head": np.array(best, np.int64),
        "rollout_iou": np.stack([one.rollout[:, 0] for one in every], axis=1).astype(np.float32),
        "rollout_map": np.stack([one.rollout_map for one in every]).astype(np.float32),
        "image": np.array(every[0].keys, np.str_),
        "block": np.array([layer.index for layer in found], np.int64),
    }
