"""What average attention maps say of heads and layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.analyses.tally import NOT_FINITE, Tally, joined, keys_of, seen, summed
from tasks.base import Findings, Group, LayerOutcome, Measurements, Outcome, Source
from tasks.checks import nothing_read
from tasks.metrics.arrays import Floats
from tasks.metrics.attention_maps import centre_distance
from tasks.metrics.offsets import HeadOffset, average_offset, head_offset
from zoo.spec import Layer


@dataclass(frozen=True)
class _Maps:
    """Average maps of one block.

    Attributes:
        keys: The images.
        maps: By who asks (``cls``, ``patch``), [heads tokens].
        aaam: [heads 2 * rows - 1, 2 * columns - 1].
        each: Numbers of each image: [images heads], or [images].
        samples: Maps of single images, and their keys.
        cells: Rows and columns of the grid.
    """

    keys: tuple[str, ...]
    maps: Mapping[str, Floats]
    aaam: Floats
    each: Mapping[str, Floats]
    samples: Mapping[str, NDArray[np.generic]]
    cells: tuple[int, int]

    @classmethod
    def read(cls, source: Source, measurements: Sequence[Measurements]) -> "_Maps | None":
        """From what the groups left behind; None where no image could be read."""
        found = seen(source, measurements)
        if not found:
            return None
        first = found[0][1]
        keys = keys_of(found)
        maps = {
            pooling: summed(found, f"{pooling}_map") / len(keys)
            for pooling in ("cls", "patch")
            if f"{pooling}_map" in first
        }
        each = {name: joined(found, name) for name in ("std-over-queries", "std-over-heads")}
        rows, columns = np.asarray(first["cells"]).tolist()
        aaam = summed(found, "aaam") / len(keys)
        return cls(keys, maps, aaam, each, _samples(found), (rows, columns))

    @cached_property
    def finite(self) -> bool:
        """Whether no map has overflowed."""
        return all(np.isfinite(one).all() for one in (*self.maps.values(), self.aaam))

    @cached_property
    def offsets(self) -> list[HeadOffset]:
        """Where each head looks."""
        return [head_offset(one) for one in self.aaam]

    def outcome(self, pooling: str, normalised: bool) -> Outcome:
        """Scores of one kind of asking tokens."""
        if not self.finite:
            return Outcome((), empty=NOT_FINITE)
        tally = Tally(self.keys)
        patches = self.maps[pooling][:, -self.cells[0] * self.cells[1] :]
        tally.whole("map-centre-distance", centre_distance(patches, self.cells))
        if pooling == "patch":
            self._of_patches(tally, normalised)
        return tally.outcome()

    def _of_patches(self, tally: Tally, normalised: bool) -> None:
        queries, heads = self.each["std-over-queries"], self.each["std-over-heads"]
        if np.isfinite(queries).all():
            tally.heads("std-over-queries", queries)
        if np.isfinite(heads).all():
            tally.images("std-over-heads", heads)
        offset = average_offset(self.aaam, normalised=normalised)
        tally.whole("offset", np.linalg.norm(offset, axis=-1))
        extent = np.maximum(np.array(self.cells) - 1, 1)
        tally.whole("offset-unit", np.linalg.norm(offset / extent, axis=-1))
        tally.whole("local-mass", np.array([one.local_mass for one in self.offsets]))
        tally.whole("peak-offset", np.array([one.peak_offset for one in self.offsets]))
        sideways = [one.name == "offset" for one in self.offsets]
        tally.number("offset-heads", float(np.mean(sideways)), len(sideways), "heads")


def find(source: Source, normalised: bool, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
    """What the average maps of each block say; raises UnreadableImageError.

    Scores of the poolings ``cls`` (where there is a class token) and ``patch``: ``map-centre-distance`` of
    their average maps, on the unit square. Of ``patch``: ``std-over-queries`` and ``std-over-heads`` (one
    head has none); of the average map by offset ``offset``, the length of the mean offset in cells,
    ``offset-unit``, the same where the grid spans [-1, 1] over all offsets, as the released code has it,
    ``local-mass`` and ``peak-offset`` in cells (`HeadOffset`), and of a layer ``offset-heads``, the share
    of its heads of the class ``offset``.

    Arrays: ``cls_map`` (where there is a class token) and ``patch_map`` [blocks heads tokens]; ``aaam``
    [blocks heads 2 * rows - 1, 2 * columns - 1], what lies ``dy`` down and ``dx`` to the right at
    ``[dy + rows - 1, dx + columns - 1]``; ``peak`` [blocks heads 2], down and right; ``class`` [blocks
    heads]; ``block`` [blocks]; ``images`` [], their number. Of single images: ``sample_image`` [samples
    rows columns 3] uint8, ``sample`` [samples] keys, ``sample_cls`` [samples blocks grid-rows
    grid-columns], the mean over heads of what the class token gives to the patches (``sample_of`` says
    ``cls``; ``patch``: of what patches do on average), and ``sample_rollout``, rollout up to each block.
    """
    found: dict[Layer, _Maps] = {}
    for layer in measured:
        if (one := _Maps.read(source, measured[layer])) is not None:
            found[layer] = one
    if not found:
        raise nothing_read(source)
    outcomes = [
        LayerOutcome(layer, pooling, one.outcome(pooling, normalised))
        for layer, one in found.items()
        for pooling in one.maps
    ]
    return Findings(tuple(outcomes), _arrays(found))


def _samples(found: Sequence[tuple[Group, Measurements]]) -> dict[str, NDArray[np.generic]]:
    """Maps of single images, in the order of the source, with their keys."""
    there = [(group, one) for group, one in found if "sample" in one]
    if not there:
        return {}
    names = [name for name in ("sample_cls", "sample_rollout", "sample_image") if name in there[0][1]]
    keys = [group.samples[place].key for group, one in there for place in one["sample"].tolist()]
    return {
        "sample": np.array(keys),
        **{name: np.concatenate([one[name] for _, one in there]) for name in names},
    }


def _arrays(found: Mapping[Layer, _Maps]) -> dict[str, NDArray[np.generic]]:
    """Arrays of all blocks, where all are finite or not."""
    every = list(found.values())
    arrays: dict[str, NDArray[np.generic]] = {
        f"{pooling}_map": np.stack([one.maps[pooling] for one in every]).astype(np.float32)
        for pooling in every[0].maps
    }
    offsets = [one.offsets if one.finite else [] for one in every]
    heads = len(every[0].aaam)
    arrays |= {
        "aaam": np.stack([one.aaam for one in every]).astype(np.float32),
        "peak": np.array([[head.peak for head in one] or [(0, 0)] * heads for one in offsets], np.int64),
        "class": np.array([[str(head.name) for head in one] or [""] * heads for one in offsets]),
        "block": np.array([layer.index for layer in found], np.int64),
        "images": np.array(len(every[0].keys)),
    }
    return arrays | _sample_arrays(every)


def _sample_arrays(every: Sequence[_Maps]) -> dict[str, NDArray[np.generic]]:
    first = every[0]
    if "sample_image" not in first.samples:
        return {}
    arrays = {name: first.samples[name] for name in ("sample", "sample_image")}
    for name in ("sample_cls", "sample_rollout"):
        maps = np.stack([one.samples[name] for one in every], axis=1).astype(np.float32)
        arrays[name] = maps.reshape(*maps.shape[:2], *first.cells)
    return arrays | {"sample_of": np.array("cls" if "cls" in first.maps else "patch")}
