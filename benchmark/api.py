"""A run, from a request to records and pages."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch

from benchmark.engines.progress import Reporter
from benchmark.jobs.job import Failure
from benchmark.jobs.run import RunResult, execute
from benchmark.plan.backbones import at_size, introduce
from benchmark.plan.datasets import Binder, Bound, DataLocation
from benchmark.plan.plan import Plan, make_plan
from benchmark.plan.suites import MINI, STANDARD, Suite, find_suite
from benchmark.request import Request
from leaderboards.pages.build import write_pages
from leaderboards.records.record import of_suite, read_records
from tasks.mini import MINI_VERSION, is_complete, write_mini_datasets
from tasks.protocols import find_protocol
from tasks.registry import find_tasks
from zoo.errors import InputError
from zoo.registry import find
from zoo.spec import BackboneSpec, CheckpointFormat


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


def carry_out(request: Request, report: Reporter) -> RunSummary:
    """Find, plan, run, and write the pages; raises InputError before any work where the request is wrong."""
    suite = choose_suite(request)
    protocol = find_protocol(request.protocol or suite.protocol)
    tasks = find_tasks(request.tasks)
    device = find_device(request.device)
    for folder, what in ((request.output, "--output"), (request.cache, "--cache")):
        require_writable(folder, what)
    specs = find_backbones(request, suite)
    introduce(specs, request.input_size, report, request.cache)
    data = request.data
    if data is None and request.images is None:
        data = mini_data(request, report)
    elif data is not None and not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    location = DataLocation(suite.catalogue, data, request.images, request.limit, protocol)
    bound = Binder(location).bind(tasks, named=bool(request.tasks))
    plan = make_plan(specs, bound.tasks)
    name = suite.name if request.images is None else f"images-{bound.tasks[0].dataset}"
    result = execute(plan, name, request, device, report)
    records = _records(request.output, name)
    output = request.output
    pages = tuple(write_pages(records, output / "tables", output / "items")) if len(records) else ()
    return RunSummary(plan, bound, result, records, pages)


def _records(output: Path, suite: str) -> pd.DataFrame:
    if not any((output / "records").rglob("*.parquet")):  # every backbone failed; the failures say why
        return pd.DataFrame()
    records = read_records([output / "records"])
    return of_suite(records, suite)


def choose_suite(request: Request) -> Suite:
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


def find_backbones(request: Request, suite: Suite) -> tuple[BackboneSpec, ...]:
    """The backbones asked for, and the random floor of their input size."""
    specs = find(request.backbones or suite.backbones, cache_dir=request.cache)
    specs = tuple(with_weights(specs, request.weights))
    if request.floor and not any(spec.family == "random" for spec in specs):
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
    if spec.family == "random" or spec.checkpoint == "object":
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


def mini_data(request: Request, report: Reporter) -> Path:
    """The mini suite's datasets in the cache, rendered there first if they are not."""
    root = request.cache / "mini-data" / MINI_VERSION
    if not is_complete(root):
        with report.bar("rendering the mini datasets", 1, "parts") as advance:
            done = 0

            def progress(count: int, total: int) -> None:
                nonlocal done
                advance((count - done) / total)
                done = count

            write_mini_datasets(root, workers=request.workers, progress=progress)
    return root
