"""What lies between two protocols: the command `decompose`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import typer

from benchmark import parsers
from benchmark.commands.command import command, ended_by_signals
from benchmark.option import OneWord, Option
from benchmark.request import Request
from tasks.transforms import parse_transform
from zoo.errors import InputError

if TYPE_CHECKING:
    from benchmark.engines.progress import Reporter
    from benchmark.extraction.failures import Failure
    from leaderboards.sections.decomposition import Change
    from tasks.blocks import Page
    from tasks.decompose import Given
    from tasks.paths import Steps

EndTap = Literal["block", "final"]
"""What `tasks.paths` knows to be read."""

WITHOUT = ("tasks", "protocol", "floor", "examples", "poolings", "transform", "fuse")

FOLDER = "decompose"
"""Folder of the records of the steps, below that of a run."""


def transform(value: Any, option: parsers.AnyOption) -> str:  # noqa: ANN401  # words of any kind
    """One transform, or "" for none."""
    del option
    return str(parse_transform(value)) if value else ""


@dataclass(frozen=True, kw_only=True)
class DecomposeRequest(Request):
    """Options of a run, a task and two protocols."""

    task: OneWord = Option(..., "A task: spair or davis.", parsers.text)
    start: OneWord = Option("standard", "The protocol to begin with.", parsers.text, also=("--from",))
    to: OneWord = Option("paper", "The protocol to arrive at.", parsers.text)
    from_tap: Option[EndTap, EndTap] = Option(
        "block",
        "What the first protocol reads: the best block, or the last one behind the final norm.",
        parsers.choice,
        choices=get_args(EndTap),
    )
    to_tap: Option[EndTap, EndTap] = Option(
        "block", "The same of the second.", parsers.choice, choices=get_args(EndTap), also=("--tap",)
    )
    from_transform: OneWord = Option(
        "", "What is done to the first protocol's tokens before: debias:K.", transform, usual="nothing"
    )
    to_transform: OneWord = Option(
        "", "The same of the second.", transform, usual="nothing", also=("--transform",)
    )


@command("decompose", DecomposeRequest, without=WITHOUT)
def decompose_command(given: DecomposeRequest) -> int:
    """Take the difference between two protocols apart, choice by choice, on the same features.

    Example: `python -m benchmark decompose spair --from standard --to insid3 -b dino-b16 --data DIR`
    """
    with ended_by_signals("interrupted; what is finished is kept, run again to go on") as report:
        from leaderboards.pages.markdown import table
        from leaderboards.sections.decomposition import changes_table
        from tasks.decompose import Given
        from tasks.protocols import find_protocol

        ends = (
            Given(find_protocol(given.start), given.from_tap, given.from_transform),
            Given(find_protocol(given.to), given.to_tap, given.to_transform),
        )
        result = decompose(given.request, given.task, ends, report)
    for backbone in dict.fromkeys(change.backbone for change in result.changes):
        rows = [change for change in result.changes if change.backbone == backbone]
        rows = [change for change in rows if change.chosen == "best"]
        typer.echo(f"\n{backbone}\n\n{table(changes_table(rows, result.steps), left=4)}")
    for failure in result.failures:
        typer.echo(f"failed: {failure}", err=True)
    typer.echo("\n" + "\n".join(str(path) for path in result.files))
    return 1 if result.failures else 0


@dataclass(frozen=True)
class Decomposed:
    """The difference between two protocols, taken apart.

    Attributes:
        page: The page.
        files: Where it was written.
        steps: The choices.
        changes: What each changes.
        failures: What went wrong.
    """

    page: "Page"
    files: tuple[Path, ...]
    steps: "Steps"
    changes: "tuple[Change, ...]"
    failures: "tuple[Failure, ...]"


def decompose(request: Request, task: str, ends: "tuple[Given, Given]", report: "Reporter") -> Decomposed:
    """Score a task by all rules between two protocols, and say what each choice changes.

    Every image is shown once for each view among them. Records and items lie below ``OUTPUT/decompose``, the
    page in ``OUTPUT/tables``.

    Args:
        request: Backbones, data and the ways of a run.
        task: ``spair`` or ``davis``.
        ends: The two protocols, and which features each is given.
        report: Hears how far it is.

    Raises:
        InputError: The protocols cannot be compared in that task, something else about the request is wrong,
            or no backbone has scores by all rules.
    """
    from benchmark.api import carry_out
    from leaderboards.pages.build import write_page
    from leaderboards.sections.decomposition import changes, decomposition_page
    from tasks.decompose import steps_protocols, task_steps

    first, second = ends
    steps = task_steps(task, first, second)
    final = any(stop.tap == "final" for stop in steps.stops) and request.layers != "all"
    stepwise = replace(
        request,
        tasks=(f"tasks.decompose:{task}",),
        output=request.output / FOLDER,
        floor=False,
        examples=False,
        transform=(),
        fuse=(),
        layers=f"{request.layers},final" if final else request.layers,
    )
    protocols = steps_protocols(task, steps, first, second)
    summary = carry_out(stepwise, report, protocols)
    records = summary.records
    records = records[records["protocol"].isin([protocol.name for protocol in protocols])]
    records = records[records["task"] == f"{task}-steps"]
    asked = {spec.name for spec in summary.plan.backbones}
    changed = changes(records[records["backbone"].isin(asked)], summary.output / "items", steps)
    if not changed:
        reasons = "; ".join(map(str, summary.done.failures)) or "see the reasons in its records"
        raise InputError(f"no backbone has scores by all rules from {first.name} to {second.name}: {reasons}")
    unlike = [f"{given.name}: {sentence}" for given in ends for sentence in given.protocol.unlike]
    page = decomposition_page(task, summary.suite, (first.name, second.name), unlike, steps, changed)
    files = write_page(page, request.output / "tables")
    return Decomposed(page, tuple(files), steps, changed, summary.done.failures)
