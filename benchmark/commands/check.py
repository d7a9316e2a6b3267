"""Whether data, or libraries and machine, are as they should be: `check` and `layerboard.check`."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import public
from layerboard.benchmark.commands.result import Files, Result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import OnePath, Option, Plain, Words
from layerboard.benchmark.forms.request import DataOptions, DeviceOptions
from layerboard.zoo.errors import InputError, ensure, first_line, some
from layerboard.zoo.libraries import OURS

if TYPE_CHECKING:
    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.tasks.datasets.base import Data, Sample
    from layerboard.tasks.datasets.catalogue import Inspection
    from layerboard.zoo.spec import BackboneSpec

EXTRAS = ("heic", "timm", "onnx", "video", "ray")
LEAST_DISK = 2**30  # free bytes that a small run may need
SOUND = "Nothing is wrong with versions, devices and cache; of the libraries only torch was imported."
SAMPLE = 5000  # images decoded per dataset, evenly spread, without --all
REFUSED = "refused"  # state of weights that are not what their name says
UNCOUNTED = (
    "Near-duplicates are not counted yet: layerboard run --images DIR -o {output} counts those of "
    "images without groups, by the vectors of a backbone, and writes the pairs."
)


class CheckRequest(DeviceOptions, DataOptions):
    """Options of `check`: the data to look at."""

    all: Plain[bool] = Option(False, f"Decode every image instead of at most {SAMPLE:,} per dataset.")
    weights: Words = Option(
        (),
        "Check whether weights are the published ones and give the features of their stored fingerprint: "
        "names or patterns of the registry, or NAME=PATH for a file or directory.",
        panel="Backbones",
    )
    output: OnePath = Option(
        "results",
        "With --images: output folder of a run, which has the pairs of near-duplicates; with --weights: of "
        "new fingerprints.",
        also="-o",
    )


@public("check", CheckRequest)
def check(request: CheckRequest) -> Files:
    """Check data, or the libraries and the machine, before a run.

    It shows which datasets are complete, partial, missing or damaged; for your own images, which classes and
    splits were found and which files are skipped. Images are decoded, of a large dataset a sample; `--all`
    decodes every image. Each unreadable one is listed.

    Without options, it says which versions of torch, transformers, faiss and all other libraries are there
    and needed, which devices torch sees, and how much disk is free for the cache. Exit code 1 if something is
    wrong, else 0.

    A run with `--images` counts near-duplicates by the vectors of a backbone, and writes their pairs to
    OUTPUT/near-duplicate-pairs.csv, those across splits first. No image is changed or deleted.

    With `--weights`, it says of each backbone whether its file has the published size and SHA-256, and
    whether a few drawn images get the features that its fingerprint has: not so with another file, mean,
    standard deviation, size, activation or interpolation. A fingerprint that nobody has stored yet is written
    to OUTPUT/fingerprints, to be added to the registry.

    Examples:
    - `layerboard check`
    - `layerboard check --images MY_FOLDER --labels labels.csv`
    - `layerboard check --images MY_FOLDER -o results`
    - `layerboard check --weights dinov2-s14`

    Returns:
        ``frame`` has one row per dataset: its name, its state and what was found. Without options it has one
        row per part of the machine: what, a sentence, and whether it is wrong. With ``weights`` it has one
        row per backbone: its state, ``same``, ``new``, ``unknown`` or ``refused``, and a sentence. ``parts``
        are the unreadable images of each dataset that has some, with their reasons. ``paths`` has the table
        of the near-duplicates that runs have counted, if there are some.

    Example:
        >>> import layerboard
        >>> layerboard.check(images="photos").frame["state"].tolist()
        ['complete']
    """
    import pandas as pd

    from layerboard.benchmark.engines.progress import Terminal
    from layerboard.tasks.datasets.catalogue import State
    from layerboard.tasks.datasets.facts import BLANK

    if request == CheckRequest():
        every = [*diagnoses()]
        wrong = sum(each.wrong for each in every)
        lines = (*map(str, every), f"{wrong} wrong" if wrong else SOUND)
        frame = pd.DataFrame(map(asdict, every))
        return Files(title="Libraries and machine", frame=frame, lines=lines, status=min(wrong, 1))
    if request.weights:
        if request.data or request.images:
            raise InputError("--weights checks backbones; leave --data and --images out")
        rows = [_checked_weights(spec, request) for spec in _backbones(request.weights, request.cache)]
        frame = pd.DataFrame(rows, columns=["backbone", "state", "what was found"])
        refused = bool((frame["state"] == REFUSED).any())
        return Files(title="Weights", frame=frame, table=frame, status=int(refused))
    report = Terminal()
    opened = [_opened(each, report, every=request.all) for each in _inspected(request)]
    inspections = [inspection for inspection, _ in opened]
    states = {each.state for each in inspections}
    frame = pd.DataFrame(
        [(each.name, each.state.value, each.text) for each in inspections],
        columns=["dataset", "state", "what is there"],
    )
    unreadable = [
        (f"Unreadable images of {inspection.name}", pd.DataFrame(broken, columns=["file", "reason"]))
        for inspection, broken in opened
        if broken
    ]
    data = [each.data for each in inspections if each.data is not None]
    note, paths = _near_duplicates(request.output, data) if request.images and data else ("", ())
    notes = [note] if note else []
    said = (note for each in data for note in each.coverage.notes)
    notes += [f"{note}." for note in said if BLANK in note]
    return Files(
        title="What is there",
        frame=frame,
        table=frame,
        notes=tuple(notes),
        paths=paths,
        status=2 if State.BROKEN in states or not states & {State.COMPLETE, State.PARTIAL} else 0,
        parts=tuple(Result(title=title, frame=rows, table=rows) for title, rows in unreadable),
    )


def _backbones(named: Sequence[str], cache: Path) -> "list[BackboneSpec]":
    """The backbones of names, patterns and NAME=PATH, without the floors."""
    from layerboard.benchmark.plan.backbones import with_weights
    from layerboard.zoo.registry.find import find

    specs: list[BackboneSpec] = []
    for text in named:
        name, equals, path = text.partition("=")
        meant = [spec for spec in find([name], cache) if not spec.is_floor]
        specs += with_weights(meant, {name: Path(path).expanduser()}) if equals else meant
    ensure(specs, f"--weights names no backbone with weights: {some(named)}")
    return specs


def _checked_weights(spec: "BackboneSpec", request: CheckRequest) -> tuple[str, str, str]:
    """Name of a backbone, the state of its weights, and why, as a sentence."""
    from layerboard.benchmark.engines.choose import find_device
    from layerboard.zoo.load.backbone import load_backbone
    from layerboard.zoo.load.feature_fingerprint import (
        feature_fingerprint,
        require_same_features,
        stored_fingerprint,
    )

    path = request.output / "fingerprints" / f"{spec.entry}.json"
    try:
        backbone = load_backbone(spec, device=find_device(request.device), cache_dir=request.cache)
        now, stored = feature_fingerprint(backbone), stored_fingerprint(spec.entry)
        if stored is not None:
            require_same_features(now, stored)
    except InputError as error:
        return spec.name, REFUSED, str(error)
    weights = f"SHA-256 {now.sha256}"
    if stored is not None:
        return spec.name, "same", f"{weights}, features as in its fingerprint"
    if Path(spec.repository).exists() and not spec.original:
        return (spec.name, "unknown", f"{weights}, your own; there is no fingerprint to compare them with")
    now.write(path)
    return spec.name, "new", f"{weights}; nobody has stored a fingerprint of its features yet: wrote {path}"


def _inspected(request: CheckRequest) -> "list[Inspection]":
    """Inspections of the named data, or of every official dataset where none is named."""
    from layerboard.benchmark.plan.location import data_folder
    from layerboard.benchmark.plan.suites import require_fitting
    from layerboard.tasks.datasets.catalogue import DATASETS, State, inspect, inspect_images, require_datasets
    from layerboard.tasks.datasets.reading.labels import Labelling

    data = request.data
    labelling = Labelling(request.labels, request.groups, request.target)
    require_fitting(data, request.images, labelling)
    if request.images:
        return [inspect_images(location, labelling, request.cache) for location in request.images]
    if data is None:
        raise InputError("nothing to check; give --data DIR, or --images DIR for your own images")
    root = data_folder(data)
    inspections = [inspect(root, entry) for entry in DATASETS]
    if all(each.state is State.MISSING for each in inspections):
        require_datasets(root)
    return inspections


def _opened(
    inspection: "Inspection", report: "Reporter", *, every: bool
) -> "tuple[Inspection, list[tuple[str, str]]]":
    """The inspection, extended by whether images can be decoded; name and reason of each that cannot."""
    from layerboard.tasks.datasets.base import images_of
    from layerboard.tasks.datasets.catalogue import State

    if not (images := [*images_of(inspection.data)]):
        return inspection, []
    chosen = images if every else images[:: -(-len(images) // SAMPLE)]
    title = f"{inspection.name}  opening"
    reasons = []
    with ThreadPool(os.cpu_count()) as pool, report.bar(title, len(chosen), "images") as advance:
        for reason in pool.imap(_unreadable, chosen, chunksize=8):
            reasons.append(reason)
            advance(1)
    broken = [(image.key, reason) for image, reason in zip(chosen, reasons, strict=True) if reason]
    text = f"{inspection.text}; {len(chosen) - len(broken):,} of {len(images):,} images opened"
    if not broken:
        return inspection._replace(text=text), []
    state = State.BROKEN if len(broken) == len(chosen) else State.PARTIAL
    text = f"{text}, {len(broken):,} unreadable ({some(name for name, _ in broken)})"
    return inspection._replace(state=state, text=text), broken


def _near_duplicates(output: Path, data: "Sequence[Data]") -> tuple[str, tuple[Path, ...]]:
    """What runs into a folder have counted among the user's datasets, and the file of the pairs."""
    from layerboard.leaderboards.board.near_duplicates import read_near_duplicates
    from layerboard.leaderboards.records.files import NEAR_DUPLICATE_PAIRS
    from layerboard.leaderboards.records.record import recorded_name
    from layerboard.tasks.framework.identity import own_name

    counts, path = read_near_duplicates(output), output / NEAR_DUPLICATE_PAIRS
    names = (recorded_name(output, own_name(each)) for each in data)
    known = [counts[name] for name in names if name in counts]
    if known and not any(each.share for each in known):
        return "A run found no near-duplicates among these images.", ()
    if not known:
        return UNCOUNTED.format(output=output), ()
    if path.is_file():
        return f"Pairs of near-duplicates, as runs have counted them, are in {path}.", (path,)
    others = "a run of the same images into another folder has them"
    return f"The pairs of near-duplicates are not in {path}; {others}.", ()


def _unreadable(image: "Sample") -> str:
    """Why an image cannot be decoded; "" where it can be."""
    try:
        image.open()
    except InputError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Diagnosis:
    """What was looked at, a sentence about it, and whether something is wrong with it."""

    what: str
    sentence: str
    wrong: bool = False

    def __str__(self) -> str:
        return f"{'WRONG' if self.wrong else 'ok':<5}  {self.what}: {self.sentence}"


def diagnoses() -> Iterator[Diagnosis]:
    """What was found of the libraries, the devices and the cache, part by part."""
    yield Diagnosis(OURS, f"{version(OURS)}, Python {sys.version.split()[0]} on {sys.platform}")
    yield from _libraries()
    try:
        import torch
    except Exception as error:
        yield Diagnosis("devices", f"torch cannot be imported ({first_line(error)})", wrong=True)
    else:
        built = f"torch is built for {f'CUDA {torch.version.cuda}' if torch.version.cuda else 'no CUDA'}"
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        yield Diagnosis("devices", f"{', '.join([f'{os.cpu_count()} CPU cores', *names])}; {built}")
    yield _cache()


def _libraries() -> Iterator[Diagnosis]:
    """Whether each library that this package or one of its extras needs is there, in a version that fits."""
    from packaging.requirements import Requirement

    # needed by none of ours; if it does not fit torch, it breaks transformers
    every = [*map(Requirement, requires(OURS) or ()), Requirement("torchvision; extra == 'timm'")]
    needed: dict[str, tuple[Requirement, str]] = {}
    for extra in ("", *EXTRAS):
        for each in every:
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                needed.setdefault(each.name, (each, extra))
    for name, (each, extra) in needed.items():
        install = f"pip install '{OURS}[{extra}]'" if extra else f"pip install '{name}{each.specifier}'"
        try:
            present = version(name)
        except PackageNotFoundError:
            yield Diagnosis(name, f"is not installed ({install})", wrong=not extra)
            continue
        fits = each.specifier.contains(present, prereleases=True)
        needs = f"{present} is installed, and {name}{each.specifier} is needed: {install}"
        yield Diagnosis(name, present if fits else needs, wrong=not fits)


def _cache() -> Diagnosis:
    """Whether the cache, or the nearest folder above it that exists, can be written and has room."""
    remedy = "give --cache DIR, or set LAYERBOARD_CACHE"
    try:
        folder = parsers.default_cache()
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except (OSError, InputError) as error:
        return Diagnosis("cache", f"it cannot be written ({first_line(error)}); {remedy}", wrong=True)
    few = free < LEAST_DISK
    return Diagnosis("cache", f"{folder}, {free / 1e9:,.1f} GB are free{f'; {remedy}' if few else ''}", few)
