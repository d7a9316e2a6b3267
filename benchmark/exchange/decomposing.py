"""From two protocols to the page that takes their difference apart: steps, a run of all rules, tables."""

from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.api import carry_out
from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure
from benchmark.plan.decomposed import Given, reference, steps_protocols, task_steps
from benchmark.request import Request
from leaderboards.choices.decomposition import Change, changes
from leaderboards.pages.build import write_page
from leaderboards.pages.decomposition import Side, decomposition_page
from tasks.blocks import Page
from tasks.paths import Steps
from zoo.errors import InputError

FOLDER = "decompose"
"""Folder of the records of the steps, below that of a run."""


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

    page: Page
    files: tuple[Path, ...]
    steps: Steps
    changes: tuple[Change, ...]
    failures: tuple[Failure, ...]


def decompose(request: Request, task: str, ends: tuple[Given, Given], report: Reporter) -> Decomposed:
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
    first, second = ends
    steps = task_steps(task, first, second)
    final = any(stop.tap == "final" for stop in steps.stops) and request.layers != "all"
    own = replace(
        request,
        tasks=(reference(task),),
        output=request.output / FOLDER,
        floor=False,
        examples=False,
        transform=(),
        fuse=(),
        layers=f"{request.layers},final" if final else request.layers,
    )
    protocols = steps_protocols(steps, first, second)
    summary = carry_out(own, report, protocols)
    records = summary.records
    records = records[records["protocol"].isin([one.name for one in protocols])]
    records = records[records["task"] == f"{task}-steps"]
    asked = {spec.name for spec in summary.plan.backbones}
    found = changes(records[records["backbone"].isin(asked)], summary.output / "items", steps)
    if not found:
        reasons = "; ".join(map(str, summary.done.failures)) or "see the reasons in its records"
        raise InputError(f"no backbone has scores by all rules from {first.name} to {second.name}: {reasons}")
    start, end = (Side(one.name, one.protocol.unlike) for one in ends)
    page = decomposition_page(task, summary.suite, (start, end), steps, found)
    files = write_page(page, request.output / "tables")
    return Decomposed(page, tuple(files), steps, found, summary.done.failures)
