"""Base classes of tasks: texts, data, config, and the interface that the plan and the scores use.

A task names what it needs of a backbone (stored vectors, a feed of grids or attention, gradients, weights,
pairs of backbones, the device for itself) and turns it into outcomes. No caller depends on the class of a
task.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from itertools import chain, product
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from layerboard.tasks.datasets.base import Coverage, DatasetEntry, Sample
from layerboard.tasks.framework.base import (
    Device,
    Feed,
    Findings,
    Group,
    LayerOutcome,
    Measurements,
    Outcome,
    PairFindings,
    Score,
    Source,
    digest,
)
from layerboard.tasks.framework.checks import NOT_FINITE
from layerboard.tasks.framework.examples import Predicted
from layerboard.tasks.framework.feeds import GridFeed
from layerboard.tasks.framework.identity import DIGITS, identity, is_own
from layerboard.tasks.framework.measurers import Measurer
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.framework.registry import TaskEntry, entry_of
from layerboard.tasks.framework.sets import is_possible, members_of, sets_of
from layerboard.tasks.framework.stored import LayerMeasurements, StoredBackbone
from layerboard.tasks.framework.transformed import (
    STANDARD,
    Vectors,
    fit_compression,
    known_rows,
    side_by_side,
)
from layerboard.tasks.framework.transforms import BYTES, FLOAT32, compressed_bytes, is_compression, misfit
from layerboard.tasks.metrics.arrays import in_range
from layerboard.zoo.spec import BackboneSpec, Layer, Layers
from layerboard.zoo.view.views import View

Needs = Literal["passes", "pairs", "backbone", "device"]
"""Input of a task's scores: the stored results of one backbone's passes, or of two backbones; a loaded
backbone; or a backbone that has the device for itself."""

SINGLE_LAYERS = "asks about single layers"  # reason why tasks take no sets of layers
AS_THEY_ARE = "looks at features as they are"  # reason why they take no transform
ALONE = Layer(0)  # stands for the layer whose vectors are scored, where it is not said
ALL = "all"  # pooling by the mean of all tokens, from the stored vectors of class token and patches
PARALLEL_BYTES = 1 << 30  # layers are scored in parallel while their vectors together are below this
# vectors of a layer for each thread beyond two: work on fewer is mostly Python, which runs one thread at once
BYTES_OF_A_THREAD = 1 << 20

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Measurable(ABC):
    """A task, or the memory of one, that measures the features of a pass over one source, group by group."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of everything except the features that determines the measurements."""

    @property
    @abstractmethod
    def source(self) -> Source:
        """The images."""

    @property
    def feed(self) -> Feed[Any]:
        """Feed of its measurers; grids by default."""
        return GridFeed()

    @abstractmethod
    def measure(self, group: Group, view: View) -> Measurer[Any]:
        """The measurer of a group with this view (already scaled to the backbone)."""


@dataclass(frozen=True, eq=False)
class Task(ABC):
    """A task on its data, with the config of a protocol."""

    data: Any  # data of its role (`tasks.sources`, `tasks.datasets.base`); None for none
    config: Any = None  # the settings that determine the scores
    _: KW_ONLY
    row: TaskEntry | None = None  # texts and requirements; None for the registry's entry of the class
    protocol: str = "standard"
    transform: str = ""  # transform of the features (`tasks.transforms`); "" for none
    sets: tuple[str, ...] = ()  # sets of layers that are scored instead of layers (`tasks.sets`)

    configs: ClassVar[Mapping[str, Any]] = {"standard": None}  # its configs by protocol name
    needs: ClassVar[Needs] = "passes"
    sets_refusal: ClassVar[str] = SINGLE_LAYERS  # reason why it takes no sets of layers; "" if it does
    keeps_examples: ClassVar[bool] = False  # whether it keeps each layer's predictions for examples
    takes_shots: ClassVar[bool] = False  # whether the number of training images can be set (`with_shots`)
    scorer: ClassVar[str] = ""  # command of ``score`` that reads the arrays of `exported`; "" for none

    @classmethod
    def reading(cls, entry: DatasetEntry[Any], protocol: EvaluationProtocol) -> DatasetEntry[Any]:
        """A dataset of its role as it is read for the task under a protocol; most tasks take it as it is."""
        del protocol
        return entry

    @classmethod
    def by(cls, protocol: EvaluationProtocol, data: Any, row: TaskEntry) -> "Task":  # noqa: ANN401
        """The task on ``data`` with a protocol's config."""
        config = protocol.config_for(cls.configs)
        if protocol.shots and cls.takes_shots:
            config = cls.with_shots(config, protocol.shots)
        return cls(data, config, row=row, protocol=protocol.name)

    @classmethod
    def with_shots(cls, config: Any, shots: tuple[int, ...]) -> Any:  # noqa: ANN401
        """The task's config with other numbers of shots, for a task that takes shots."""
        raise NotImplementedError

    @cached_property
    def entry(self) -> TaskEntry:
        """Name, texts and requirements of the task."""
        return self.row or entry_of(type(self))

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return str(self.data.name)

    @property
    def split(self) -> str:
        """Part of the dataset that was read."""
        return str(self.data.split)

    @property
    def coverage(self) -> Coverage:
        """Coverage of the dataset."""
        return self.data.coverage  # type: ignore[no-any-return]

    @property
    def key(self) -> str:
        """Name of its result files on this data; two tasks are the same if their keys are equal."""
        return f"{self.entry.name}.{self.dataset}.{self.protocol}{self.ending}"

    @property
    def listener(self) -> str:
        """Name under which it receives features from passes, unique among the tasks on the same images."""
        by = "" if self.protocol == "standard" else f" ({self.protocol})"
        return f"{self.entry.name}{by}{self.ending}"

    @property
    def ending(self) -> str:
        """Suffix of file names for the transform and sets, as `leaderboards` reads it."""
        parts = [self.transform.replace(":", "-"), "sets" if self.sets else ""]
        return "".join(f"+{part}" for part in parts if part)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of all that determines the scores except the features: config, labels, ground truth."""

    @property
    def scored_fingerprint(self) -> str:
        """Digest of the task, including the transform of the features."""
        return self.fingerprint

    @property
    def ground_truth(self) -> object:
        """Identity of its ground truth on every machine, independent of the transform."""
        return self.fingerprint

    @cached_property
    def data_digest(self) -> str:
        """Short digest of its images and ground truth, the same on every machine and for every backbone."""
        images = [identity(source) for source in self.sources]
        if all(is_own(source.samples) for source in self.sources):
            chosen = [getattr(self, name, None) for name in ("config", "split", "clusters")]
            truth = self.dataset.rpartition("-")[2]  # the name of own data ends with a digest of their truth
            return digest(sorted(images), chosen, truth)[:DIGITS]
        return digest(images, self.ground_truth)[:DIGITS]

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """Sources whose stored vectors it uses."""
        return ()

    @property
    def measured(self) -> tuple[Measurable, ...]:
        """The task's measurables, in the order in which their passes must run: the memory first."""
        return ()

    @property
    def memory(self) -> Measurable | None:
        """A memory that is measured first, on its own source and the same layers; None for none."""
        return None

    @property
    def products(self) -> int:
        """Approximate number of products per channel for the scores of one layer and pooling; 0 for few."""
        return 0

    @property
    def images_together(self) -> int:
        """Number of images of which it keeps a value for every pair; 1 if images are independent."""
        return 1

    @property
    def remembered(self) -> int:
        """Largest number of memory cells that each cell of an image is compared with."""
        return 0

    @property
    def sources(self) -> tuple[Source, ...]:
        """All sources that it uses."""
        return self.vector_sources or tuple(each.source for each in self.measured)

    def scores_from(self, source: Source) -> bool:
        """Whether the measurements of a pass over a source are scored; otherwise they are the memory."""
        return any(each.source.name == source.name for each in self.measured[-1:])

    def fed_by(self, source: Source) -> Measurable:
        """The measurable of the pass over a source."""
        return next(each for each in self.measured if each.source.name == source.name)

    def measured_layers(self, source: Source, layers: Sequence[Layer], spec: BackboneSpec) -> Layers:
        """Layers of a backbone, or sets of them, with measurements from the pass over a source."""
        if self.sets and self.scores_from(source):
            return self.scored(layers, spec)
        return self.fed_by(source).feed.layers(layers, spec)

    def remembering(self, measured: LayerMeasurements, failures: Mapping[Layer, str]) -> "Measurable":
        """The measurable after its memory was measured; only for tasks with a memory.

        ``measured`` has the measurements of every group of the memory for each layer, which are read from
        disk at every access; ``failures`` has the reasons why other layers could not be measured.
        """
        raise NotImplementedError

    def scored(self, layers: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        """What is scored if these layers of a backbone are requested: the layers, or the sets of them."""
        return sets_of(self.sets, spec.depth, layers) if self.sets else tuple(layers)

    def with_sets(self, names: tuple[str, ...]) -> "tuple[Task, str]":
        """Itself with the named sets of layers, and the reason why it takes none; "" if it does."""
        return replace(self, sets=names), self.sets_refusal

    def has_any(self, layers: Sequence[Layer], spec: BackboneSpec) -> bool:
        """Whether the task scores anything of these layers of a backbone: of sets, any is there."""
        return not self.sets or any(is_possible(name, spec.depth, layers) for name in self.sets)

    @property
    def examples(self) -> "Task | None":
        """Itself, if it keeps examples; of variants with a transform or sets, the plain task keeps them."""
        return self if self.keeps_examples and not (self.transform or self.sets) else None

    def facts(self) -> Predicted:
        """Facts about its examples that do not depend on a layer: names, classes, true masks and points."""
        raise NotImplementedError

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        """The images for drawing the examples, by name in the arrays, the main ones first."""
        raise NotImplementedError

    def transform_refusal(self, transform: str) -> str:
        """Reason why it does not take a transform, as a phrase; "" if it does."""
        return AS_THEY_ARE

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """The arrays of one layer and pooling that its `scorer` reads, without unreadable images."""
        raise NotImplementedError

    def concerns(self, spec: BackboneSpec) -> bool:
        """Whether the task runs on a backbone; analyses, transforms and sets leave floors out."""
        return not ((self.entry.analysis or self.transform or self.sets) and spec.is_floor)

    def results(self, backbone: Any) -> Findings:  # noqa: ANN401 - what it needs of one
        """Findings for one backbone (from `tasks.stored`, as it `needs` it); empty for a comparison."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class VectorTask(Task):
    """A task that scores stored vectors of layers, or of sets of them (k-NN, retrieval, image clustering).

    Vectors are [images dim] for each source name, in source order; the row of an unreadable image is NaN.
    """

    sets_refusal = ""
    all_tokens: ClassVar[bool] = False  # whether `ALL` is scored, too, if a backbone has a class token

    @abstractmethod
    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Scores of the vectors of one layer and pooling."""

    def score_together(
        self, vectors: Mapping[Layer, Vectors], layers: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """Scores of layers from the finite vectors of their members, side by side if there are several."""

        def together(members: Sequence[Layer]) -> Vectors:
            every = [vectors[member] for member in members]
            if len(every) == 1:
                return every[0]
            return {name: side_by_side([each[name] for each in every]) for name in every[0]}

        return [self.score(together(layer.members), device) for layer in layers]

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Sources that are known before any query: transforms are fitted on them; without any, refused."""
        return ()

    @property
    def scored_fingerprint(self) -> str:
        if not self.transform:
            return self.fingerprint
        known = [source.name for source in self.fitted_on]
        version = 3 if is_compression(self.transform) else 1
        return digest("transformed", version, self.transform, STANDARD, known, self.fingerprint)

    def transform_refusal(self, transform: str) -> str:
        if not self.fitted_on:
            return "does not say which images a transform may be fitted on"
        return ""

    def results(self, backbone: StoredBackbone) -> Findings:
        """Outcomes of every layer, or set of layers, and stored pooling, in that order."""
        stored = backbone.vectors.values()
        poolings = next(iter(stored)).poolings()
        layers = self.scored(backbone.layers, backbone.spec)
        if self.all_tokens and not self.sets and {"cls", "mean"} <= {*poolings}:
            poolings = (*poolings, ALL)
        # sets share members, so all are scored at once
        parts = [layers] if self.sets else [(layer,) for layer in layers]
        jobs, workers = list(product(parts, poolings)), 1 if self.sets else backbone.workers
        size = sum(each.bytes(backbone.layers[0], poolings[0]) for each in stored) if jobs else 0
        scored = map_in_parallel(lambda job: self._outcomes(backbone, *job), jobs, workers, size)
        return Findings(tuple(sorted(chain(*scored), key=lambda outcome: outcome.layer.place)))

    def _outcomes(self, backbone: StoredBackbone, layers: Layers, pooling: str) -> list[LayerOutcome]:
        """Outcomes of layers in one pooling; the vectors of all their members are in memory together."""
        vectors = {member: self._finite(backbone, member, pooling) for member in members_of(layers)}
        reasons = {member: self._unusable(each) for member, each in vectors.items()}
        empty = {layer: next(filter(None, map(reasons.get, layer.members)), "") for layer in layers}
        usable = [layer for layer, reason in empty.items() if not reason]
        known = {member: self.changed(vectors[member]) for member in members_of(usable)}
        scored = self.score_together(known, usable, backbone.device) if usable else []  # there may be none
        outcomes = {layer: Outcome((), empty=reason) for layer, reason in empty.items()}
        outcomes |= zip(usable, scored, strict=True)
        if is_compression(self.transform) and not self.sets:
            outcomes |= {layer: self._sized(outcomes[layer], vectors[layer]) for layer in usable}
        return [LayerOutcome(layer, pooling, outcome) for layer, outcome in outcomes.items()]

    def _unusable(self, vectors: Vectors) -> str:
        """Reason why the vectors of a layer, from `_finite`, cannot be changed and scored; "" if they can."""
        if not vectors or not is_compression(self.transform):
            return "" if vectors else NOT_FINITE
        return misfit(self.transform, *known_rows([vectors[source.name] for source in self.fitted_on]).shape)

    def _sized(self, outcome: Outcome, vectors: Vectors) -> Outcome:
        """Scores of compressed vectors, if there are any, with their `BYTES`."""
        dim = next(iter(vectors.values())).shape[1]
        sizes = compressed_bytes(self.transform, dim), FLOAT32 * dim
        scores = [Score(metric, size, 1, "vectors") for metric, size in zip(BYTES, sizes, strict=True)]
        return replace(outcome, scores=(*outcome.scores, *(scores if outcome.scores else ())))

    def changed(self, vectors: Vectors) -> Vectors:
        """The vectors of one layer and pooling as they are scored: after the transform, if there is one.

        It is applied to all sources, including those that it must not be fitted on.
        """
        if not self.transform:
            return vectors
        change = fit_compression(self.transform, [vectors[source.name] for source in self.fitted_on])
        return {name: change(each) for name, each in vectors.items()}

    def _finite(self, backbone: StoredBackbone, layer: Layer, pooling: str) -> Vectors:
        """The stored vectors of a layer, `in_range`; empty if those of a readable image are not finite."""
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
        return dict(zip(vectors, in_range([*vectors.values()]), strict=True))


@dataclass(frozen=True, eq=False)
class JointVectorTask(VectorTask):
    """A task that scores several layers at once: sets of layers share the products of their members."""

    @abstractmethod
    def score_together(
        self, vectors: Mapping[Layer, Vectors], layers: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """Scores of layers from the finite vectors of their members."""

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        (outcome,) = self.score_together({ALONE: vectors}, [ALONE], device)
        return outcome


@dataclass(frozen=True, eq=False)
class FedTask(Task, Measurable):
    """A task that measures the features of a pass over its source, and stores small arrays."""

    pooling: ClassVar[str] = "grid"  # pooling in records: ``grid``, or the query tokens (patch, cls)

    @property
    def measured(self) -> tuple[Measurable, ...]:
        return (self,) if self.memory is None else (self.memory, self)

    def _unmeasured(self, backbone: StoredBackbone) -> list[LayerOutcome]:
        """Empty outcomes for layers that could not be measured."""
        reasons = backbone.unmeasured.items()
        return [LayerOutcome(layer, self.pooling, Outcome((), empty=reason)) for layer, reason in reasons]


@dataclass(frozen=True, eq=False)
class MeasuredTask(FedTask):
    """A task that scores each layer from the measurements of its groups (propagation, keypoints, regions)."""

    sets_refusal = "does not compare tokens by their cosine"

    @abstractmethod
    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Scores of one layer from the measurements of its groups, in source order."""

    @property
    def scored_fingerprint(self) -> str:
        return digest("sets of layers", 1, self.fingerprint) if self.sets else self.fingerprint

    def results(self, backbone: StoredBackbone) -> Findings:
        """Outcomes of every layer, or set of layers, from the measurements of its groups."""
        unmeasured, measured = self._unmeasured(backbone), backbone.measured
        if measured is None:
            return Findings(tuple(unmeasured))

        def score(layer: Layer) -> LayerOutcome:
            return LayerOutcome(layer, self.pooling, self.score(measured[layer]))

        scored = map_in_parallel(score, list(measured), backbone.workers, measured.bytes)
        return Findings(tuple(sorted([*unmeasured, *scored], key=lambda outcome: outcome.layer.place)))


@dataclass(frozen=True, eq=False)
class AnalysisTask(FedTask):
    """An analysis, with findings for all layers, poolings and heads, or for the whole backbone."""

    pooling = "patch"

    @abstractmethod
    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """Findings for one backbone, from its measurements (`tasks.stored.LayerMeasurements`)."""

    def results(self, backbone: StoredBackbone) -> Findings:
        """The analysis's findings, with reasons for the layers that could not be measured."""
        outcomes = self._unmeasured(backbone)
        arrays: Mapping[str, NDArray[np.generic]] = {}
        if backbone.measured:
            findings = self.findings(backbone.measured)
            outcomes, arrays = [*outcomes, *findings.outcomes], findings.arrays
        return Findings(tuple(outcomes), arrays)


@dataclass(frozen=True, eq=False)
class ComparisonTask(Task):
    """A task that compares the layers of pairs of backbones, from stored vectors and measurements."""

    needs = "pairs"

    @property
    def source(self) -> Source:
        return self.data.probe  # type: ignore[no-any-return]

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        return (self.source,)

    @property
    @abstractmethod
    def poolings(self) -> tuple[str, ...]:
        """Poolings of the features, each compared separately."""

    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        """Whether the task compares these two backbones; the order does not matter."""
        return True

    @abstractmethod
    def compare(self, backbones: Sequence[StoredBackbone], pooling: str) -> Iterator[PairFindings]:
        """Results for all pairs of backbones (sorted by name) that it compares, in one pooling.

        Backbones without that pooling are left out.
        """


def map_in_parallel(
    function: Callable[[Piece], Result], jobs: list[Piece], workers: int, size: int
) -> list[Result]:
    """Results in order; small jobs run in parallel on one core each, large ones in turn on all cores."""
    useful = max(2, size // BYTES_OF_A_THREAD)
    together = max(1, min(workers, useful, PARALLEL_BYTES // max(size, 1), len(jobs)))
    if together == 1 and size >= BYTES_OF_A_THREAD:
        return [function(job) for job in jobs]
    libraries = ThreadpoolController()
    on_one_core = partial(libraries.limit, limits=1)  # OpenMP's limit is that of the thread that sets it
    with on_one_core(), ThreadPoolExecutor(together, initializer=on_one_core) as pool:
        return list(pool.map(function, jobs))
