"""Paired comparison of two backbones of a run: the command `compare` and `layerboard.compare`."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from layerboard.benchmark.commands.command import drawn, public, records_of, require_run, rows_of
from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Option, Plain, Words
from layerboard.benchmark.forms.request import GivenNetwork, JsonOption, ResultsOptions

Network = Option[str | GivenNetwork, str]


class CompareRequest(JsonOption, ResultsOptions, kw_only=False):
    """Options of `compare`: two backbones of a run, and on what to compare them."""

    first: Network = Option(..., "Name of a backbone that was run.", parsers.run_name)
    second: Network = Option(..., "Name of another one.", parsers.run_name)
    _: KW_ONLY
    tasks: Words = Option(
        (), "Tasks to compare them on.", parsers.run_tasks, also="-t", usual="all that both were run on"
    )
    layers: Plain[Literal["best", "same"]] = Option(
        "best", "best: the best layer of each; same: all layers, at equal depth."
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Result):
    """Paired comparison of two backbones: a conclusion in words, and what could not be compared, and why."""

    conclusion: str
    left_out: tuple[str, ...] = ()


@public("compare", CompareRequest)
def compare(request: CompareRequest) -> Comparison:
    """Compare two backbones on every task, item by item.

    Both ran on the same images. Differences have 95 % intervals and p-values corrected for multiple
    comparisons (Holm). Everything is read from the output folder of a run; neither backbones nor data are
    needed.

    Example: `layerboard compare dino-b16 clip-b16 --tasks knn spair`

    Returns:
        ``frame`` has one row per comparison, as ``leaderboards.findings.paired.match_frame`` makes it.
        Differences are in points; p-values are given raw and corrected for the whole table. ``conclusion``
        says in words what the numbers show; ``left_out`` says what could not be compared, and why.

    Example:
        >>> import layerboard
        >>> found = layerboard.compare("mini-dino", "mini-resnet", output="results", tasks="knn")
        >>> found.frame[["task", "metric"]].values.tolist()
        [['knn', 'top-1']]
        >>> found.conclusion
        'At 5 %...'
    """
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.findings.paired import conclusion, match_backbones, match_frame, match_table

    board = Board.of(records_of(request.output), items=request.output / "items")
    require_run("backbone", (request.first, request.second), [*board.labels], request.output)
    require_run("task", request.tasks, sorted(set(board.records["task"])), request.output)
    rows = board.records[board.records["task"].isin(request.tasks or board.records["task"])]
    matched = match_backbones(board, (request.first, request.second), request.layers, request.tasks)
    sentence, frame, content = conclusion(matched), match_frame(matched), None
    if request.json:
        names = {"first": request.first, "second": request.second, "layers": request.layers}
        numbers = {"comparisons": rows_of(frame), "left_out": tuple(matched.left_out)}
        content = names | numbers | {"conclusion": sentence}
    return Comparison(
        title=f"{request.first} and {request.second}, paired",
        frame=frame,
        table=match_table(matched),
        notes=(*(f"Left out: {reason}" for reason in matched.left_out), sentence),
        conclusion=sentence,
        left_out=tuple(matched.left_out),
        content=content,
        draw=drawn(board.only(rows), ["layers", "*-layers"], [request.first, request.second]),
    )
