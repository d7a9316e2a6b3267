"""Fingerprints of everything that stored features, measurements and records depend on. Pure functions."""

from pathlib import Path

from layerboard.benchmark.jobs.job import Setup
from layerboard.benchmark.plan.plan import VECTORS, view_for
from layerboard.leaderboards.records.files import safe_name
from layerboard.tasks.base import Source, digest
from layerboard.tasks.examples import VERSION as EXAMPLES
from layerboard.tasks.task import Task

FORMAT = 2  # raise it when stored features, measurements or scores change for the same input
SCORING = 6  # raise it when scores, intervals or ties change for the same features
DEBIAS = 1  # raise it when tokens without their position change for the same tokens


def vectors_print(setup: Setup, source: Source) -> str:
    """Fingerprint of the vectors of a source."""
    images, view = setup.plan.signature(source), view_for(setup.spec, source.view)
    further = (setup.request.taps,) if setup.request.taps != ("block",) and not setup.spec.is_floor else ()
    kept = setup.poolings, setup.request.store_dtype
    return digest(FORMAT, setup.identity.fingerprint, images, view, *kept, *further)


def measured_print(setup: Setup, task: Task, source: Source) -> str:
    """Fingerprint of the measurements of the groups of a source for a task."""
    layers = [str(layer) for layer in task.measured_layers(source, setup.layers, setup.spec)]
    further: tuple[object, ...] = () if task.examples is None else ("examples", EXAMPLES)
    scored = task.scores_from(source)
    if scored and task.memory is not None:
        further += (("remembered", setup.plan.signature(task.memory.source)),)
    if task.transform:
        further += (("transform", DEBIAS, task.transform),)
    numbers = task.scored_fingerprint if scored else task.fed_by(source).fingerprint
    view, images = view_for(setup.spec, source.view), setup.plan.signature(source)
    return digest(FORMAT, setup.identity.fingerprint, images, view, numbers, layers, *further)


def records_print(setup: Setup, task: Task) -> str:
    """Fingerprint of the records of a task: of its config, and of what the records are made from."""
    if task.needs == "device":
        size = setup.spec.input_size, setup.spec.interpolation
        return digest(FORMAT, setup.identity.fingerprint, size, task.fingerprint, task.dataset)
    if task.needs == "backbone":
        views = [(setup.plan.signature(source), view_for(setup.spec, source.view)) for source in task.sources]
        layers = [str(layer) for layer in setup.layers] if views else []
        return digest(FORMAT, SCORING, setup.identity.fingerprint, views, task.fingerprint, layers)
    passes = setup.plan.passes
    prints = [vectors_print(setup, each.source) for each in passes if task in each.vectors]
    prints += [measured_print(setup, task, each.source) for each in passes if task in each.measured]
    layers = [str(layer) for layer in task.scored(setup.layers, setup.spec)]
    examples = () if task.examples is None else ("examples", EXAMPLES, setup.keeps_examples)
    return digest(FORMAT, SCORING, prints, task.scored_fingerprint, layers, *examples)


def vectors_folder(setup: Setup, source: Source) -> Path:
    """Folder of the vectors of a source."""
    return _folder(setup, source, VECTORS, vectors_print(setup, source))


def measured_folder(setup: Setup, task: Task, source: Source) -> Path:
    """Folder of the measurements of the groups of a source for a task."""
    return _folder(setup, source, f"{task.entry.name}{task.ending}", measured_print(setup, task, source))


def _folder(setup: Setup, source: Source, listener: str, fingerprint: str) -> Path:
    """Folder that input sizes share: a view that is the same at two sizes is computed only for the first."""
    name = f"{safe_name(source.name)}.{listener}.{fingerprint[:16]}"
    return setup.request.cache / "features" / safe_name(setup.spec.entry) / name
