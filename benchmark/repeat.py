"""Results that others have submitted, measured again on this machine."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from layerboard.benchmark.api import execute
from layerboard.benchmark.engines.progress import Reporter, Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.prepare import plan_of
from layerboard.benchmark.plan.suites import SUITES
from layerboard.leaderboards.exchange.merge import StoredResult, difference
from layerboard.leaderboards.exchange.submission import public_name, public_results
from layerboard.leaderboards.records.key import keys_of
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import COST
from layerboard.tasks.framework.transforms import is_compression
from layerboard.zoo.atomic import temporary_folder
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.files import locate
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import Variant, entry_name

SHARE = 0.1  # share of the results that are measured again


def other_weights(weights: Mapping[str, str]) -> list[str]:
    """One sentence for each backbone whose weights differ from those that the registry pins."""
    specs, problems = {spec.name: spec for spec in all_specs()}, []
    for name, given in weights.items():
        if (spec := specs.get(entry_name(name))) is None or spec.is_floor:
            continue
        known = locate(spec, None).revision if spec.is_toy else spec.revision
        if known and given != known and (spec.is_toy or not given.startswith("sha256:")):
            problems.append(f"the weights of {name} are {given}, those of the registry {known}")
    return problems


def drawn_results(
    results: Sequence[StoredResult], request: Request, seed: int
) -> tuple[list[StoredResult], list[str]]:
    """A tenth of all results, without those that cannot be measured again here, and why they cannot."""
    drawn: list[StoredResult] = []
    reasons: list[str] = []
    for result in random.Random(seed).sample(results, ceil(SHARE * len(results))):  # noqa: S311  # no secret
        if reason := _absence(result, request):
            reasons.append(f"{result.name}: {reason}")
        else:
            drawn.append(result)
    return drawn, reasons


def _absence(result: StoredResult, request: Request) -> str:
    """What this machine lacks to measure a result again, as a phrase; "" if it lacks nothing.

    A dataset that the submission calls complete must be the same here if it is complete here, too.
    """
    row = result.records.iloc[0]
    own = {*map(public_name, request.backbones)} | {spec.name for spec in all_specs()}
    if strange := [name for name in (row["backbone"], row["other"]) if name and entry_name(name) not in own]:
        return f"{strange[0]} is not in the registry; give it by --backbones"
    if not suite_of(result, request):
        return "it is of a suite or kind that is not measured again with these options"
    try:
        run, protocol = _run_of(result, request, request.cache), find_protocol(row["protocol"])
        plan = plan_of(run, Silent(), writes=False, protocols=[protocol]).plan
    except InputError as error:
        return str(error)
    here = {task.dataset: task for task in plan.tasks.every}
    if (task := here.get(row["dataset"])) is None:
        return f"there is no {row['dataset']}"
    may_differ = row["partial"] or task.coverage.partial
    return "it is of other images" if may_differ and task.data_digest != row["data"] else ""


def suite_of(result: StoredResult, request: Request) -> str:
    """Name of a suite with which this machine can measure a result again; "" if there is none.

    The result must be of single blocks, and name no Python object: a submission must run no code.
    """
    rows = result.records
    names = {*rows["task"], *rows["backbone"], *rows["other"]} - {*request.backbones}
    taps = {*rows.loc[~rows["analysis"], "tap"]} - {"block", "final"}
    if taps or COST in names or any(":" in name for name in names):
        return ""
    suites = [suite.name for suite in SUITES if suite.embedded == (request.data is None)]
    return next((name for name in result.suites if name in suites), "")


def measured_again(result: StoredResult, request: Request, report: Reporter) -> str:
    """What differs when a result is measured again, as a sentence; "" if nothing does."""
    protocol = find_protocol(result.records["protocol"].iloc[0])
    with temporary_folder(request.cache) as output:
        failures = execute(_run_of(result, request, output), report, [protocol]).done.failures
        today = {} if failures else {each.name: each.records for _, each in public_results(output)}
    if (rows := today.get(result.name)) is None:
        return f"{result.name} could not be measured again: {failures or [*map(str, today)]}"
    keys = {*keys_of(result.records)}
    reason = difference(result.records, rows[[key in keys for key in keys_of(rows)]])
    return f"{result.name}, measured again, is another result: {reason}" if reason else ""


def _run_of(result: StoredResult, request: Request, output: Path) -> Request:
    """The run that measures a result again, possibly with other layers, too."""
    row = result.records.iloc[0]
    own = {public_name(name): name for name in request.backbones}
    names = [own.get(name, name) for name in dict.fromkeys((row["backbone"], row["other"])) if name]
    same = {"interpolation": row["interpolation"]} if row["interpolation"] else {}
    same |= {"compress" if is_compression(row["transform"]) else "transform": row["transform"] or ()}
    variant = Variant.of(row["backbone"])
    same |= {} if variant.input_size else {"input_size": int(row["input_size"])}
    same |= {} if variant.dtype else {"dtype": row["dtype"]}
    same |= {"suite": suite_of(result, request), "output": output, "floor": False, "examples": False}
    return replace(request, backbones=names, tasks=row["task"], **same)
