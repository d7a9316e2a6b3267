"""Two backbones, paired: the command `compare` and `benchmark.compare`."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, get_args

import typer

from benchmark import parsers
from benchmark.commands.command import command, records_of, rows_of, say_json
from benchmark.commands.result import Result
from benchmark.option import OnePath, Option, Switch, Words, called_with
from benchmark.request import GivenNetwork

if TYPE_CHECKING:
    from leaderboards.versus import Match

ComparedLayers = Literal["best", "same"]


@dataclass(frozen=True)
class CompareRequest:
    """Which backbones to compare, and where."""

    first: Option[str | GivenNetwork, str] = Option(..., "A backbone that was run.", parsers.run_name)
    second: Option[str | GivenNetwork, str] = Option(..., "Another one.", parsers.run_name)
    _: KW_ONLY
    output: OnePath = Option("results", "Folder of records and per-item files.", parsers.path, short="-o")
    tasks: Words = Option(
        (),
        "Tasks to compare them in.",
        parsers.names,
        short="-t",
        several=True,
        usual="all that both ran",
    )
    layers: Option[ComparedLayers, ComparedLayers] = Option(
        "best",
        "best: each one's best layer; same: every layer with the other's at the same share of the depth.",
        parsers.choice,
        choices=get_args(ComparedLayers),
    )
    json: Switch = Option(False, "For machines.", parsers.switch)


@command("compare", CompareRequest)
def compare_command(request: CompareRequest) -> None:
    """Compare two backbones on every task that both ran on the same images.

    Differences are paired, item by item, with 95 % intervals and p-values that are corrected for the number
    of comparisons by Holm's rule. Needs no backbone and no data: what a run has written is enough.

    Example: `python -m benchmark compare dino-b16 clip-b16 --tasks knn spair`
    """
    from leaderboards.pages.markdown import table
    from leaderboards.versus import conclusion, match_frame, match_table

    match = _matched(request)
    if request.json:
        content = {
            "first": match.names[0],
            "second": match.names[1],
            "layers": match.which,
            "comparisons": rows_of(match_frame(match)),
            "left_out": match.left_out,
            "conclusion": conclusion(match),
        }
        say_json(content)
        return
    typer.echo(table(match_table(match)) + "\n")
    for sentence in match.left_out:
        typer.echo(f"left out: {sentence}")
    typer.echo(conclusion(match))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Result):
    """Two backbones, paired.

    Attributes:
        conclusion: What the numbers show, in words.
        left_out: What could not be compared, and why.
    """

    conclusion: str
    left_out: tuple[str, ...] = ()


@called_with(CompareRequest, without=("json",))
def compare(request: CompareRequest) -> Comparison:
    """Compare two backbones that were run, paired, on every task that both ran on the same images.

    Does what ``python -m benchmark compare`` does, with the same options.

    Returns:
        ``frame`` has one row a comparison, with the columns of ``leaderboards.versus.match_frame``:
        differences in points with 95 % intervals, p-values, and those corrected for all of the table. What
        the numbers show, in words, is ``conclusion``; what could not be compared, and why, ``left_out``.

    Raises:
        zoo.errors.InputError: Something that was given is wrong, or nothing can be compared.

    Example:
        >>> import benchmark
        >>> found = benchmark.compare("mini-dino", "mini-resnet", output="results", tasks="knn")
        >>> found.frame[["task", "metric"]].values.tolist()
        [['knn', 'top-1']]
        >>> found.conclusion
        'At 5 %...'
    """
    from leaderboards.versus import conclusion, match_frame, match_table

    match = _matched(request)
    sentence = conclusion(match)
    return Comparison(
        title=f"{match.names[0]} and {match.names[1]}, paired",
        frame=match_frame(match),
        table=match_table(match),
        notes=(*(f"Left out: {reason}" for reason in match.left_out), sentence),
        conclusion=sentence,
        left_out=tuple(match.left_out),
    )


def _matched(request: CompareRequest) -> "Match":
    """The comparisons that were asked for; raises InputError where nothing can be compared."""
    from leaderboards.board import Board
    from leaderboards.versus import match

    board = Board.of(records_of(request.output), items=request.output / "items")
    return match(board, (request.first, request.second), request.layers, request.tasks)
