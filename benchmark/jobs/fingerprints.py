"""Fingerprints: what stored features, measurements and records depend on. Pure functions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.jobs.job import VECTORS, Setup
from benchmark.plan.plan import Pass, SourceKey, key_of, view_for
from leaderboards.records.files import safe_name
from tasks.base import Source, digest
from tasks.examples.draw import VERSION as EXAMPLES
from tasks.task import Task
from zoo.spec import Layer
from zoo.view.views import View

FORMAT = 2
"""Changes when stored features, measurements or scores would for the same input."""

SCORING = 3
"""Changes when scores, intervals or ties would for the same features."""

DEBIAS = 1
"""Changes when tokens without their position would for the same tokens."""

Signatures = Mapping[SourceKey, str]
"""Digest of the images of each source: keys, sizes and times of their files."""


def signature(source: Source) -> str:
    """Digest of a source's images: keys, sizes and times of their files.

    Raises:
        InputError: An image cannot be found.
    """
    groups = [(group.key, [sample.signature() for sample in group.samples]) for group in source.groups]
    return digest(source.name, groups)


def vectors_print(setup: Setup, images: str, view: View) -> str:
    """Fingerprint of a source's vectors.

    Args:
        setup: The backbone.
        images: Signature of the source.
        view: As the source has it.
    """
    request, shown = setup.request, view_for(setup.spec, view)
    facts: tuple[object, ...] = (
        FORMAT,
        setup.identity.fingerprint,
        images,
        shown,
        setup.poolings,
        request.store_dtype,
    )
    if request.taps != ("block",) and not setup.spec.is_floor:
        facts = (*facts, request.taps)
    return digest(*facts)


def measured_print(setup: Setup, task: Task, one: Pass, images: Signatures) -> str:
    """Fingerprint of what the groups of a task leave behind in a pass."""
    layers = [str(layer) for layer in measured_layers(setup, task, one.source)]
    shown = view_for(setup.spec, one.source.view)
    kept: tuple[object, ...] = () if task.examples is None else ("examples", EXAMPLES)
    fed = task.fed_by(one.source)
    scored = fed is None or task.scores_from(one.source)
    if scored and task.memory is not None:
        kept += (("remembered", images[key_of(task.memory.source)]),)
    if task.transform:
        kept += (("transform", DEBIAS, task.transform),)
    own = task.scored_fingerprint if fed is None or scored else fed.fingerprint
    return digest(FORMAT, setup.identity.fingerprint, images[one.key], shown, own, layers, *kept)


def measured_layers(setup: Setup, task: Task, source: Source | None = None) -> tuple[Layer, ...]:
    """Layers, or sets of them, of which a task's groups leave something behind; none where nothing does.

    Args:
        setup: The backbone.
        task: The task.
        source: Whose groups; None for those that are scored.
    """
    fed = next(iter(task.measured[-1:]), None) if source is None else task.fed_by(source)
    if fed is None:
        return ()
    if task.sets and task.scores_from(fed.source):
        return task.scored(setup.layers, setup.spec)
    return fed.feed.layers(setup.layers, setup.spec)


def records_print(setup: Setup, task: Task, passes: Sequence[Pass], images: Signatures) -> str:
    """Fingerprint of a task's records: its features, its numbers, its ground truth, the layers."""
    vectors = [one for one in passes if task in one.vectors]
    measured = [one for one in passes if task in one.measured]
    prints = [vectors_print(setup, images[one.key], one.source.view) for one in vectors]
    prints += [measured_print(setup, task, one, images) for one in measured]
    layers = [str(layer) for layer in task.scored(setup.layers, setup.spec)]
    kept = () if task.examples is None else ("examples", EXAMPLES, setup.keeps_examples)
    return digest(FORMAT, SCORING, prints, task.scored_fingerprint, layers, *kept)


def questions_print(setup: Setup, task: Task, images: Signatures) -> str:
    """Fingerprint of the records of a task that asks a backbone something without a pass."""
    shown = [(images[key_of(source)], view_for(setup.spec, source.view)) for source in task.sources]
    layers = [str(layer) for layer in setup.layers] if shown else []
    return digest(FORMAT, SCORING, setup.identity.fingerprint, shown, task.fingerprint, layers)


def cost_print(setup: Setup, task: Task) -> str:
    """Fingerprint of the records of what a backbone costs on the device that the task names."""
    shown = setup.spec.input_size, setup.spec.interpolation
    return digest(FORMAT, setup.identity.fingerprint, shown, task.fingerprint, task.dataset)


def vectors_folder(setup: Setup, one: Pass, images: Signatures) -> Path:
    """Folder of the vectors of a pass."""
    return _folder(setup, one, VECTORS, vectors_print(setup, images[one.key], one.source.view))


def measured_folder(setup: Setup, one: Pass, task: Task, images: Signatures) -> Path:
    """Folder of what the groups of a task leave behind in a pass."""
    fingerprint = measured_print(setup, task, one, images)
    name = f"{task.entry.name}{task.ending}"
    return _folder(setup, one, name, fingerprint)


def _folder(setup: Setup, one: Pass, listener: str, fingerprint: str) -> Path:
    """Input sizes share a folder: what a view shows alike at two of them is computed for the first alone."""
    name = f"{safe_name(one.source.name)}.{listener}.{fingerprint[:16]}"
    return setup.request.cache / "features" / safe_name(setup.spec.entry) / name
