"""The command `decompose`: attributes the difference between two protocols to their single choices."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, ended_by_signals, say
from layerboard.benchmark.commands.result import table_text
from layerboard.benchmark.forms.option import Option, Plain
from layerboard.benchmark.forms.request import (
    BackboneOptions,
    ClusterOptions,
    ExtentOptions,
    OfficialData,
    PositionOptions,
    Request,
    ResultsOptions,
)
from layerboard.zoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.benchmark.passes.failures import Failure
    from layerboard.tasks.decompose.task import Given


class DecomposeRequest(
    ResultsOptions, ClusterOptions, PositionOptions, BackboneOptions, ExtentOptions, OfficialData
):
    """Options of `decompose`: a task, two protocols, and on what to compare them."""

    task: Plain[str] = Option(..., "Task: spair or davis.")
    start: Plain[str] = Option(
        "standard",
        "First protocol. NAME+final reads the output of the final norm in place of the best block.",
        also="--from",
    )
    to: Plain[str] = Option("paper", "Second protocol, named in the same way.")


@command("decompose", DecomposeRequest)
def decompose_command(given: DecomposeRequest) -> int:
    """Say which choices make the difference of two protocols.

    The difference is attributed to single choices, on the same features.

    Example: `layerboard decompose spair --from standard --to insid3 -b dino-b16 --data DIR`
    """
    with ended_by_signals("interrupted; finished work is kept, run again to continue") as report:
        from layerboard.leaderboards.sections.decomposition import changes_table
        from layerboard.tasks.decompose.task import Given

        ends = Given.of(given.start), Given.of(given.to)
        changed, files, failures = decompose(Request.of(given), given.task, ends, report)
    for backbone, rows in changed[changed["chosen"] == "best"].groupby("backbone", sort=False):
        say(f"\n{backbone}\n\n{table_text(changes_table(rows))}")
    for failure in failures:
        say(f"failed: {failure}", err=True)
    say("\n".join(["", *map(str, files)]))
    return 1 if failures else 0


def decompose(
    request: Request, task: str, ends: "tuple[Given, Given]", report: "Reporter"
) -> "tuple[pd.DataFrame, list[Path], tuple[Failure, ...]]":
    """Score a task, ``spair`` or ``davis``, under every config between two protocols.

    Returns what each choice changes, the files of its page in ``OUTPUT/tables``, and the failures. Every
    image is shown once for each view among the configs. Records and items are in ``OUTPUT/decompose``. Raises
    InputError if the protocols cannot be compared in that task, if the request is wrong otherwise, or if no
    backbone has scores under all configs.
    """
    from layerboard.benchmark.api import execute
    from layerboard.leaderboards.sections.decomposition import changes, decomposition_page
    from layerboard.leaderboards.writers.build import write_page
    from layerboard.tasks.decompose.task import steps_protocols, task_steps

    first, second = ends
    steps = task_steps(task, first, second)
    final = any(stop.tap == "final" for stop in steps.stops) and request.layers != "all"
    stepwise = replace(
        request,
        tasks=(f"layerboard.tasks.decompose.task:{task}",),
        output=request.output / "decompose",
        floor=False,
        examples=False,
        layers=f"{request.layers},final" if final else request.layers,
    )
    protocols = steps_protocols(task, steps, first, second)
    summary = execute(stepwise, report, [*protocols.values()])
    numbers = {protocol.name: number for number, protocol in protocols.items()}
    records = summary.records.assign(stop=summary.records["protocol"].map(numbers)).dropna(subset="stop")
    records = records[records["task"] == f"{task}-steps"]
    records = records[records["backbone"].isin({spec.name for spec in summary.plan.backbones})]
    changed = changes(records, summary.output / "items", steps)
    if changed.empty:
        reasons = "; ".join(map(str, summary.done.failures)) or "see the reasons in its records"
        raise InputError(f"no backbone has scores by all rules from {first.name} to {second.name}: {reasons}")
    unlike = [f"{given.name}: {sentence}" for given in ends for sentence in given.protocol.unlike]
    page = decomposition_page(task, summary.suite, (first.name, second.name), unlike, changed)
    return changed, write_page(page, request.output / "tables"), summary.done.failures
