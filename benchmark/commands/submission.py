"""Results for a results repository: the commands `submission`, `layerboard.submit` and `.verify`."""

import random
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from typing import TYPE_CHECKING, Literal

from layerboard.benchmark.commands.command import command, ended_by_signals, say
from layerboard.benchmark.commands.result import Files, Result, files_result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, OnePath, Option, OptionalPath, Plain, of_form
from layerboard.benchmark.forms.request import DATA, Backbones, DeviceOptions, Request
from layerboard.zoo.errors import InputError, require_known, some

if TYPE_CHECKING:
    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.leaderboards.exchange.merge import StoredResult

Claim = Literal["submitted", "authors"]


class SubmitRequest(Form, kw_only=False):
    """Options of `submission write`: the results, and the results repository."""

    folder: OnePath = Option(..., "Output folder of a run.")
    _: KW_ONLY
    to: OnePath = Option("results-repository", "Folder of the results repository, such as your clone of it.")
    name: Plain[str | None] = Option(None, "Name of the submission's folder.", usual="day of its last result")
    claim: Plain[Claim] = Option("submitted", "Who submits: the authors of all its backbones, or others.")
    replaces: Plain[str | None] = Option(None, "Earlier submission that this one corrects and replaces.")
    partial: Plain[bool] = Option(False, "Include results on a part of a dataset; they are marked.")


@command("submission write", SubmitRequest)
def submit_command(request: SubmitRequest) -> None:
    """Check an output folder, leave out what is private, and write it as a submission.

    Records, items and arrays are checked and copied; thumbnails are left out, and paths are reduced to names.
    The text of the pull request is printed.

    Example: `layerboard submission write results --to results-repository`
    """
    sent = of_form(submit)(request)
    say(f"wrote {sent.paths[0]}\n\n{sent.notes[0]}")


@submit_command.python
def submit(request: SubmitRequest) -> Files:
    """``paths`` begin with the manifest, in the submission's folder; ``notes`` are the pull request's text.

    Example:
        >>> import layerboard
        >>> sent = layerboard.submit("results", to="repository", name="mini")
        >>> sent.paths[0].as_posix()
        'repository/submissions/mini/submission.json'
    """
    from layerboard.benchmark.plan.facts import known_names
    from layerboard.leaderboards.exchange.repository import add_accepted
    from layerboard.leaderboards.exchange.submission import public_results, write_submission
    from layerboard.leaderboards.records.fields import name_problem, names_differing_in_case
    from layerboard.leaderboards.records.manifest import MANIFEST, SUBMISSIONS, digests_of
    from layerboard.zoo.atomic import remove_leftovers

    results = public_results(request.folder, known_names())
    partial = [str(result.path) for result, _ in results if result.records["partial"].any()]
    if partial and not request.partial:
        raise InputError(f"a part of a dataset is behind {some(partial)}; run in full, or give --partial")
    name = request.name or max(str(result.records["date"].max())[:10] for result, _ in results)
    there = [path.name for path in (request.to / SUBMISSIONS).glob("[!.]*")]
    if request.replaces:
        require_known("submission", [request.replaces], there)
    if (folder := request.to / SUBMISSIONS / name).exists():
        raise InputError(f"there is a submission at {folder} already; give another --name, or remove it")
    named = {("submission", name)}
    if problem := name_problem("submission", name) or names_differing_in_case(
        named, {("submission", each) for each in there}
    ):
        raise InputError(f"{problem}; give another --name")
    remove_leftovers([request.to / SUBMISSIONS])
    text = write_submission(results, folder, request.claim, request.replaces or "")
    add_accepted(request.to, name)
    written = files_result(
        [folder / each for each in (MANIFEST, *digests_of(folder))], f"of submission {name}"
    )
    return replace(written, notes=(text,))


class VerifyRequest(DeviceOptions, kw_only=False):
    """Options of `submission verify`: the submission, and what some of it is measured with again."""

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


@command("submission verify", VerifyRequest)
def verify_command(request: VerifyRequest) -> int:
    """Check a submission: its files, and every score, interval and choice recomputed from its items.

    With `--again` or `--data`, a tenth of all results, drawn at random, is measured again on this machine.
    The exit code is 1 if something differs from what the submission says, or if nothing that was drawn can
    be measured here.

    Example: `layerboard submission verify results-repository/submissions/mini --again`
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
    from layerboard.benchmark.repeat import other_weights
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
    problems += other_weights(weights_by_backbone(rows))
    scored, numbers = sum(count for count, _ in rescored), int(rows["value"].notna().sum())
    notes = [f"{len(results)} results; of {numbers:,} numbers {scored:,} were scored again from their items."]
    if request.again or request.data:
        names, unlike, said = _measured_again(results, request, report or Silent())
        problems += unlike
        notes += said
        if request.mark and names and not problems:
            notes += [f"wrote {mark_verified(request.folder, names)}"]
    title = f"{request.folder}: {len(problems) or 'no'} problems"
    return Result(title=title, frame=pd.DataFrame({"problem": problems}, dtype=object), notes=(*notes, title))


def _measured_again(
    results: "Sequence[StoredResult]", request: VerifyRequest, report: "Reporter"
) -> tuple[list[str], list[str], list[str]]:
    """Names of the results that were drawn and measured again, what is wrong with them, and notes."""
    from layerboard.benchmark.repeat import drawn_results, measured_again

    seed = random.SystemRandom().randrange(10**6) if request.seed is None else request.seed
    run = Request.of(request, again=False)
    drawn, reasons = drawn_results(results, run, seed)
    problems = [why for result in drawn if (why := measured_again(result, run, report))]
    names = [each.name.as_posix() for each in drawn]
    notes = [f"Measured again, drawn with --seed {seed}: {', '.join(names) or 'none'}."]
    if reasons:
        notes += [f"{len(reasons)} more were drawn but cannot be measured here, such as {reasons[0]}"]
    if not names:
        problems += ["nothing that was drawn could be measured again; another --seed draws other results"]
    return names, problems, notes
