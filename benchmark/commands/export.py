"""Results for papers and model cards, and networks as ONNX: the command `export` and `layerboard.export`."""

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from layerboard.benchmark.commands.command import boards_of, public, records_of, run_backbones
from layerboard.benchmark.commands.load import LoadRequest, whole_backbone
from layerboard.benchmark.commands.result import Files, files_result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, Option, OptionalPath, Plain, Words
from layerboard.benchmark.forms.request import Cache, ResultsOptions, cache_option
from layerboard.leaderboards.blocks.display import NOT_WORSE, ON_A_PART
from layerboard.leaderboards.records.files import safe_name
from layerboard.zoo.errors import InputError, ensure, printable
from layerboard.zoo.spec import VectorPooling

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.leaderboards.board.board import Board

CAPTION = "The best layer and pooling of each backbone (layer/depth), in percent; the best in bold."
INTERVALS = r"$\pm$ is the 95\,\% margin of error; in brackets, both ends where they are unlike."
HALVES = (
    "Layers are chosen on half of the test data and scored on the rest ({meaning}); "
    "in brackets, the difference from the score of the best layer."
)
MAYBE = rf"$^{{\approx}}$: {NOT_WORSE} than the best of its column (95\,\%)."
PARTIAL = rf"\dag: {ON_A_PART}."
PAIRED = (
    "Paired comparison of two backbones, each at its highest layer (layer/depth), in points. Intervals and p "
    "are of the difference of their true best layers, whichever these are."
)
CKA = "Linear CKA between the last blocks:"
COST = "Cost of a forward pass: latency of one image, throughput at the best batch size. Measured on"
COSTS = ["backbone", "latency, ms", "images/s", "peak memory, MB", "weights", "GFLOPs", "dim"]

PICTURES = 8  # on which an exported network is compared with torch

FileTexts = Iterator[tuple[str, str]]  # texts of files by their path below the folder of an export


def _latex(records: "pd.DataFrame", request: "ExportRequest") -> FileTexts:
    """For each suite its leaderboard, also held out, and comparisons, CKA and costs where they exist."""
    from layerboard.leaderboards.blocks.display import HELD_OUT
    from layerboard.leaderboards.sections.best import held_out_table, untested
    from layerboard.leaderboards.sections.tables import main_table
    from layerboard.leaderboards.writers.latex import escaped, latex_table

    for board in boards_of(records, request.output):
        yield from _further_latex(board, request.backbones)
        table = main_table(board)
        if len(table.columns) <= 2:
            continue
        notes = [CAPTION, *([INTERVALS] if board.has_intervals else []), *([MAYBE] if board.compared else [])]
        notes += [escaped("".join(map(str, untested(board).pieces)))]
        notes += [PARTIAL] if any("†" in column for column in table.columns) else []
        yield f"{board.page}.tex", latex_table(table, 2, notes, board.page)
        if len(held_out := held_out_table(board)):
            note, label = HALVES.format(meaning=HELD_OUT), f"{board.page}-held-out"
            yield f"{board.page}.held-out.tex", latex_table(held_out, 2, [note], label)


def _further_latex(board: "Board", named: Sequence[str]) -> FileTexts:
    """Comparisons of the first named backbone with each of the others; CKA of last blocks; costs."""
    from layerboard.leaderboards.findings.paired import match_backbones, match_table
    from layerboard.leaderboards.sections.cost import whole_table
    from layerboard.leaderboards.sections.similarity import cka_tables, last_table
    from layerboard.leaderboards.writers.latex import escaped, latex_table

    names = [each.name for each in board.backbones if not each.floor]
    firsts = [name for pattern in named[:1] for name in fnmatch.filter(names, pattern)][:1]
    for first, other in product(firsts, names):
        with suppress(InputError):  # backbones that cannot be compared have no table
            table = match_table(match_backbones(board, (first, other), "best"))
            page = f"{board.page}.{safe_name(f'{first}--{other}')}"
            yield f"{page}.tex", latex_table(table, 1, [PAIRED], page)
    for number, each in enumerate(cka_tables(board), start=1):
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
    from layerboard.leaderboards.blocks.csv import SUMS, csv_page, sums_text
    from layerboard.leaderboards.writers.build import pages_of

    pages = [page for board in boards_of(records, request.output) for page in pages_of(board)]
    texts = dict(sorted((f"{page.name}.csv", csv_page(page)) for page in pages))
    yield from (texts | ({SUMS: sums_text(texts)} if texts else {})).items()


def _hub(records: "pd.DataFrame", request: "ExportRequest") -> FileTexts:
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.exchange.hub import model_indices

    board = Board.of(records)
    for name, text in model_indices(board).items():
        yield f"{safe_name(name)}/model-index.yaml", text


# functions from records and the request to texts of files; None: a network is exported
FORMS: dict[str, Callable[["pd.DataFrame", "ExportRequest"], FileTexts] | None] = {
    "latex": _latex,
    "csv": _csv,
    "hub": _hub,
    "onnx": None,
}


class OnnxOptions(Form, panel="Networks (onnx)"):
    """Options of `export onnx`."""

    layer: Option[int | str | None, str | None] = Option(
        None,
        "Layer where the network ends, a block or 'final'; or a list, with one output each.",
        str,
        usual="the last block",
    )
    pooling: Plain[Literal["auto", "grid", VectorPooling]] = Option(
        "auto",
        "Output of each layer, as in `run --poolings`: cls, mean, cls+mean, gem or patchwise; grid: patch "
        "tokens in their places; auto: class token and grid.",
    )
    batch: Plain[int | None] = Option(None, "Fixed batch size.", least=1, usual="any number")
    weights: OptionalPath = Option(
        None, "File or directory of weights to use instead of its own, also as NAME=PATH."
    )
    cache: Cache = cache_option("Folder of downloaded weights.")


class ExportRequest(OnnxOptions, ResultsOptions, kw_only=False):
    """Options of `export`: what to write, and in which form."""

    form: Plain[str] = Option(
        ..., "LaTeX tables, CSV files, results for model cards, or a network.", choices=FORMS
    )
    name: Option[Any, str | None] = Option(
        None, "With onnx: the backbone.", parsers.backbone, positional=True, usual="none"
    )
    _: KW_ONLY
    to: OptionalPath = Option(
        None, "Folder to write to; for a network, the file.", usual="OUTPUT/export, or NAME.onnx in it"
    )
    backbones: Words = Option((), "Names or patterns ('dino-*') to export.", also="-b", usual="all")


@public("export", ExportRequest)
def export(request: ExportRequest) -> Files:
    """Export tables, results for model cards, or a network as ONNX.

    - `latex`: booktabs tables of the best layer of each backbone, with intervals, the best in bold and those
      that may be the best marked; the same with held-out choices of the layer; CKA between last blocks;
      costs. With `--backbones A B C` also paired comparisons of A with B and C.
    - `csv`: the numbers of every layer, as on the leaderboard, with checksums in SHA256SUMS.
    - `hub`: BACKBONE/model-index.yaml for each trained backbone, for the front matter of its model card
      (`huggingface_hub.metadata_update`).
    - `onnx`: the network of a backbone up to a layer, which maps uint8 RGB images of its input size to class
      tokens and grids, such as `export onnx dino-b16 --layer 8 --to dino.onnx`. onnxruntime runs it on
      eight packaged images; no file is kept if an output is further than 0.0001 of its largest number from
      torch's. `run -b onnx:FILE` evaluates it.

    Example: `layerboard export latex -o results --to paper/tables`

    Returns:
        ``paths`` are the written files; ``frame`` lists them, or the outputs of a network.

    Example:
        >>> import layerboard
        >>> [path.suffix for path in layerboard.export("csv", output="results", to="tables").paths]
        ['.csv', '.csv', '']
    """
    from layerboard.zoo.atomic import write_whole

    make = FORMS[request.form]
    if bool(request.name) != (make is None):
        raise InputError(f"export {request.form} takes {'no backbone' if make else 'a backbone'} behind it")
    if make is None:
        return _network(request)
    records = chosen(records_of(request.output), request)
    folder = request.to or request.output / "export"
    files = dict(make(records, request))
    ensure(files, "nothing to export: no backbone has a score in a ranking task")
    for name, text in files.items():
        write_whole(folder / name, printable(text))
    return files_result([folder / name for name in files], f"for {request.form}")


def _network(request: ExportRequest) -> Files:
    """Write the network of a backbone as ONNX."""
    import pandas as pd

    from layerboard.benchmark.plan.layers import select_layers
    from layerboard.mini.packs import packaged_pictures
    from layerboard.zoo.own.onnx_export import TOLERANCE, write_onnx

    assert request.name is not None
    path = request.to or request.output / "export" / f"{safe_name(request.name)}.onnx"
    ensure(not path.is_dir(), f"--to takes the file of the network; {path} is a folder")
    backbone, view = whole_backbone(
        LoadRequest(request.name, weights=request.weights, cache=request.cache, device="cpu")
    )
    spec = backbone.spec
    layers = select_layers(request.layer or str(spec.depth), spec)
    ensure(layers[0].index != 0, "layer 0 is what enters the first block: name blocks from 1 on")
    usual: tuple[Any, ...] = ("cls", "grid") if spec.has_cls else ("grid",)
    outputs = list(product(layers, usual if request.pooling == "auto" else (request.pooling,)))
    differences = write_onnx(backbone, outputs, packaged_pictures(PICTURES), view, request.batch, path)
    notes = [
        f"{name}: at most {largest:.1e} from torch, {share:.1e} of its largest number (limit {TOLERANCE:g})"
        for name, largest, share in differences
    ]
    frame = pd.DataFrame(differences, columns=["output", "largest", "share"])
    title, lines = f"{spec.name} as ONNX", (str(path), *notes)
    return Files(title=title, frame=frame, notes=tuple(notes), paths=(path,), lines=lines)


def chosen(records: "pd.DataFrame", request: ExportRequest) -> "pd.DataFrame":
    """The records of the named backbones and of the random floor; all of them without a pattern."""
    from layerboard.leaderboards.board.frames import is_floor

    if not request.backbones:
        return records
    wanted = run_backbones(request.backbones, {*records["backbone"]}, request.output)
    pairs = (records["other"] == "") | records["other"].isin(wanted)
    return records[(records["backbone"].isin(wanted) | is_floor(records)) & pairs].reset_index(drop=True)
