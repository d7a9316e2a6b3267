"""Segmentation by a vote of pixels: each memory cell stores the label of each of its pixels.

Source: the k-NN segmentation of CAPI (Darcet et al., 2025; facebookresearch/capi, commit 98b4fa1). With all
cells in the memory it is that evaluation, except for the choice of held-out images; with fewer cells the
scores differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from torch import Tensor

from layerboard.tasks.datasets.scenes import every_value
from layerboard.tasks.framework.base import Group, Measurements, Over, digest
from layerboard.tasks.framework.measurers import Grid, Measurer, MemoryMeasurer
from layerboard.tasks.metrics.arrays import VOID
from layerboard.tasks.segmentation.in_context import Memories
from layerboard.tasks.segmentation.pixel_memory import (
    Electorate,
    PixelQueryMeasurer,
    Pixels,
    kept_of,
    voting_memory,
)
from layerboard.tasks.segmentation.shown import (
    MEMORY_FIRST,
    LabelledImages,
    LearntImages,
    shown_labels,
    signatures,
)
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Stretch, View


@dataclass(frozen=True, slots=True)
class CapiConfig:
    """Settings of the vote of pixels."""

    view: View  # view of whole images
    electorate: Electorate  # candidates for the vote, chosen for each layer on held-out training images
    held_out: int  # one in this many training images is held out; at least one
    seed: int  # of the draws of these images and of the remembered cells


def pixels_of(
    keys: Sequence[str], config: CapiConfig, classes: int, ignored: frozenset[int], memory: int
) -> Pixels:
    """Rule for the remembered cells, and the held-out images among ``keys`` on which the vote is chosen.

    ``classes`` and ``ignored`` are those of `Pixels`; ``memory`` is the target number of cells of all images.
    """
    order = np.random.Generator(np.random.PCG64(config.seed)).permutation(len(keys))
    held_out = frozenset(keys[row] for row in order[: max(1, len(keys) // config.held_out)])
    return Pixels(classes, ignored, held_out, max(1, memory // len(keys)), config.seed)


@dataclass(frozen=True)
class CapiMemory(LearntImages):
    """Memory of the training images: some cells of each, with the labels of their pixels."""

    config: CapiConfig

    @cached_property
    def pixels(self) -> Pixels:
        keys, classes = [scene.sample.key for scene in self.scenes], len(every_value(self.data).classes)
        ignored = frozenset((*range(self.data.offset), VOID))
        return pixels_of(keys, self.config, classes, ignored, self.data.memory)

    @cached_property
    def fingerprint(self) -> str:
        pixels, held_out = self.pixels, sorted(self.pixels.held_out)
        facts = pixels.classes, sorted(pixels.ignored), held_out, pixels.most, pixels.seed
        return digest("capi-memory", *facts, signatures(self.scenes))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        scenes = self.scenes_of(group)

        def choose(position: int, grid: Grid) -> tuple[Tensor, Tensor]:
            labels = shown_labels(self.data, view, scenes[position], centres=True)
            return self.pixels.of(labels, grid, scenes[position].sample.key)

        def keep(position: int, grid: Tensor, cells: Tensor, labels: Tensor) -> dict[str, Tensor]:
            held_out = scenes[position].sample.key in self.pixels.held_out
            return kept_of(grid, cells, labels, held_out=held_out)

        return MemoryMeasurer(choose, keep)


class CapiTask(LabelledImages):
    """Labels of the pixels of validation images as they are shown, by a memory of training images."""

    config: CapiConfig
    over: ClassVar[Over] = "seen classes"
    configs: ClassVar[Mapping[str, CapiConfig]] = {
        "capi": CapiConfig(
            view=Stretch(side=224),
            electorate=Electorate(ks=(1, 3, 10, 30), distances=("cosine", "L2")),
            held_out=10,
            seed=0,
        )
    }

    @cached_property
    def memory(self) -> CapiMemory:
        return CapiMemory(self.data, self.config)

    def remembering(
        self, measured: Mapping[Layer, Sequence[Measurements]], failures: Mapping[Layer, str]
    ) -> "CapiTask":
        make = partial(voting_memory, pixels=self.memory.pixels, electorate=self.config.electorate)
        return replace(self, memories=Memories(measured, failures, make))

    @cached_property
    def fingerprint(self) -> str:
        return digest("capi", self.config, self.memory.fingerprint, signatures(self.data.val))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        if self.memories is None:
            raise ValueError(MEMORY_FIRST)
        read = partial(shown_labels, self.data, view, centres=True)
        return PixelQueryMeasurer(read, self.scenes_of(group), self.memory.pixels, self.memories)

    @property
    def classes(self) -> int:
        return self.memory.pixels.classes + 1  # a pixel can be predicted to be none
