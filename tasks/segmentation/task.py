"""In-context semantic segmentation: cells of labelled images vote on the cells of others; nothing is trained.

Source: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023; the rules are those
of docs/explanation/segmentation.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.datasets.scenes import Scene, read_classes
from layerboard.tasks.framework.base import Group, Measurements, Outcome, Over, digest
from layerboard.tasks.framework.examples import Predicted, drawn_indices, small_mask
from layerboard.tasks.framework.measurers import Grid, Measurer, MemoryMeasurer, unit_rows
from layerboard.tasks.metrics.arrays import VOID, Labels
from layerboard.tasks.metrics.cell_labels import cell_counts
from layerboard.tasks.segmentation import in_context
from layerboard.tasks.segmentation.shown import MEMORY_FIRST, LabelledImages, LearntImages, signatures
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Stretch, View

SHOWN = 8  # number of images in the examples


@dataclass(frozen=True, slots=True)
class SegmentationConfig:
    """Settings of in-context segmentation."""

    view: View  # view of whole images
    vote: in_context.Vote
    least: float  # least share of labelled pixels of a remembered cell
    seed: int  # of the draw of remembered cells


@dataclass(frozen=True)
class SegmentationMemory(LearntImages):
    """Memory of the training images: some cells of each, with pixel counts by class."""

    config: SegmentationConfig

    @property
    def classes(self) -> int:
        return len(self.data.classes)

    def read(self, view: View, scene: Scene) -> Labels:
        """Class of each pixel of an image, from which its cells are labelled."""
        del view  # a view of the whole image has the same pixels under a cell
        return read_classes(self.data, scene)

    @cached_property
    def fingerprint(self) -> str:
        config, data = self.config, self.data
        facts = config.seed, config.least, data.memory, data.offset, len(data.classes)
        return digest("segment-memory", *facts, signatures(self.scenes))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        scenes, least, seed = self.scenes_of(group), self.config.least, self.config.seed

        def choose(position: int, grid: Grid) -> tuple[Tensor, Tensor]:
            scene, most = scenes[position], max(1, self.most // len(self.scenes))  # cells of an image
            counts = cell_counts(self.read(view, scene), grid, self.classes)
            cells, pixels = in_context.remembered_cells(counts, scene.sample.key, most, least, seed)
            return torch.from_numpy(cells), torch.from_numpy(pixels)

        def keep(position: int, grid: Tensor, cells: Tensor, pixels: Tensor) -> dict[str, Tensor]:
            return unit_rows(grid, cells) | {"pixels": pixels}

        return MemoryMeasurer(choose, keep)


class SegmentationTask(LabelledImages):
    """Labels of the pixels of validation images, from a memory of training images."""

    config: SegmentationConfig
    over: ClassVar[Over] = "classes"
    sets_refusal = ""
    keeps_examples = True
    configs: ClassVar[Mapping[str, SegmentationConfig]] = {
        "standard": SegmentationConfig(
            view=Stretch(side=448), vote=in_context.Vote(k=30, other=1, temperature=0.02), least=0.5, seed=0
        )
    }

    def read(self, view: View, scene: Scene) -> Labels:
        """Class of each pixel of an image; 255 for ignored pixels."""
        return self.memory.read(view, scene)  # all layers and backbones are scored on the pixels of the image

    @cached_property
    def memory(self) -> SegmentationMemory:
        return SegmentationMemory(self.data, self.config)

    def remembering(
        self, measured: Mapping[Layer, Sequence[Measurements]], failures: Mapping[Layer, str]
    ) -> Self:
        memories = in_context.memory_of_layers(measured, failures, in_context.labelled_cells)
        return replace(self, memories=memories)

    @cached_property
    def fingerprint(self) -> str:
        return digest("segment", self.config, self.memory.fingerprint, signatures(self.data.val))

    @property
    def classes(self) -> int:
        return self.memory.classes

    @property
    def endings(self) -> tuple[str, ...]:
        return "", f" k={self.config.vote.other}", " ceiling"

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        if self.memories is None:
            raise ValueError(MEMORY_FIRST)
        read, scenes = partial(self.read, view), self.scenes_of(group)
        measurer = in_context.QueryMeasurer(read, self.classes, scenes, self.config.vote, self.memories)
        if self.examples:
            measurer.examples = [row for row, scene in enumerate(scenes) if scene in self.shown]
        return measurer

    @cached_property
    def shown(self) -> list[Scene]:
        """The example images."""
        return [self.scenes[row] for row in drawn_indices([scene.sample.key for scene in self.scenes], SHOWN)]

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Scores of all images, and the labels of the examples with their pixel accuracy."""
        outcome = super().score(measurements)
        masks = [np.asarray(measured["mask"], np.uint8) for measured in measurements if "mask" in measured]
        if not masks or not outcome.scores:
            return outcome
        mask, judged = np.concatenate(masks), self._truth != VOID
        right = ((mask == self._truth) & judged).sum(axis=(1, 2)) / np.maximum(judged.sum(axis=(1, 2)), 1)
        return replace(outcome, predicted={"mask": mask, "score": (100 * right).astype(np.float32)})

    @cached_property
    def _truth(self) -> Labels:
        return np.stack([small_mask(self.read(self.config.view, scene)) for scene in self.shown])

    def facts(self) -> Predicted:
        keys, classes = [scene.sample.key for scene in self.shown], self.data.classes
        return {"image": np.asarray(keys, str), "truth": self._truth, "classes": np.asarray(classes, str)}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        return {scene.sample.key: scene.sample for scene in self.shown}
