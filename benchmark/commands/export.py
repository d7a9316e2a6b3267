"""What was measured as files for papers, spreadsheets and model cards: `export` and `layerboard.export`."""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from layerboard.benchmark import parsers
from layerboard.benchmark.commands.command import boards_of, command, ended_by_signals, records_of, say
from layerboard.benchmark.commands.result import Files, files_of
from layerboard.benchmark.option import Form, OnePath, Option, OptionalPath, Plain, Words
from layerboard.leaderboards.records.files import safe_name
from layerboard.zoo.errors import InputError, printable, unknown

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.leaderboards.board import Board

CAPTION = "The best layer of each backbone (layer/depth), in percent; the best in bold."
INTERVALS = r"$\pm$ is the 95\,\% margin of error."
HONEST = (
    "The layer is chosen on half of the test data and scored on the rest; "
    "in brackets, what that takes off the score of the best layer."
)
TIED = r"$^{\approx}$: tied with the best (95\,\%, corrected for the number of backbones)."
ARROW = r"$\uparrow$: another pooling of the layers scores higher."
PARTIAL = r"\dag: on a part of the dataset."
PAIRED = (
    "Paired comparison at the best layer of each backbone (layer/depth), in points. Held-out differences "
    "choose the layers on half of the test data and compare on the rest."
)
CKA = "Linear CKA between the last blocks:"
COST = "Cost of a forward pass: latency of one image, throughput at the best batch size. Measured on"
COSTS = ["backbone", "latency, ms", "images/s", "peak memory, MB", "weights", "GFLOPs", "dim"]

FileTexts = Iterator[tuple[str, str]]  # files below the folder of an export, each with its text


def _latex(records: "pd.DataFrame", request: "ExportRequest") -> FileTexts:
    """For each suite its leaderboard and honest scores; comparisons, CKA and costs where there are some."""
    from layerboard.leaderboards.pages.latex import escaped, latex_table
    from layerboard.leaderboards.sections.best import honest_table, untested
    from layerboard.leaderboards.sections.tables import main_table

    for board in boards_of(records, request.output):
        yield from _further_latex(board, request.backbones)
        table = main_table(board)
        if len(table.columns) <= 2:
            continue
        notes = [CAPTION, *([INTERVALS] if board.has_intervals else []), *([TIED] if board.compared else [])]
        notes += [escaped("".join(map(str, untested(board).pieces)))]
        notes += [ARROW] if any("↑" in str(cell) for cell in table.to_numpy().flat) else []
        notes += [PARTIAL] if any("†" in column for column in table.columns) else []
        yield f"{board.page}.tex", latex_table(table, 2, notes, board.page)
        if len(honest := honest_table(board)):
            yield f"{board.page}.honest.tex", latex_table(honest, 2, [HONEST], f"{board.page}-honest")


def _further_latex(board: "Board", named: Sequence[str]) -> FileTexts:
    """The first of the backbones that are named against each other one; CKA of last blocks; costs."""
    from layerboard.leaderboards.pages.latex import escaped, latex_table
    from layerboard.leaderboards.sections.cost import whole_table
    from layerboard.leaderboards.sections.similarity import cka_tables, last_table
    from layerboard.leaderboards.versus import match, match_table

    names = [each.name for each in board.backbones if not each.floor]
    firsts = [name for pattern in named[:1] for name in fnmatch.filter(names, pattern)][:1]
    for first, other in product(firsts, names):
        with suppress(InputError):  # of what cannot be compared there is no table
            table = match_table(match(board, (first, other), "best"))
            page = f"{board.page}.{safe_name(f'{first}--{other}')}"
            yield f"{page}.tex", latex_table(table, 1, [PAIRED], page)
    for number, each in enumerate(cka_tables(board.pairs), start=1):
        if len(table := last_table(board, each)):
            page = f"{board.page}.cka-{number}"
            yield f"{page}.tex", latex_table(table, 1, [CKA, escaped(f"{each.title}.")], page)
    for number, device in enumerate(board.costs.groups, start=1):
        rows = device.rows[device.rows["value"].notna()]
        if len(rows):
            page = f"{board.page}.cost-{number}"
            caption = [COST, escaped(f"{device.dataset}.")]
            yield f"{page}.tex", latex_table(whole_table(rows)[COSTS], 1, caption, page)


def _csv(records: "pd.DataFrame", request: "ExportRequest") -> FileTexts:
    from layerboard.leaderboards.pages.build import pages_of
    from layerboard.leaderboards.pages.csv import SUMS, csv_page, sums_text

    pages = [page for board in boards_of(records, request.output) for page in pages_of(board)]
    texts = dict(sorted((f"{page.name}.csv", csv_page(page)) for page in pages))
    yield from (texts | ({SUMS: sums_text(texts)} if texts else {})).items()


def _hub(records: "pd.DataFrame", request: "ExportRequest") -> FileTexts:
    from layerboard.leaderboards.board import Board
    from layerboard.leaderboards.hub import eval_results, model_indices

    board = Board.of(records)
    for name, text in model_indices(board).items():
        yield f"{safe_name(name)}/model-index.yaml", text
    benchmarks = {}
    for dataset, address in request.benchmarks.items():
        match = re.fullmatch(r"(\w[\w.-]*/\w[\w.-]*):(\w[\w.-]*)", address)
        if match is None:
            raise InputError(f"--benchmarks takes DATASET=OWNER/NAME:TASK; found {address!r}")
        benchmarks[dataset] = match[1], match[2]
    for name, files in eval_results(board, benchmarks).items():
        for file, text in files.items():
            yield f"{safe_name(name)}/.eval_results/{safe_name(file)}", text


FORMS = {"latex": _latex, "csv": _csv, "hub": _hub}  # each makes files of records and what was asked for


class ExportRequest(Form, kw_only=False):
    """What to hand on, and in which form."""

    form: Plain[str] = Option(..., "LaTeX tables, CSV files, or results for model cards.", choices=FORMS)
    _: KW_ONLY
    output: OnePath = Option("results", "Output folder of a run.", also="-o")
    to: OptionalPath = Option(None, "Folder to write to.", usual="OUTPUT/export")
    backbones: Words = Option((), "Names or patterns ('dino-*') to export.", also="-b", usual="all")
    benchmarks: Option[str | Sequence[str] | Mapping[str, str], Mapping[str, str]] = Option(
        (),
        "With hub: DATASET=OWNER/NAME:TASK, the benchmark of the Hub that a dataset corresponds to.",
        partial(parsers.by_name, parsers.text, "NAME=WORD"),
    )


@command("export", ExportRequest)
def export_command(request: ExportRequest) -> None:
    """Export scores as LaTeX tables, CSV files, or results for model cards of the Hub.

    - `latex`: tables with booktabs: the best layer of each backbone, with intervals, the best in bold, ties
      marked; the same with the layer chosen on held-out data; CKA between last blocks; costs. With
      `--backbones A B C` also paired comparisons of A with B and C.
    - `csv`: the numbers of every layer, as the leaderboard has them, with their digests in SHA256SUMS.
    - `hub`: BACKBONE/model-index.yaml for each trained backbone, for the front matter of its model card
      (`huggingface_hub.metadata_update`); with `--benchmarks` also BACKBONE/.eval_results/*.yaml.

    Example: `layerboard export latex -o results --to paper/tables`
    """
    with ended_by_signals("interrupted; what is written is whole, run again for the rest"):
        paths = export(**vars(request)).paths
    for path in paths:
        say(path)


@export_command.python
def export(request: ExportRequest) -> Files:
    """``paths`` are the files that were written, ``frame`` names them.

    Example:
        >>> import layerboard
        >>> [path.suffix for path in layerboard.export("csv", output="results", to="tables").paths]
        ['.csv', '']
    """
    from layerboard.zoo.atomic import write_whole

    if request.benchmarks and request.form != "hub":
        raise InputError(f"--benchmarks is an option of hub, not of {request.form}")
    records = chosen(records_of(request.output), request.backbones)
    folder = request.to or request.output / "export"
    files = dict(FORMS[request.form](records, request))
    if not files:
        raise InputError("nothing to export: no backbone has a score of a task that ranks")
    for name, text in files.items():
        write_whole(folder / name, printable(text))
    return files_of([folder / name for name in files], f"for {request.form}")


def chosen(records: "pd.DataFrame", patterns: Sequence[str]) -> "pd.DataFrame":
    """The records of some backbones, and of the random floor; all where no pattern is given."""
    from layerboard.leaderboards.scores.frames import is_floor

    if not patterns:
        return records
    names = sorted({str(name) for name in records["backbone"]})
    wanted: set[str] = set()
    for pattern in patterns:
        if not (fitting := fnmatch.filter(names, pattern)):
            raise unknown("backbone", pattern, names)
        wanted |= {*fitting}
    pairs = (records["other"] == "") | records["other"].isin(wanted)
    return records[(records["backbone"].isin(wanted) | is_floor(records)) & pairs].reset_index(drop=True)
