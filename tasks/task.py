"""What a task is: its texts, its data, its numbers, and all that the plan and the scores ask of it.

A task asks a backbone for what it names (stored vectors, a feed of grids or attention, gradients, weights,
pairs of backbones, the device for itself) and turns it into outcomes. Nobody asks what class a task is of.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from layerboard.tasks.base import (
    Device,
    Feed,
    Findings,
    Group,
    LayerOutcome,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Source,
    digest,
)
from layerboard.tasks.checks import NOT_FINITE
from layerboard.tasks.datasets.base import Coverage, Sample
from layerboard.tasks.examples import Predicted
from layerboard.tasks.feeds import GridFeed
from layerboard.tasks.identity import DIGITS, identity
from layerboard.tasks.metrics.fused import side_by_side as unit_side_by_side
from layerboard.tasks.protocols import EvaluationProtocol
from layerboard.tasks.registry import TaskEntry, entry_of
from layerboard.tasks.sets import members_of, sets_of
from layerboard.tasks.stored import LayerMeasurements, StoredBackbone
from layerboard.tasks.transformed import STANDARD, Vectors, known_rows, transformed
from layerboard.tasks.transforms import BYTES, FLOAT32, compressed_bytes, is_compression, misfit, of_tokens
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.views import View

Needs = Literal["passes", "pairs", "backbone", "device"]
"""What scores of a task are made from: what the passes of one backbone stored, or those of two; a loaded
backbone, which is asked something; or one that is alone on the device."""

SINGLE_LAYERS = "asks about single layers"  # why tasks take no sets of layers
AS_THEY_ARE = "looks at features as they are"  # why they take no transform
ALL = "all"  # pooling of the average of all tokens, made of the stored vectors of class token and patches
PARALLEL_BYTES = 1 << 30  # layers are scored side by side while their vectors together stay below this

Piece = TypeVar("Piece")


class Measurable(ABC):
    """What is fed by a pass over one source, group by group: a task, or what one remembers."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides what is kept."""

    @property
    @abstractmethod
    def source(self) -> Source:
        """The images."""

    @property
    def feed(self) -> Feed[Any]:
        """What its measurers are fed; grids where nothing else is said."""
        return GridFeed()

    @abstractmethod
    def measure(self, group: Group, view: View) -> Measurer[Any]:
        """What measures a group that is shown through that view (already scaled to the backbone)."""

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        """What measures a group in sets of layers, too: it is fed each layer, and finishes each set."""
        return self.measure(group, view)


@dataclass(frozen=True, eq=False)
class Task(ABC):
    """A task on its data, by the numbers of a protocol."""

    data: Any  # as its role is read (`tasks.sources`, `tasks.datasets.base`); None for none
    config: Any = None  # the numbers that decide the scores
    _: KW_ONLY
    row: TaskEntry | None = None  # texts and needs; those of the registry's row of the class where None
    protocol: str = "standard"
    transform: str = ""  # what is done to features first (`tasks.transforms`); "" for nothing
    sets: tuple[str, ...] = ()  # sets of layers that are scored in place of layers (`tasks.sets`)

    configs: ClassVar[Mapping[str, Any]] = {"standard": None}  # its numbers by name of a protocol
    needs: ClassVar[Needs] = "passes"
    sets_refusal: ClassVar[str] = SINGLE_LAYERS  # why it takes no sets of layers, as a phrase; "" if it does
    keeps_examples: ClassVar[bool] = False  # whether it says what each layer predicts of a few things
    takes_shots: ClassVar[bool] = False  # whether it also learns from a few images (`with_shots`)
    scorer: ClassVar[str] = ""  # command of ``score`` that reads what `exported` gives; "" for none

    @classmethod
    def by(cls, protocol: EvaluationProtocol, data: Any, row: TaskEntry) -> "Task":  # noqa: ANN401
        """The task on data by a protocol's numbers."""
        config = dict(protocol.own).get(row.name) or protocol.choice(cls.configs)
        if protocol.shots and cls.takes_shots:
            config = cls.with_shots(config, protocol.shots)
        return cls(data, config, row=row, protocol=protocol.name)

    @classmethod
    def with_shots(cls, config: Any, shots: tuple[int, ...]) -> Any:  # noqa: ANN401
        """Its numbers with others of images to learn from, of a task that takes some."""
        raise NotImplementedError

    @cached_property
    def entry(self) -> TaskEntry:
        """What it is called, asks and measures."""
        return self.row or entry_of(type(self))

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return str(self.data.name)

    @property
    def split(self) -> str:
        """What was read of the dataset."""
        return str(self.data.split)

    @property
    def coverage(self) -> Coverage:
        """How complete the dataset is."""
        return self.data.coverage  # type: ignore[no-any-return]

    @property
    def key(self) -> str:
        """Name of the files that hold its results on this data; two tasks are the same if their keys are."""
        return f"{self.entry.name}.{self.dataset}.{self.protocol}{self.ending}"

    @property
    def listener(self) -> str:
        """Name of what listens to passes for it, which no other task has that looks at the same images."""
        by = "" if self.protocol == "standard" else f" ({self.protocol})"
        return f"{self.entry.name}{by}{self.ending}"

    @property
    def ending(self) -> str:
        """Ending of names of files, which tells transforms and sets: as `leaderboards` reads them."""
        parts = [self.transform.replace(":", "-"), "sets" if self.sets else ""]
        return "".join(f"+{part}" for part in parts if part)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides the scores: numbers, labels, ground truth."""

    @property
    def scored_fingerprint(self) -> str:
        """Digest of the task with what is done to features first."""
        return self.fingerprint

    @property
    def ground_truth(self) -> object:
        """What tells its ground truth from another on every machine, whatever is done to features first."""
        return self.fingerprint

    @cached_property
    def data_digest(self) -> str:
        """Short digest of what it looks at, the same on every machine and for every backbone."""
        return digest([identity(source) for source in self.sources], self.ground_truth)[:DIGITS]

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """Sources whose stored vectors it takes."""
        return ()

    @property
    def measured(self) -> tuple[Measurable, ...]:
        """What is fed by passes over sources, in the order that they must have: what it remembers first."""
        return ()

    @property
    def memory(self) -> Measurable | None:
        """What is measured before, on a source of its own and of the same layers; None for nothing."""
        return None

    @property
    def products(self) -> int:
        """Products of a channel that the scores of one layer and pooling take, roughly; 0 for few."""
        return 0

    @property
    def images_together(self) -> int:
        """Images of which it keeps something of every two; 1 where it looks at each alone."""
        return 1

    @property
    def remembered(self) -> int:
        """Cells of its memory that each cell of an image is compared with, at most."""
        return 0

    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources that it looks at, whoever shows them."""
        return self.vector_sources or tuple(each.source for each in self.measured)

    def scores_from(self, source: Source) -> bool:
        """Whether what a pass over a source leaves behind is what it scores, and not what it remembers."""
        return any(each.source.name == source.name for each in self.measured[-1:])

    def fed_by(self, source: Source) -> Measurable:
        """What is fed by the pass over a source."""
        return next(each for each in self.measured if each.source.name == source.name)

    def measured_layers(
        self, source: Source, layers: Sequence[Layer], spec: BackboneSpec
    ) -> tuple[Layer, ...]:
        """Layers of a backbone, or sets of them, of which the pass over a source leaves something behind."""
        if self.sets and self.scores_from(source):
            return self.scored(layers, spec)
        return self.fed_by(source).feed.layers(layers, spec)

    def remembering(self, measured: LayerMeasurements, failures: Mapping[Layer, str]) -> "Measurable":
        """The task as it is measured, once its memory was; only of tasks that have one.

        It is given what every group of the memory left behind for each layer, which is read from disk
        whenever it is asked for, and why other layers could not be measured.
        """
        raise NotImplementedError

    def scored(self, layers: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        """What of a backbone is scored where those layers are asked for: they, or the sets of them."""
        return sets_of(self.sets, spec.depth, layers) if self.sets else tuple(layers)

    @property
    def examples(self) -> "Task | None":
        """Itself, if it keeps what each layer predicts of a few things; of others the plain task keeps it."""
        return self if self.keeps_examples and not (self.transform or self.sets) else None

    def facts(self) -> Predicted:
        """What is so of its examples whatever a layer says: names, classes, true masks and points."""
        raise NotImplementedError

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        """The images that examples of layers are drawn with, by name in the arrays, the chief ones first."""
        raise NotImplementedError

    def transform_refusal(self, transform: str) -> str:
        """Why it does not take a transform, as a phrase; "" if it does."""
        return AS_THEY_ARE

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """The arrays of one layer and pooling that its `scorer` reads, without images that were not read."""
        raise NotImplementedError

    def concerns(self, spec: BackboneSpec) -> bool:
        """Whether it has something to do with a backbone; analyses, transforms and sets leave a floor out."""
        return not ((self.entry.analysis or self.transform or self.sets) and spec.is_floor)

    def results(self, backbone: Any) -> Findings:  # noqa: ANN401 - what it needs of one
        """What it says of one backbone (of `tasks.stored`, as it `needs` it); nothing of a comparison."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class VectorTask(Task):
    """A task that scores stored vectors of one layer after the other (k-NN, retrieval, image clustering).

    Vectors are, for each source name, [images dim] in the source's order; a row of an image that could not be
    read is NaN.
    """

    sets_refusal = ""
    all_tokens: ClassVar[bool] = False  # whether `ALL` is scored, too, where a backbone has a class token

    @abstractmethod
    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """The task's scores of the vectors of one layer and pooling."""

    def score_sets(
        self, layers: Mapping[Layer, Vectors], sets: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """The task's scores of each set of layers, by the mean of their cosines, from finite vectors."""

        def together(members: Sequence[Layer]) -> Vectors:
            vectors = [layers[member] for member in members]
            return {name: unit_side_by_side([each[name] for each in vectors]) for name in vectors[0]}

        return [self.score(together(each.members), device) for each in sets]

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Images that it knows before it is asked anything: transforms are fitted on them, or refused."""
        return ()

    @property
    def scored_fingerprint(self) -> str:
        if not self.transform:
            return self.fingerprint
        known = [source.name for source in self.fitted_on]
        version = 2 if is_compression(self.transform) else 1
        return digest("transformed", version, self.transform, STANDARD, known, self.fingerprint)

    def transform_refusal(self, transform: str) -> str:
        if not self.fitted_on:
            return "does not say which images a transform may be fitted on"
        alone = "acts on the tokens of grids, and the task takes one vector an image"
        return alone if of_tokens(transform) else ""

    def results(self, backbone: StoredBackbone) -> Findings:
        """Outcomes of every layer, or set of layers, and stored pooling, in that order."""
        stored = backbone.vectors.values()
        poolings = next(iter(stored)).poolings()
        if self.sets:
            sets = self.scored(backbone.layers, backbone.spec)
            scored = {pooling: self._of_sets(backbone, sets, pooling) for pooling in poolings}
            places = product(sets, poolings)
            return Findings(tuple(LayerOutcome(*key, scored[key[1]][key[0]]) for key in places))
        if self.all_tokens and {"cls", "mean"} <= {*poolings}:
            poolings = (*poolings, ALL)
        jobs = list(product(backbone.layers, poolings))
        size = sum(each.bytes(*jobs[0]) for each in stored) if jobs else 0

        def score(job: tuple[Layer, str]) -> LayerOutcome:
            vectors, missing = self._finite(backbone, *job), Outcome((), empty=NOT_FINITE)
            return LayerOutcome(*job, self._outcome(vectors, backbone.device) if vectors else missing)

        return Findings(tuple(side_by_side(score, jobs, backbone.workers, size)))

    def _outcome(self, vectors: Vectors, device: Device) -> Outcome:
        """Scores of stored vectors as the task takes them; of compressed ones with their `BYTES`, too."""
        if not is_compression(self.transform):
            return self.score(self.changed(vectors), device)
        images, dim = known_rows([vectors[source.name] for source in self.fitted_on]).shape
        if reason := misfit(self.transform, images, dim):
            return Outcome((), empty=reason)
        outcome = self.score(self.changed(vectors), device)
        sizes = compressed_bytes(self.transform, dim), FLOAT32 * dim
        scores = [Score(metric, size, 1, "vectors") for metric, size in zip(BYTES, sizes, strict=True)]
        return replace(outcome, scores=(*outcome.scores, *(scores if outcome.scores else ())))

    def changed(self, vectors: Vectors) -> Vectors:
        """The vectors of one layer and pooling as they are scored: transformed, where that is asked."""
        known = [source.name for source in self.fitted_on]
        return transformed(vectors, self.transform, known) if self.transform else vectors

    def _finite(self, backbone: StoredBackbone, layer: Layer, pooling: str) -> Vectors:
        """The stored vectors of a layer; none where those of a readable image are not finite."""
        vectors: dict[str, NDArray[np.float32]] = {}
        for name, stored in backbone.vectors.items():
            if pooling == ALL:
                patches = backbone.patch_tokens(self.vector_sources[0].view, layer)
                every = stored.read(layer, "cls") + patches * stored.read(layer, "mean")
                vectors[name] = every / np.float32(patches + 1)
            else:
                vectors[name] = stored.read(layer, pooling)
            if not np.isfinite(vectors[name][stored.shown]).all():
                return {}
        return vectors

    def _of_sets(self, backbone: StoredBackbone, sets: Sequence[Layer], pooling: str) -> dict[Layer, Outcome]:
        """Outcomes of all sets in one pooling; the vectors of all layers are in memory together."""
        layers = {layer: self._finite(backbone, layer, pooling) for layer in members_of(sets)}
        whole = [each for each in sets if all(layers[member] for member in each.members)]
        finite = {layer: self.changed(layers[layer]) for layer in members_of(whole)}
        outcomes = self.score_sets(finite, whole, backbone.device) if whole else []  # there may be no layer
        return dict.fromkeys(sets, Outcome((), empty=NOT_FINITE)) | dict(zip(whole, outcomes, strict=True))


@dataclass(frozen=True, eq=False)
class FedTask(Task, Measurable):
    """A task that is fed what a pass over its source shows, and leaves small arrays behind."""

    pooling: ClassVar[str] = "grid"  # what records call what it is fed, or the tokens that ask (patch, cls)
    transforms: ClassVar[bool] = False  # whether what it says of transformed tokens is worth having, too

    @property
    def measured(self) -> tuple[Measurable, ...]:
        return (self,) if self.memory is None else (self.memory, self)

    def transform_refusal(self, transform: str) -> str:
        if not (self.transforms and all(isinstance(each.feed, GridFeed) for each in self.measured)):
            return AS_THEY_ARE
        alone = "is fitted on vectors of many images before the first is scored, and grids are never kept"
        return "" if of_tokens(transform) else alone

    def _unmeasured(self, backbone: StoredBackbone) -> list[LayerOutcome]:
        """Empty outcomes of layers that could not be measured."""
        reasons = backbone.unmeasured.items()
        return [LayerOutcome(layer, self.pooling, Outcome((), empty=reason)) for layer, reason in reasons]


@dataclass(frozen=True, eq=False)
class MeasuredTask(FedTask):
    """A task that scores each layer by what its groups left behind (propagation, keypoints, regions)."""

    sets_refusal = "does not compare tokens by their cosine"
    transforms = True

    @abstractmethod
    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Scores of one layer from what its groups left behind, in the source's order."""

    @property
    def scored_fingerprint(self) -> str:
        return digest("sets of layers", 1, self.fingerprint) if self.sets else self.fingerprint

    def results(self, backbone: StoredBackbone) -> Findings:
        """Outcomes of every layer, or set of layers, from what its groups left behind."""
        unmeasured, measured = self._unmeasured(backbone), backbone.measured
        if measured is None:
            return Findings(tuple(unmeasured))

        def score(layer: Layer) -> LayerOutcome:
            return LayerOutcome(layer, self.pooling, self.score(measured[layer]))

        scored = side_by_side(score, list(measured), backbone.workers, measured.bytes)
        return Findings(tuple(sorted([*unmeasured, *scored], key=lambda outcome: outcome.layer.place)))


@dataclass(frozen=True, eq=False)
class AnalysisTask(FedTask):
    """An analysis, which says what it finds in all layers, poolings and heads, or in the whole backbone."""

    pooling = "patch"

    @abstractmethod
    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """What the groups say about one backbone, as `tasks.stored.LayerMeasurements` gives them."""

    def results(self, backbone: StoredBackbone) -> Findings:
        """What it finds, and why layers say nothing that could not be measured."""
        outcomes = self._unmeasured(backbone)
        arrays: Mapping[str, NDArray[np.generic]] = {}
        if backbone.measured:
            findings = self.findings(backbone.measured)
            outcomes, arrays = [*outcomes, *findings.outcomes], findings.arrays
        if self.transform:  # pages show what an analysis looks at by what it is called
            outcomes = [replace(each, pooling=f"{each.pooling}, {self.transform}") for each in outcomes]
        return Findings(tuple(outcomes), arrays)


def side_by_side(
    function: Callable[[Piece], LayerOutcome], jobs: list[Piece], workers: int, size: int
) -> list[LayerOutcome]:
    """Results in order; small jobs side by side, each on one core, large ones in turn on all cores."""
    together = max(1, min(workers, PARALLEL_BYTES // max(size, 1), len(jobs)))
    if together == 1:
        return [function(job) for job in jobs]
    with threadpool_limits(limits=1), ThreadPoolExecutor(together) as pool:
        return list(pool.map(function, jobs))
