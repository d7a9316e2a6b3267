"""A run from Python, and what the command line shares with it."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import torch

from benchmark.engines.progress import Reporter, Silent
from benchmark.jobs.job import Failure
from benchmark.jobs.run import RunResult, execute
from benchmark.plan.backbones import at_size, introduce
from benchmark.plan.datasets import Binder, Bound, DataLocation
from benchmark.plan.plan import Plan, make_plan
from benchmark.plan.suites import MINI, STANDARD, Suite, find_suite
from benchmark.request import Dtype, RunConfig, default_cache, parse_interpolation, parse_taps
from leaderboards.pages.build import write_pages
from leaderboards.records.record import of_suite, read_records
from tasks.mini import MINI_VERSION, is_complete, write_mini_datasets
from tasks.protocols import find_protocol
from tasks.registry import find_tasks
from zoo.errors import InputError
from zoo.registry import find
from zoo.spec import BackboneSpec, CheckpointFormat, Interpolation


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What to run.

    Attributes:
        config: How to run it.
        suite: Name of the suite; chosen by ``data`` if None.
        backbones: Names, patterns, Hub ids, directories or Python functions; the suite's if empty.
        tasks: Names of tasks; all that the data allows if empty.
        data: Folder of the real datasets; the mini suite's rendered data if None.
        images: The user's own images: a folder of class folders, or ``hf:`` and a dataset.
        limit: Smaller data, for trying things out.
        floor: Whether the random floor is run, too.
        protocol: Name of the protocol; the suite's if None.
        weights: Files or directories that replace the repositories of backbones, by name.
        input_size: Side in pixels of the images that all backbones are shown; their own if None.
        interpolation: Rule for their position embeddings, where they have absolute ones.
    """

    config: RunConfig
    suite: str | None = None
    backbones: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    data: Path | None = None
    images: str | None = None
    limit: int | None = None
    floor: bool = True
    protocol: str | None = None
    weights: Mapping[str, Path] = field(default_factory=dict)
    input_size: int | None = None
    interpolation: Interpolation = "huggingface"


@dataclass(frozen=True)
class RunSummary:
    """What came of a request."""

    plan: Plan
    bound: Bound
    result: RunResult
    records: pd.DataFrame
    pages: tuple[Path, ...]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What failed, data that could not be read first."""
        broken = tuple(Failure("data", one.task, one.reason, bad_input=True) for one in self.bound.broken)
        return (*broken, *self.result.failures)


def run(
    backbones: Sequence[str] = (),
    tasks: Sequence[str] = (),
    *,
    suite: str | None = None,
    data: str | Path | None = None,
    images: str | None = None,
    output: str | Path = "results",
    cache: str | Path | None = None,
    device: str = "auto",
    dtype: Dtype = "float32",
    batch_size: int = 64,
    workers: int | None = None,
    layers: str = "all",
    taps: Sequence[str] = ("block",),
    input_size: int | None = None,
    interpolation: str = "huggingface",
    limit: int | None = None,
    floor: bool = True,
    protocol: str | None = None,
    weights: Mapping[str, str | Path] | None = None,
) -> pd.DataFrame:
    """Run backbones through tasks and give the records of this output folder's suite.

    Arguments mean what the options of ``python -m benchmark run`` of the same names do. Work that is done
    already is not done again.

    Returns:
        One row a number, with the columns of ``leaderboards.records.record.Record``. Failures of single
        backbones or tasks do not raise; they are sentences in ``frame.attrs["failures"]``.

    Raises:
        InputError: Something that was given is wrong.

    Example:
        >>> import benchmark
        >>> records = benchmark.run(["mini-dino"], ["knn"], output="results")  # doctest: +SKIP
    """
    config = RunConfig(
        output=Path(output),
        cache=Path(cache) if cache else default_cache(),
        device=device,
        dtype=dtype,
        batch_size=batch_size,
        workers=workers or default_workers(),
        layers=layers,
        taps=parse_taps(taps),
    )
    request = RunRequest(
        config=config,
        suite=suite,
        backbones=tuple(backbones),
        tasks=tuple(tasks),
        data=Path(data) if data else None,
        images=images,
        limit=limit,
        floor=floor,
        protocol=protocol,
        weights={name: Path(path) for name, path in (weights or {}).items()},
        input_size=input_size,
        interpolation=parse_interpolation(interpolation),
    )
    summary = carry_out(request, Silent())
    frame = summary.records
    frame.attrs["failures"] = [str(failure) for failure in summary.failures]
    return frame


def default_workers() -> int:
    """Threads for decoding and scoring: the processors that this process may use, at most 16."""
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def carry_out(request: RunRequest, report: Reporter) -> RunSummary:
    """Find, plan, run, and write the pages; raises InputError before any work where the request is wrong."""
    suite = choose_suite(request)
    protocol = find_protocol(request.protocol or suite.protocol)
    tasks = find_tasks(request.tasks)
    device = find_device(request.config.device)
    for folder, what in ((request.config.output, "--output"), (request.config.cache, "--cache")):
        require_writable(folder, what)
    specs = find_backbones(request, suite)
    introduce(specs, request.input_size, report, request.config.cache)
    data = request.data
    if data is None and request.images is None:
        data = mini_data(request.config, report)
    elif data is not None and not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    location = DataLocation(suite.catalogue, data, request.images, request.limit, protocol)
    bound = Binder(location).bind(tasks, named=bool(request.tasks))
    plan = make_plan(specs, bound.tasks)
    name = suite.name if request.images is None else f"images-{bound.tasks[0].dataset}"
    result = execute(plan, name, request.config, device, report)
    records = _records(request.config.output, name)
    output = request.config.output
    pages = tuple(write_pages(records, output / "tables", output / "items")) if len(records) else ()
    return RunSummary(plan, bound, result, records, pages)


def _records(output: Path, suite: str) -> pd.DataFrame:
    if not any((output / "records").rglob("*.parquet")):  # every backbone failed; the failures say why
        return pd.DataFrame()
    records = read_records([output / "records"])
    return of_suite(records, suite)


def choose_suite(request: RunRequest) -> Suite:
    """The suite that was named, or the one that fits the data."""
    if request.data is not None and request.images is not None:
        raise InputError("--data and --images exclude each other: the one replaces the other")
    real = request.data is not None or request.images is not None
    suite = find_suite(request.suite) if request.suite else (STANDARD if real else MINI)
    if suite.embedded and real:
        raise InputError(
            f"the suite {suite.name!r} brings its own data; leave --suite out to use --data or --images"
        )
    if not suite.embedded and not real:
        raise InputError(f"the suite {suite.name!r} needs the real datasets; give --data DIR")
    return suite


def find_backbones(request: RunRequest, suite: Suite) -> tuple[BackboneSpec, ...]:
    """The backbones asked for, and the random floor of their input size."""
    specs = find(request.backbones or suite.backbones, cache_dir=request.config.cache)
    specs = tuple(with_weights(specs, request.weights))
    if request.floor and not any(spec.is_floor for spec in specs):
        small = all(spec.input_size == 64 for spec in specs)
        specs = (*specs, *find(["mini-random" if small else "random"]))
    return at_size(specs, request.input_size, request.interpolation)


def with_weights(specs: Sequence[BackboneSpec], weights: Mapping[str, Path]) -> list[BackboneSpec]:
    """Backbones whose files are replaced; raises InputError for a name or a path that is not there."""
    names = [spec.name for spec in specs]
    for name, path in weights.items():
        if name not in names:
            raise InputError(f"--weights names {name!r}, which is not run; it runs {', '.join(names)}")
        if not path.exists():
            raise InputError(f"expected the weights of {name} at {path}, which does not exist")
    return [_with_weights(spec, weights.get(spec.name)) for spec in specs]


def _with_weights(spec: BackboneSpec, path: Path | None) -> BackboneSpec:
    """A backbone with files of its own: a directory in Hugging Face format, or a file of the authors."""
    if path is None:
        return spec
    if spec.is_floor or spec.checkpoint == "object":
        raise InputError(f"--weights names {spec.name!r}, whose features come from no file")
    checkpoint: CheckpointFormat = "original" if path.is_file() else "transformers"
    return replace(spec, repository=str(path), revision=None, checkpoint=checkpoint, trained=True)


def find_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"there is no device {name!r}; expected auto, cpu, cuda or cuda:N") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device {name!r} is not supported; expected auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise InputError(f"device {name!r} is not there: this machine has {count} CUDA devices")
    return device


def require_writable(folder: Path, option: str) -> None:
    """Raise InputError unless files can be written into a folder, which is made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{option} {folder} cannot be written to: {error.strerror}") from error


def mini_data(config: RunConfig, report: Reporter) -> Path:
    """The mini suite's datasets in the cache, rendered there first if they are not."""
    root = config.cache / "mini-data" / MINI_VERSION
    if not is_complete(root):
        with report.bar("rendering the mini datasets", 1, "parts") as advance:
            done = 0

            def progress(count: int, total: int) -> None:
                nonlocal done
                advance((count - done) / total)
                done = count

            write_mini_datasets(root, workers=config.workers, progress=progress)
    return root
