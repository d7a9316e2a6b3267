"""The plan: the fewest passes that show every task what it needs."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations, islice
from typing import Any

from layerboard.benchmark.plan.datasets import PlannedTasks, plan_tasks
from layerboard.benchmark.plan.location import DataLocation
from layerboard.tasks.framework.base import Source, digest
from layerboard.tasks.framework.sources import ANY_SIZE
from layerboard.tasks.framework.task import Task
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.geometry import Box, ViewSize
from layerboard.zoo.view.views import Tiles, View, WholeFrame, fast_resized, view_size

TRIED = 10  # images of a source that are opened to find one that can be read
_Cropped = tuple[tuple[int, int], Box | None]  # width and height of an image, and the box that is shown of it
VECTORS = "vectors"  # listener that stores the vectors of a pass; others are named after the task they feed


@dataclass(frozen=True)
class Pass:
    """One source, shown once to a backbone for every task that uses it."""

    source: Source
    vectors: tuple[Task, ...]  # tasks that use vectors of its images
    measured: tuple[Task, ...]  # tasks that are fed during the pass

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks that use the source."""
        return tuple(dict.fromkeys((*self.vectors, *self.measured)))

    def needing(self, listener: str) -> tuple[Task, ...]:
        """Tasks that need what a listener stores: `VECTORS`, or that of a fed task."""
        measured = tuple(task for task in self.measured if task.listener == listener)
        return self.vectors if listener == VECTORS else measured

    def serving(self, keys: Collection[str]) -> "Pass":
        """The pass for the tasks with those keys alone."""
        vectors = tuple(task for task in self.vectors if task.key in keys)
        return Pass(self.source, vectors, tuple(task for task in self.measured if task.key in keys))


@dataclass(frozen=True)
class Plan:
    """A run: its backbones, the passes of each, and the tasks that these serve.

    It holds all images of all datasets. Pickled, it is what it was made from: another process reads the
    datasets itself, once, however many jobs it is given.
    """

    backbones: tuple[BackboneSpec, ...]  # in order
    location: DataLocation
    tasks: PlannedTasks
    made_from: tuple[Any, ...] = field(repr=False, compare=False)  # arguments of `make_plan`
    _signatures: dict[object, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    # size and box of an image of each source
    _first: dict[object, _Cropped | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """Passes of each backbone."""
        return fewest_passes(self.tasks.every)

    @property
    def images(self) -> int:
        """Images through each backbone if nothing is stored yet."""
        asked = (source for task in self.tasks.needing("backbone") for source in task.sources)
        return sum(len(source.samples) for source in (*(each.source for each in self.passes), *asked))

    def signature(self, source: Source) -> str:
        """Digest of the images of a source: keys, file sizes and times; raises InputError for a lost file."""
        if source.key not in self._signatures:
            groups = [(each.key, [sample.signature() for sample in each.samples]) for each in source.groups]
            self._signatures[source.key] = digest(source.name, groups)
        return self._signatures[source.key]

    def size_shown(self, task: Task, spec: BackboneSpec) -> ViewSize | None:
        """How large a backbone is shown the first readable image that a task scores; None without any.

        Of a task on vectors these are the images of its first source, such as the database of a retrieval.
        """
        if not task.sources:
            return None
        source = task.sources[0 if task.vector_sources else -1]
        if source.key not in self._first:
            self._first[source.key] = None  # if none can be read
            for sample in islice(source.samples, TRIED):
                with suppress(InputError):
                    self._first[source.key] = sample.open().size, sample.box
                    break
        first = self._first[source.key]
        return first and view_size(view_for(spec, source.view), *first)

    def __reduce__(self) -> tuple[Callable[..., "Plan"], tuple[Any, ...]]:
        return _made_again, self.made_from


def view_for(spec: BackboneSpec, view: View) -> View:
    """A view for a backbone: at its input size, and with its resizing.

    Whole frames come in tiles if it takes images of one size only.
    """
    scaled = view.scaled(spec.input_size, spec.patch_size)
    if spec.fixed_size and isinstance(scaled, WholeFrame):
        scaled = Tiles(max(scaled.short, spec.input_size), spec.input_size, spec.patch_size)
    return fast_resized(scaled) if spec.fast_resize else scaled


def shown_alike(plan: Plan) -> Iterator[str]:
    """Tasks whose protocol fixes the image size whatever the backbone's, if there are several sizes."""
    several = {(spec.entry, spec.input_size): spec for spec in plan.backbones}.values()
    pairs = [(spec, other) for spec, other in combinations(several, 2) if spec.entry == other.entry]
    names = [
        f"{task.entry.name} ({task.protocol})"
        for task in plan.tasks.every
        if pairs
        and task.sources
        and all(
            view_for(spec, source.view) == view_for(other, source.view)
            for spec, other in pairs
            for source in task.sources
        )
    ]
    for name in dict.fromkeys(names):
        yield f"{name}: images are shown alike at every input size, so its scores are the same"


def patch_tokens(spec: BackboneSpec, view: View, layer: Layer) -> int:
    """Number of patch tokens of a layer, in a view that shows all images at one size."""
    width, height = view_for(spec, view).geometry(ANY_SIZE).size
    stride = spec.stage_of(layer).stride
    return (width // stride) * (height // stride)


def make_plan(
    backbones: tuple[BackboneSpec, ...],
    names: tuple[str, ...],
    location: DataLocation,
    transforms: tuple[str, ...] = (),
    sets: tuple[str, ...] = (),
    compressions: tuple[str, ...] = (),
) -> Plan:
    """Read the datasets and group the tasks by the sources that they use.

    ``names`` are those of the requested tasks, of the default ones if empty. They are also run with each
    transform and each compression of their vectors, and on sets of layers. Raises InputError for an unknown
    task, for one without data or outside the protocol, and without any task.
    """
    formats = {(spec.dtype, spec.fast_resize) for spec in backbones if not spec.is_floor}
    tasks = plan_tasks(location, names, drift=len(formats) > 1)
    plain = list(tasks.every)
    for name in transforms:
        tasks.add_transformed("--transform", name, plain)
    if sets:  # also transformed tasks
        option = f"--fuse {','.join(sets)}"
        tasks.add(option, option, [task.with_sets(sets) for task in tasks.every])
    for name in compressions:
        tasks.add_transformed("--compress", name, plain)
    return Plan(backbones, location, tasks, (backbones, names, location, transforms, sets, compressions))


@lru_cache(maxsize=1)
def _made_again(*made_from: Any) -> Plan:  # noqa: ANN401  # the arguments of `make_plan`
    """The plan, in a process that received it."""
    return make_plan(*made_from)


def fewest_passes(tasks: Sequence[Task]) -> tuple[Pass, ...]:
    """One pass per source, that is per name and view; raises ValueError if their images differ."""
    sources: dict[tuple[str, View], Source] = {}
    vectors: dict[tuple[str, View], list[Task]] = defaultdict(list)
    measured: dict[tuple[str, View], list[Task]] = defaultdict(list)
    for task in tasks:
        looks = [(source, vectors) for source in task.vector_sources]
        for source, takers in (*looks, *((fed.source, measured) for fed in task.measured)):
            known = sources.setdefault(source.key, source)
            if known is not source and known != source:
                raise ValueError(
                    f"two tasks mean different images by the source {source.name!r} in the same view"
                )
            takers[source.key].append(task)
    return tuple(Pass(source, tuple(vectors[key]), tuple(measured[key])) for key, source in sources.items())
