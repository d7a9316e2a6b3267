"""Collectors: they listen to a pass, and leave arrays for each shard."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, groupby
from typing import Any, TypeVar

import torch
from torch import Tensor

from layerboard.benchmark.passes.loading import Batch, Member
from layerboard.tasks.framework.base import FINITE, BatchPart, Source
from layerboard.tasks.framework.checks import NOT_FINITE
from layerboard.tasks.framework.measurers import Measurer, TokenMeasurer
from layerboard.tasks.framework.sets import members_of
from layerboard.tasks.framework.task import Measurable
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures, Shown
from layerboard.zoo.features.cut import pooled
from layerboard.zoo.features.pass_context import is_out_of_memory
from layerboard.zoo.spec import Layer, VectorPooling
from layerboard.zoo.view.views import tiles_of

FAILURE = "failure"  # array that says why a layer has no measurements, UTF-8
MIXED = "its layers have grids of different sizes"  # reason why a set of layers has no token cosine

Name = TypeVar("Name", bound=Hashable)
Grids = dict[Layer, Tensor]  # [images height width dim] each


class Collector(ABC):
    """Listens to the layers of a pass, one shard after another."""

    layers: frozenset[Layer]  # layers that it needs
    whole = False  # whether it needs all images of a group at once

    @abstractmethod
    def see(self, batch: Batch, features: Shown) -> None:
        """Take one layer of one batch; if memory runs out, nothing was taken, or another error is raised."""

    def again(self) -> frozenset[Layer]:
        """Forget and return layers that were shown but not used yet: smaller batches will show them again."""
        return frozenset()

    @abstractmethod
    def finish(self, groups: range) -> dict[str, Tensor]:
        """Return the arrays of the shard with those groups, and forget them."""


def to_host(arrays: Mapping[Name, Tensor]) -> dict[Name, Tensor]:
    """Copy arrays to host memory, contiguous, with one copy for each device and dtype.

    Separate copies would make the host wait for the device once for each array. Arrays of a copy share its
    memory, which is freed with the last of them.
    """
    there = {name: array.contiguous() for name, array in arrays.items() if array.device.type == "cpu"}
    kinds: dict[tuple[torch.device, torch.dtype], list[Name]] = {}
    for name, array in arrays.items():
        if name not in there:
            kinds.setdefault((array.device, array.dtype), []).append(name)
    for names in kinds.values():
        whole = torch.cat([arrays[name].flatten() for name in names])
        # a GPU writes several times as fast to pinned memory, which torch keeps for the next copy
        pinned = torch.empty_like(whole, device="cpu", pin_memory=True) if whole.is_cuda else None
        host = whole.cpu() if pinned is None else pinned.copy_(whole)
        parts = torch.split(host, [arrays[name].numel() for name in names])
        for name, part in zip(names, parts, strict=True):
            there[name] = part.view(arrays[name].shape)
    return {name: there[name] for name in arrays}


class VectorCollector(Collector):
    """Keeps vectors of every image by some poolings, which all layers must have.

    Arrays are named ``cls.3`` or ``mean.final``, [images dim]; ``shown`` [images] is 0 for unreadable images,
    whose rows are NaN. ``width`` is that of the backbone's last stage, the maximum number of channels of the
    pooling ``patchwise``.
    """

    def __init__(
        self,
        source: Source,
        layers: frozenset[Layer],
        poolings: tuple[VectorPooling, ...],
        dtype: torch.dtype,
        width: int = 0,
    ) -> None:
        self.layers = layers
        self._source, self._poolings, self._dtype, self._width = source, poolings, dtype, width
        self._kept: dict[str, list[Tensor]] = {}
        self._members: dict[Member, None] = {}

    def see(self, batch: Batch, features: Shown) -> None:
        """Pool one layer; the small results stay on the device until the shard ends."""
        assert isinstance(features, LayerFeatures)  # attention probabilities are not needed
        vectors = {f"{p}.{features.layer}": pooled(features, p, self._width) for p in self._poolings}
        # a batch comes whole for some layers and in pieces for others, in the same order
        self._members |= dict.fromkeys(batch.members)
        for name, each in vectors.items():
            self._kept.setdefault(name, []).append(each)

    def finish(self, groups: range) -> dict[str, Tensor]:
        first = [0, *accumulate(len(self._source.groups[group].samples) for group in groups)]
        places = [first[member.group - groups[0]] + member.position for member in self._members]
        rows = torch.tensor(places, dtype=torch.long)
        shown = torch.zeros(first[-1], dtype=torch.uint8)
        shown[rows] = 1
        vectors = to_host({name: torch.cat(parts).to(self._dtype) for name, parts in self._kept.items()})
        self._kept, self._members = {}, {}
        if places == [*range(first[-1])]:  # all images in order, as almost always
            return {"shown": shown, **vectors}
        arrays = {"shown": shown}
        for name, values in vectors.items():
            arrays[name] = torch.full((first[-1], values.shape[1]), float("nan"), dtype=self._dtype)
            arrays[name][rows] = values
        return arrays


class Gathered:
    """Grids of a group's images that wait until all members of the layers of a task have shown them."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = layers
        self._members = members_of(layers)
        self._waiting: dict[int, dict[Layer, Tensor]] = {}

    def add(self, member: Layer, positions: Sequence[int], grids: Tensor) -> tuple[list[int], Grids]:
        """Copy a member's grids; returns the positions of the images that are now complete, and all grids."""
        for position, grid in zip(positions, grids, strict=True):
            self._waiting.setdefault(position, {})[member] = grid.clone()
        done = [position for position in positions if len(self._waiting[position]) == len(self._members)]
        images = [self._waiting.pop(position) for position in done]
        # images are given up as they are copied, so that memory holds one member's grids twice
        return done, {
            each: torch.stack([image.pop(each) for image in images]) for each in self._members if done
        }

    def of_one_grid(self, grids: Grids) -> dict[tuple[int, ...], list[Layer]]:
        """The layers by the size of their members' grids; under () those whose members differ in it."""
        by_size: dict[tuple[int, ...], list[Layer]] = {}
        for layer in self._layers:
            sizes = {tuple(grids[member].shape[1:3]) for member in layer.members}
            by_size.setdefault(sizes.pop() if len(sizes) == 1 else (), []).append(layer)
        return by_size


class MeasuredCollector(Collector):
    """Feeds the measurers of a task, one per group of the source that is shown: its own, or the first images.

    Arrays are named ``17/3/error``: group, layer, and the measurer's name for them.
    """

    def __init__(self, fed: Measurable, source: Source, layers: Collection[Layer], patch: int = 0) -> None:
        self._fed, self._source, self._view, self._patch = fed, source, source.view, patch
        self._measured = tuple(sorted(layers, key=lambda layer: layer.place))
        self._together = any(len(layer.members) > 1 for layer in self._measured)
        members = dict.fromkeys(member for layer in self._measured for member in layer.members)
        self._serves = {needed: layer for layer in members for needed in fed.feed.shown(layer)}
        self.layers, self.whole = frozenset(self._serves), fed.feed.whole
        self._waiting: dict[Layer, list[Shown]] = {}
        self._measurers: dict[int, Measurer[Any]] = {}
        self._gathered: dict[int, Gathered] = {}  # by group, what waits for further members
        # by group, why layers have no measurements
        self._failed: defaultdict[int, dict[Layer, str]] = defaultdict(dict)

    def see(self, batch: Batch, features: Shown) -> None:
        """Hand a layer to the measurers of the batch's groups, once all measured with it were shown."""
        layer = self._serves[features.layer]
        waiting = self._waiting.setdefault(layer, [])
        waiting.append(features)
        if len(waiting) < len(self._fed.feed.shown(layer)):
            return
        del self._waiting[layer]
        for members, part in self._parts(batch):
            group = members[0].group
            if layer not in self._failed[group]:
                positions = [member.position for member in members]
                with self._noting(group, layer):
                    portion = self._fed.feed.portion(waiting, part)
                    if self._together:
                        self._gather(group, layer, positions, portion)
                    else:
                        self._measurer(group).update(layer, positions, portion)

    def again(self) -> frozenset[Layer]:
        waiting = frozenset(features.layer for every in self._waiting.values() for features in every)
        self._waiting = {}
        return waiting

    def finish(self, groups: range) -> dict[str, Tensor]:
        arrays = {name: array for group in groups for name, array in self._of_group(group).items()}
        self._measurers, self._gathered = {}, {}
        self._failed.clear()
        return arrays

    def _gather(self, group: int, member: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Hand images to a measurer that takes layers together, once all their members have shown them."""
        measurer = self._measurer(group)
        assert isinstance(measurer, TokenMeasurer)  # no other task takes layers of several members
        gathered = self._gathered.setdefault(group, Gathered(self._measured))
        done, complete = gathered.add(member, positions, grids)
        for size, layers in gathered.of_one_grid(complete).items() if done else ():
            if size:
                measurer.compare(layers, done, {each: complete[each] for each in members_of(layers)})
            else:
                self._failed[group] |= dict.fromkeys(layers, MIXED)

    def _of_group(self, group: int) -> dict[str, Tensor]:
        """What the measurer of a group keeps of every layer; it leaves the device at once."""
        measurer, failed = self._measurer(group), self._failed[group]
        finished: dict[tuple[Layer, str], Tensor] = {}
        for layer in self._measured:
            # a layer of several members has no result if one of them could not be measured
            if reasons := [*filter(None, map(failed.get, (*layer.members, layer)))]:
                failed[layer] = reasons[0]
            else:
                with self._noting(group, layer):
                    finished |= {(layer, name): array for name, array in measurer.finish(layer).items()}
        by_layer: dict[Layer, dict[str, Tensor]] = {layer: {} for layer in self._measured}
        for (layer, name), array in to_host(finished).items():
            by_layer[layer][name] = array
        for layer, arrays in by_layer.items():
            if not arrays.pop(FINITE, torch.tensor(True)).all():
                failed.setdefault(layer, NOT_FINITE)
        measured = {layer: arrays for layer, arrays in by_layer.items() if not failed.get(layer)}
        # one that is not ours needs no more than `update` and `finish`
        settled = measurer.settle(measured) if hasattr(measurer, "settle") else measured
        named: dict[str, Tensor] = {}
        for layer in self._measured:
            reason = torch.tensor(list(failed.get(layer, "").encode()), dtype=torch.uint8)
            stored = settled[layer] if layer in measured else {FAILURE: reason}
            named |= {f"{group}/{layer}/{name}": array for name, array in stored.items()}
        return named

    @contextmanager
    def _noting(self, group: int, layer: Layer) -> Iterator[None]:
        """Drop a layer whose features cannot be measured (such as not finite); wrong input stops the task."""
        try:
            yield
        except InputError:
            raise
        except ValueError as error:
            self._failed[group].setdefault(layer, str(error))
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            # a measurer may have taken a part of it: it cannot be shown again
            raise InputError(
                f"measuring layer {layer} took more memory than there is; try a smaller --batch-size or "
                "--input-size, fewer --workers, or another --device"
            ) from error

    def _measurer(self, group: int) -> Measurer[Any]:
        if group not in self._measurers:
            self._measurers[group] = self._fed.measure(self._source.groups[group], self._view)
        return self._measurers[group]

    def _parts(self, batch: Batch) -> Iterator[tuple[tuple[Member, ...], BatchPart]]:
        """Consecutive images of one group, and their places in the batch; an image of tiles comes alone."""
        row, alone = 0, tiles_of(self._view) is not None
        numbered = enumerate(batch.members)
        for _, together in groupby(numbered, key=lambda pair: (pair[1].group, pair[0] if alone else 0)):
            members = tuple(member for _, member in together)
            rows = slice(row, row + sum(member.tiles for member in members))
            yield members, BatchPart(rows, self._view, members[0].size, batch.pixels[rows], self._patch)
            row = rows.stop
