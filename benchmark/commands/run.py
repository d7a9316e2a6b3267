"""Run backbones on tasks: the command `run`, `layerboard.run` and `layerboard.forecast`."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, ended_by_signals, exit_code, say, say_json
from layerboard.benchmark.commands.result import Result, table_text
from layerboard.benchmark.commands.show import answers_to, text_to
from layerboard.benchmark.forms.option import Option, Plain, called_with
from layerboard.benchmark.forms.request import ProgressOption, Request
from layerboard.leaderboards.blocks.display import bytes_text
from layerboard.leaderboards.records.files import VERSION
from layerboard.zoo.errors import InputError, counted

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.benchmark.api import RunSummary
    from layerboard.benchmark.forecast.forecast import Forecast

MOST_NAMED = 5  # unreadable images that are named one by one


class RunForm(ProgressOption, Request, panel="Output"):
    """Options of a run, and those by which the command only plans it."""

    plan: Plain[bool] = Option(
        False,
        "Estimate images, forward passes, time, disk and memory from a short warm-up, without running.",
        only="command",
    )
    json: Plain[bool] = Option(False, "With --plan: print JSON.", only="command")

    def __post_init__(self) -> None:
        if self.json and not self.plan:
            raise InputError("--json needs --plan; `layerboard show --json` prints the results of a run")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RunResult(Result):
    """Result of a run: displayed, it shows the best of each task; ``frame`` has every number."""

    best: "pd.DataFrame"  # the best of each task, as from `layerboard.best`
    failures: tuple[str, ...] = ()  # what went wrong, one sentence each; everything else is done and kept
    pages: tuple[Path, ...] = ()  # files of the pages of the suite


@command("run", RunForm)
def run_command(given: RunForm) -> int:
    """Score every layer of frozen backbones, and write leaderboards.

    Without options: the mini suite, seven small packaged backbones on rendered images, offline, in about
    two minutes. A run that was interrupted continues when it is started again.

    Examples:
    - `layerboard run` runs the mini suite.
    - `layerboard run --backbones dino-b16 clip-b16 --images MY_PHOTOS` compares two on your own images.
    - `layerboard run --backbones 'dino-*' --tasks knn spair --data DIR` uses the official datasets.
    - `layerboard run --data DIR --plan` estimates time, disk and memory.
    """
    if not given.json:
        say(f"layerboard {VERSION}: {_in_short(given)}")
    require_names(given)
    if given.plan:
        with ended_by_signals("interrupted; nothing was kept") as report:
            from layerboard.benchmark.forecast.forecast import forecast_run

            foreseen = forecast_run(given, report)
        if given.json:
            say_json(asdict(foreseen))
        else:
            planned = _planned(foreseen)
            assert planned.table is not None
            say("\n".join([table_text(planned.table), "", *planned.notes]))
        return 0
    with ended_by_signals("interrupted; finished work is kept, run again to continue") as report:
        from layerboard.benchmark.api import execute

        answered = False

        def answer(summary: "RunSummary") -> None:
            nonlocal answered
            report.say(*_summary(summary))
            text, answered = text_to(summary)
            if text:
                say(f"\n{text}\n" if answered else text)

        summary = execute(given, report, answer=answer)
        written = "wrote" if summary.changed else "unchanged:"
        report.say(*(f"{written} {_short(page)}" for page in summary.pages))
    if answered:
        pages = [page for page in summary.pages if page.suffix == ".md"]  # in order, the leaderboard last
        where = f"{_short(pages[-1])} has every layer" if pages else ""
        say(f"Read on: {where}; `layerboard show` prints this again.")
    return exit_code(summary.done.failures)


def _in_short(request: Request) -> str:
    """Suite, data, backbones and tasks of a request, as given."""
    where = str(request.data or "") or ", ".join(request.images)
    suite = request.suite or ("standard" if where else "mini")
    named = request.backbones or (request.weights if request.series else ())
    backbones = ", ".join(named) or "the suite's backbones"
    on = f" on {where}" if where else ""
    return f"suite {suite}{on}; {backbones}; {', '.join(request.tasks) or 'all tasks'}"


def require_names(request: Request) -> None:
    """Raise InputError for a wrong suite, protocol or layer, before torch is imported."""
    from layerboard.benchmark.plan.layers import select_layers, taps_of
    from layerboard.benchmark.plan.location import find_protocols  # imports numpy
    from layerboard.benchmark.plan.series import find_series
    from layerboard.benchmark.plan.suites import choose_suite
    from layerboard.zoo.registry.find import all_specs
    from layerboard.zoo.spec import entry_name

    suite = choose_suite(request)
    find_protocols(request, suite)
    find_series(request)
    named = {entry_name(name) for name in request.backbones or (() if request.series else suite.backbones)}
    for spec in all_specs():
        if spec.name in named and taps_of(spec, request.taps):  # without any, the run leaves it out or asks
            select_layers(request.layers, spec, request.taps)


def _summary(summary: "RunSummary") -> Iterator[str]:
    plan, done = summary.plan, summary.done
    images = counted(plan.images, "images") + (" each" if len(plan.backbones) > 1 else "")
    yield f"{counted(len(plan.backbones), 'backbones')}, {images}, {counted(len(plan.tasks.every), 'tasks')}"
    if done.images:
        yield f"{counted(done.images, 'images')} through backbones, and scored, in {summary.seconds:.0f} s"
    elif not done.failures:
        yield "no image went through a backbone: all features were there"
    for reason in (*plan.tasks.left_out, *done.unreadable[:MOST_NAMED]):
        yield f"left out: {reason}"
    if len(done.unreadable) > MOST_NAMED:
        further = counted(len(done.unreadable) - MOST_NAMED, "further images")
        yield f"left out: {further} that cannot be decoded"
    partial = {task.dataset: task.coverage for task in plan.tasks.every if task.coverage.partial}
    for name, coverage in sorted(partial.items()):
        yield f"partial: {name}: {coverage}"
    for failure in done.failures:
        yield f"failed: {failure}"


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@run_command.python
def run(call: RunForm) -> RunResult:
    """Returns the best of each task, and the records of the suite in the folder.

    The result displays the best of each task, which is ``best``; ``frame`` has one row per number, with the
    columns of ``leaderboards.records.record.Record``; ``pages`` are the files of its pages. Failures of
    single backbones or tasks do not raise; they are sentences in ``failures``.

    Example:
        >>> import layerboard
        >>> found = layerboard.run(["mini-dino", "mini-resnet"], ["knn", "cka"], images="photos", floor=False)
        >>> found
        suite images-photos-...
        <BLANKLINE>
        task       best backbone    layer    vectors    score ...
        ...
        knn top-1  mini-...
        >>> sorted(set(found.frame["backbone"])), found.failures
        (['mini-dino', 'mini-resnet'], ())
    """
    require_names(call)
    from layerboard.benchmark.api import execute
    from layerboard.benchmark.engines.progress import reporter_for

    summary = execute(call, reporter_for(call.progress))
    answers, failures = answers_to(summary.board), tuple(map(str, summary.done.failures))
    left_out = [f"Left out: {reason}." for reason in (*summary.plan.tasks.left_out, *summary.done.unreadable)]
    return RunResult(
        title=answers.title,
        frame=summary.records,
        table=answers.table,
        notes=(*answers.notes, *left_out, *(f"Failed: {failure}" for failure in failures)),
        best=answers.frame,
        failures=failures,
        pages=summary.pages,
        parts=answers.parts,
        draw=answers.draw,
    )


@called_with(RunForm)
def forecast(call: RunForm) -> Result:
    """Estimate the images, forward passes, time, disk and memory of a run on this machine; stores nothing.

    Does what ``layerboard run --plan`` does: it shows some images to the backbones with most work, as the run
    would, for at most a tenth of the expected time. What is stored already is not counted. ``frame`` has one
    row per step: backbone, what, source, images through the backbone, seconds, and bytes that stay on disk;
    ``notes`` sum them up.

    Example:
        >>> import layerboard
        >>> found = layerboard.forecast("mini-dino", "knn", images="photos", floor=False)
        >>> sorted(found.frame)
        ['backbone', 'disk', 'images', 'seconds', 'source', 'what']
    """
    require_names(call)
    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.forecast.forecast import forecast_run as foresee

    return _planned(foresee(call, reporter_for(call.progress)))


def _planned(foreseen: "Forecast") -> Result:
    """A frame with one row per step, and a table with one row per backbone and one for joint steps."""
    import pandas as pd

    frame = pd.DataFrame([asdict(step) for step in foreseen.steps])
    rows = []
    for name in (*filter(None, dict.fromkeys(frame["backbone"])), ""):
        steps = frame[frame["backbone"] == name]
        scores = steps["what"].str.startswith(("scoring", "comparing"))
        times = [as_time(float(steps.loc[chosen, "seconds"].sum())) for chosen in (~scores, scores)]
        images, disk = f"{int(steps['images'].sum()):,}", bytes_text(float(steps["disk"].sum()))
        rows.append([name or "start, pairs, pages", images, *times, disk])
    table = pd.DataFrame(rows, columns=["", "images", "passes", "scores", "disk"])
    side = "one after the other" if foreseen.workers == 1 else f"{foreseen.workers} side by side"
    backbones = len({step.backbone for step in foreseen.steps if step.images})
    notes = (
        f"{foreseen.images:,} images each; {foreseen.forwards:,} forwards of {backbones} backbones are not "
        f"stored yet, {side} on {foreseen.device}.",
        f"About {as_time(foreseen.seconds)} in all; {bytes_text(foreseen.disk)} more in the cache; "
        f"{bytes_text(foreseen.memory)} of memory. (The estimate took {as_time(foreseen.warm_up)}; no "
        "results were stored.)",
        *foreseen.notes,
    )
    return Result(title=f"suite {foreseen.suite}, planned", frame=frame, table=table, notes=notes)


def as_time(seconds: float) -> str:
    """Seconds, minutes, hours or days."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
