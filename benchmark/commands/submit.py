"""Submit results to a results repository: the command `submit` and `layerboard.submit`."""

from dataclasses import KW_ONLY, replace
from typing import Literal

from layerboard.benchmark.commands.command import command, say
from layerboard.benchmark.commands.result import Files, files_result
from layerboard.benchmark.forms.option import Form, OnePath, Option, Plain, of_form
from layerboard.zoo.errors import InputError, require_known, some

Claim = Literal["submitted", "authors"]


class SubmitRequest(Form, kw_only=False):
    """Options of `submit`: the results, and the results repository."""

    folder: OnePath = Option(..., "Output folder of a run.")
    _: KW_ONLY
    to: OnePath = Option("results-repository", "Folder of the results repository, such as your clone of it.")
    name: Plain[str | None] = Option(None, "Name of the submission's folder.", usual="day of its last result")
    claim: Plain[Claim] = Option("submitted", "Who submits: the authors of all its backbones, or others.")
    replaces: Plain[str | None] = Option(None, "Earlier submission that this one corrects and replaces.")
    partial: Plain[bool] = Option(False, "Include results on a part of a dataset; they are marked.")


@command("submit", SubmitRequest)
def submit_command(request: SubmitRequest) -> None:
    """Check an output folder, leave out what is private, and write it as a submission.

    Records, items and arrays are checked and copied; thumbnails are left out, and paths are reduced to names.
    The text of the pull request is printed.

    Example: `layerboard submit results --to results-repository`
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
