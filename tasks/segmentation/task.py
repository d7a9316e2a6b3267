"""Semantic segmentation in context: cells of labelled images vote on the cells of others; nothing is trained.

Source: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023; the rules are the README's,
``segment``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self

import torch
from torch import Tensor

from tasks.base import Group, Measurements, Measurer, Outcome, Over, digest
from tasks.datasets.scenes import Scene, read_classes
from tasks.metrics.arrays import Integers, Labels
from tasks.metrics.cell_labels import cell_counts
from tasks.metrics.overlaps import Overlaps
from tasks.segmentation import in_context
from tasks.segmentation.shown import MEMORY_FIRST, LabelledImages, LearntImages, signatures, tables_of
from zoo.spec import Layer
from zoo.view.views import Stretch, View


@dataclass(frozen=True, slots=True)
class SegmentationConfig:
    """The numbers of segmentation in context."""

    view: View  # how images are shown, whole
    vote: in_context.Vote
    least: float  # share of a cell's pixels that must have a class for the cell to be remembered
    seed: int  # of the draw of the cells that are remembered
    further_masks: ClassVar[bool] = False  # VOC 2012 is segmented by its further training masks (trainaug)


@dataclass(frozen=True)
class SegmentationMemory(LearntImages):
    """What is remembered of the training images: some cells of each, and how many pixels of each class."""

    config: SegmentationConfig

    @property
    def classes(self) -> int:
        return len(self.data.classes)

    def read(self, view: View, scene: Scene) -> Labels:
        """The class of each pixel of an image that cells are labelled by."""
        del view  # a view that shows all of an image puts the same pixels under a cell
        return read_classes(self.data, scene)

    @cached_property
    def fingerprint(self) -> str:
        config, data = self.config, self.data
        facts = config.seed, config.least, data.memory, data.offset, len(data.classes)
        return digest("segment-memory", *facts, signatures(self.scenes))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        def choose(scene: Scene, grid: in_context.Grid) -> tuple[Tensor, Tensor]:
            counts = cell_counts(self.read(view, scene), grid, self.classes)
            cells, pixels = self.choice.of(counts, scene.sample.key)
            return torch.from_numpy(cells), torch.from_numpy(pixels)

        return in_context.MemoryMeasurer(self.scenes_of(group), choose, in_context.unit_rows)

    @property
    def choice(self) -> in_context.CellChoice:
        most = max(1, self.most // len(self.scenes))
        return in_context.CellChoice(most, self.config.least, self.config.seed)


class SegmentationTask(LabelledImages):
    """Labels of the pixels of validation images, by a memory of training images."""

    config: SegmentationConfig
    over: ClassVar[Over] = "classes"
    sets_refusal = ""
    configs: ClassVar[Mapping[str, SegmentationConfig]] = {
        "standard": SegmentationConfig(
            view=Stretch(side=448), vote=in_context.Vote(k=30, other=1, temperature=0.02), least=0.5, seed=0
        )
    }

    def read(self, view: View, scene: Scene) -> Labels:
        """The class of each pixel of an image that is judged; 255 for none."""
        return self.memory.read(view, scene)  # all layers and backbones are judged on the pixels of the image

    @cached_property
    def memory(self) -> SegmentationMemory:
        return SegmentationMemory(self.data, self.config)

    def remembering(
        self, measured: Mapping[Layer, Sequence[Measurements]], failures: Mapping[Layer, str]
    ) -> Self:
        return replace(self, memories=in_context.Memories(measured, failures))

    @cached_property
    def fingerprint(self) -> str:
        return digest("segment", self.config, self.memory.fingerprint, signatures(self.data.val))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        return in_context.QueryMeasurer(*self._labelling(group, view))

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        return in_context.SetsQueryMeasurer(*self._labelling(group, view), sets)

    def _labelling(
        self, group: Group, view: View
    ) -> tuple[Callable[[Scene], Labels], int, list[Scene], in_context.Vote, in_context.Memories]:
        """What labels a few images by layers is made with."""
        if self.memories is None:
            raise ValueError(MEMORY_FIRST)
        scenes, classes = self.scenes_of(group), self.memory.classes
        return partial(self.read, view), classes, scenes, self.config.vote, self.memories

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Mean IoU and accuracies in percent; primary is the mean IoU over the classes that are shown."""
        names = ("", f" k={self.config.vote.other}", " ceiling")
        overlaps = {name: self.overlaps(name, measurements) for name in names}
        return self.outcome(overlaps, self.over, measurements)

    def overlaps(self, name: str, measurements: Sequence[Measurements]) -> Overlaps:
        """Pixels of all images and classes, [images classes] each, of what was measured by that ending."""
        return Overlaps.joined([Overlaps.of(table) for table in self.tables(name, measurements)])

    def tables(self, name: str, measurements: Sequence[Measurements]) -> Iterator[Integers]:
        """Confusion matrices of the images of each group, [images classes classes], group by group."""
        return tables_of(self.source.groups, measurements, f"pixels{name}", self.memory.classes)
