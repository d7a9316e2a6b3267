"""The command `claims` and `layerboard.claims`: what a run says about the claims of papers."""

from dataclasses import KW_ONLY

from layerboard.benchmark.commands.command import command, records_of, rows_of, say, say_json
from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.forms.option import Option, Wholes, of_form
from layerboard.benchmark.forms.request import JsonOption, ResultsOptions


class ClaimsRequest(JsonOption, ResultsOptions, kw_only=False):
    """Options of `claims`: which are judged, and by which results."""

    numbers: Wholes = Option((), "Numbers of claims.", usual="all", positional=True)
    _: KW_ONLY


@command("claims", ClaimsRequest)
def claims_command(request: ClaimsRequest) -> None:
    """Judge claims of papers by the results of a run.

    Each claim is a number that is above 0 if it holds: it holds if the 95 % interval is above 0, fails if the
    interval is below, and is undecided otherwise. A claim whose backbones or tasks were not run is not
    measured, with what it needs. `run --tasks inside` measures most of them. docs/explanation/claims.md
    describes every claim.

    Example: `layerboard claims 1 21 32 -o results`
    """
    judged = of_form(claims)(request)
    if request.json:
        say_json({"claims": rows_of(judged.frame)})
    else:
        say(judged.text())


@claims_command.python
def claims(request: ClaimsRequest) -> Result:
    """``frame`` has one row per claim: its number, words, verdict, and what that rests on.

    The columns are number, claim, verdict, estimate with ci_low and ci_high in the unit of its statistic (NaN
    if not measured), unit, subject (what decides), reason, statistic, tasks, source. All suites of the folder
    count together.

    Example:
        >>> import layerboard
        >>> found = layerboard.claims([31, 32], output="results")
        >>> found.frame["number"].tolist()
        [31, 32]
    """
    from layerboard.benchmark.plan.facts import known_specs
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.claims.verdicts import (
        chosen_judgements,
        claim_frame,
        claim_table,
        counts_text,
        lacking_texts,
    )

    output = request.output
    items, arrays = output / "items", output / "arrays"
    board = Board.of(records_of(output), items=items, arrays=arrays).knowing(known_specs())
    judged = chosen_judgements(board, request.numbers)
    return Result(
        title=f"Claims of papers by the results in {output}",
        frame=claim_frame(judged),
        table=claim_table([each for each in judged if each.effect is not None]),
        notes=(*lacking_texts(judged), counts_text(judged)),
    )
