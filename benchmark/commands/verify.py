"""Recompute the numbers of a submission from its items: the command `verify` and `layerboard.verify`."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, ended_by_signals, say
from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, OnePath, Option, OptionalPath, Plain, of_form
from layerboard.benchmark.forms.request import DATA, Backbones, Cache, Request, cache_option
from layerboard.tasks.framework.transforms import is_compression
from layerboard.zoo.errors import InputError

if TYPE_CHECKING:
    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.leaderboards.exchange.merge import StoredResult

SHARE = 0.1  # share of the results that are measured again


class VerifyRequest(Form, kw_only=False):
    """Options of `verify`: the submission, and the data and backbones to measure some of it again."""

    folder: OnePath = Option(..., "Folder of a submission.")
    _: KW_ONLY
    again: Plain[bool] = Option(False, "Measure a random tenth again: of the mini suite, or on --data.")
    data: OptionalPath = Option(None, f"{DATA} With it, a random tenth is measured again.", parsers.datasets)
    backbones: Option[Backbones, tuple[str, ...]] = Option(
        (), "Directories or objects of backbones that are not in the registry.", parsers.backbones, also="-b"
    )
    mark: Plain[bool] = Option(
        False, "If the repetition finds no problem, record that in the repository: verified/NAME.json."
    )
    seed: Plain[int | None] = Option(None, "Seed of the draw.", least=0, usual="another one each time")
    cache: Cache = cache_option("Folder of features.")
    device: Plain[str] = Option("auto", "auto, cpu, cuda or cuda:N.")


@command("verify", VerifyRequest)
def verify_command(request: VerifyRequest) -> int:
    """Check a submission: its files, and every score, interval and choice recomputed from its items.

    With `--again` or `--data`, a tenth of all results, drawn at random, is measured again on this machine.
    The exit code is 1 if something differs from what the submission says, or if nothing that was drawn can
    be measured here.

    Example: `layerboard verify results-repository/submissions/mini --again`
    """
    with ended_by_signals("interrupted; nothing was verified") as report:
        verified = of_form(verify)(request, report)
    say("\n".join([*verified.frame["problem"], *verified.notes]))
    return int(len(verified.frame) > 0)


@verify_command.python
def verify(request: VerifyRequest, report: "Reporter | None" = None) -> Result:
    """``frame`` has one row per problem, and none if all is well; ``notes`` say what was checked.

    Example:
        >>> import layerboard
        >>> sent = layerboard.submit("results", to="repository", name="checked")
        >>> len(layerboard.verify(sent.paths[0].parent).frame)
        0
    """
    import pandas as pd

    from layerboard.benchmark.engines.progress import Silent
    from layerboard.benchmark.plan.facts import known_names
    from layerboard.benchmark.records.rescore import rescore
    from layerboard.leaderboards.exchange.submission import read_submission, weights_by_backbone
    from layerboard.leaderboards.records.manifest import mark_verified, marks_file, of_others

    if request.mark and not (request.again or request.data):
        raise InputError("--mark needs a new measurement: give --data DIR, or --again for the mini suite")
    if request.mark:
        marks_file(request.folder)  # raises before anything is measured
    submission = read_submission(request.folder, known_names())
    results = submission.results
    with of_others():
        rescored = [rescore(result) for result in results]
    rows = pd.concat([result.records for result in results])
    problems = [*submission.problems, *(sentence for _, sentences in rescored for sentence in sentences)]
    problems += _other_weights(weights_by_backbone(rows))
    scored, numbers = sum(count for count, _ in rescored), int(rows["value"].notna().sum())
    notes = [f"{len(results)} results; of {numbers:,} numbers {scored:,} were scored again from their items."]
    if request.again or request.data:
        seed = random.SystemRandom().randrange(10**6) if request.seed is None else request.seed
        drawn, reasons = _drawn(results, request, seed)
        problems += [why for result in drawn if (why := _measured_again(result, request, report or Silent()))]
        names = [each.name.as_posix() for each in drawn]
        notes += [f"Measured again, drawn with --seed {seed}: {', '.join(names) or 'none'}."]
        if reasons:
            notes += [f"{len(reasons)} more were drawn but cannot be measured here, such as {reasons[0]}"]
        if not names:
            problems += ["nothing that was drawn could be measured again; another --seed draws other results"]
        if request.mark and names and not problems:
            notes += [f"wrote {mark_verified(request.folder, names)}"]
    title = f"{request.folder}: {len(problems) or 'no'} problems"
    return Result(title=title, frame=pd.DataFrame({"problem": problems}, dtype=object), notes=(*notes, title))


def _other_weights(weights: Mapping[str, str]) -> list[str]:
    """One sentence for each backbone whose weights differ from those that the registry pins."""
    from layerboard.zoo.load.files import locate
    from layerboard.zoo.registry.find import all_specs
    from layerboard.zoo.spec import entry_name

    specs, problems = {spec.name: spec for spec in all_specs()}, []
    for name, given in weights.items():
        if (spec := specs.get(entry_name(name))) is None or spec.is_floor:
            continue
        known = locate(spec, None).revision if spec.is_toy else spec.revision
        if known and given != known and (spec.is_toy or not given.startswith("sha256:")):
            problems.append(f"the weights of {name} are {given}, those of the registry {known}")
    return problems


def _drawn(
    results: "Sequence[StoredResult]", request: VerifyRequest, seed: int
) -> tuple["list[StoredResult]", list[str]]:
    """A tenth of all results, without those that cannot be measured again here, and why they cannot."""
    drawn: list[StoredResult] = []
    reasons: list[str] = []
    for result in random.Random(seed).sample(results, ceil(SHARE * len(results))):  # noqa: S311  # no secret
        if reason := _absence(result, request):
            reasons.append(f"{result.name}: {reason}")
        else:
            drawn.append(result)
    return drawn, reasons


def _absence(result: "StoredResult", request: VerifyRequest) -> str:
    """What this machine lacks to measure a result again, as a phrase; "" if it lacks nothing.

    A dataset that the submission calls complete must be the same here if it is complete here, too.
    """
    from layerboard.benchmark.engines.progress import Silent
    from layerboard.benchmark.jobs.prepare import plan_of
    from layerboard.leaderboards.exchange.submission import public_name
    from layerboard.tasks.framework.protocols import find_protocol
    from layerboard.zoo.registry.find import all_specs
    from layerboard.zoo.spec import entry_name

    row = result.records.iloc[0]
    own = {*map(public_name, request.backbones)} | {spec.name for spec in all_specs()}
    if strange := [name for name in (row["backbone"], row["other"]) if name and entry_name(name) not in own]:
        return f"{strange[0]} is not in the registry; give it by --backbones"
    if not _suite_of(result, request):
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


def _suite_of(result: "StoredResult", request: VerifyRequest) -> str:
    """Name of a suite with which this machine can measure a result again; "" if there is none.

    The result must be of single blocks, and name no Python object: a submission must run no code.
    """
    from layerboard.benchmark.plan.suites import SUITES
    from layerboard.tasks.framework.registry import COST

    rows = result.records
    names = {*rows["task"], *rows["backbone"], *rows["other"]} - {*request.backbones}
    taps = {*rows.loc[~rows["analysis"], "tap"]} - {"block", "final"}
    if taps or COST in names or any(":" in name for name in names):
        return ""
    suites = [suite.name for suite in SUITES if suite.embedded == (request.data is None)]
    return next((name for name in result.suites if name in suites), "")


def _measured_again(result: "StoredResult", request: VerifyRequest, report: "Reporter") -> str:
    """What differs when a result is measured again, as a sentence; "" if nothing does."""
    from layerboard.benchmark.api import execute
    from layerboard.leaderboards.exchange.merge import difference
    from layerboard.leaderboards.exchange.submission import public_results
    from layerboard.leaderboards.records.key import keys_of
    from layerboard.tasks.framework.protocols import find_protocol
    from layerboard.zoo.atomic import temporary_folder

    protocol = find_protocol(result.records["protocol"].iloc[0])
    with temporary_folder(request.cache) as output:
        failures = execute(_run_of(result, request, output), report, [protocol]).done.failures
        today = {} if failures else {each.name: each.records for _, each in public_results(output)}
    if (rows := today.get(result.name)) is None:
        return f"{result.name} could not be measured again: {failures or [*map(str, today)]}"
    keys = {*keys_of(result.records)}
    reason = difference(result.records, rows[[key in keys for key in keys_of(rows)]])
    return f"{result.name}, measured again, is another result: {reason}" if reason else ""


def _run_of(result: "StoredResult", request: VerifyRequest, output: Path) -> Request:
    """The run that measures a result again, possibly with other layers, too."""
    from layerboard.leaderboards.exchange.submission import public_name
    from layerboard.zoo.spec import Variant

    row = result.records.iloc[0]
    own = {public_name(name): name for name in request.backbones}
    names = [own.get(name, name) for name in dict.fromkeys((row["backbone"], row["other"])) if name]
    same = {name: getattr(request, name) for name in ("data", "cache", "device")}
    same |= {"interpolation": row["interpolation"]} if row["interpolation"] else {}
    same |= {"compress" if is_compression(row["transform"]) else "transform": row["transform"] or ()}
    variant = Variant.of(row["backbone"])
    same |= {} if variant.input_size else {"input_size": int(row["input_size"])}
    same |= {} if variant.dtype else {"dtype": row["dtype"]}
    suite = _suite_of(result, request)
    return Request(names, row["task"], suite=suite, output=output, floor=False, examples=False, **same)
