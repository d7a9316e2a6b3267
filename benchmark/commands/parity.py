"""Check that two backbones compute the same: the command `compare --parity` and `layerboard.parity`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import drawn, ended_by_signals, rows_of, say, say_json
from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Option, OptionalPath, Plain, called_with, of_form
from layerboard.benchmark.forms.request import (
    BACKBONES,
    IMAGES,
    WEIGHTS,
    DeviceOptions,
    GivenNetwork,
    Images,
    Request,
    Weights,
)
from layerboard.zoo.errors import InputError, counted
from layerboard.zoo.spec import BackboneSpec, Dtype, Layer

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.charts.chart import Chart

Network = Option[str | Path | GivenNetwork, str]

# Measured: another order of summation moves a float32 network by 1 to 3 units of rounding a block. A change
# of the computation shows as a jump from one block to the next, rounding as slow growth.
ROUNDINGS = 4
JUMP = 2.0


class ParityOptions(DeviceOptions, panel="With --parity"):
    """On what to compare two backbones that should be the same."""

    images: Images = Option((), IMAGES, parsers.images, usual="those of the mini suite")
    weights: Weights = Option((), WEIGHTS, parsers.weights)


class ParityRequest(ParityOptions, kw_only=False):
    """Options of `layerboard.parity`: two backbones, and the images to compare them on."""

    first: Network = Option(..., f"The reference. {BACKBONES}", parsers.backbone)
    second: Network = Option(..., "The other one.", parsers.backbone)
    _: KW_ONLY
    dtype: Plain[Dtype] = Option("float32", "Dtype of both, unless a name gives one (as in NAME@bfloat16).")
    output: OptionalPath = Option(
        None, "Folder in which to keep the records of the comparison.", also="-o", usual="none"
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Parity(Result):
    """Two backbones, layer by layer: ``conclusion`` says where they diverge and whether scores differ."""

    conclusion: str
    parts_at: str | None  # the first layer that differs by more than rounding; None if none does


def say_parity(request: ParityRequest, json: bool) -> None:
    """Print the comparison of the command ``compare --parity``."""
    with ended_by_signals("interrupted; stored features are kept") as report:
        answer = of_form(parity)(request, report)
    if json:
        scores = [row for part in answer.parts for row in rows_of(part.frame)]
        numbers = {"layers": rows_of(answer.frame), "scores": scores, "parts_at": answer.parts_at}
        say_json(numbers | {"conclusion": answer.conclusion})
    else:
        say(answer.text())


@called_with(ParityRequest)
def parity(request: ParityRequest, report: "Reporter | None" = None) -> Parity:
    """Find the layer at which two backbones diverge that should be the same, such as a port or an export.

    Does what ``layerboard compare --parity`` does. Both are shown the same images. ``frame`` has one row per
    layer: layer, drift (median), drift_max, as fractions of the vectors' norms.

    Example:
        >>> import layerboard
        >>> found = layerboard.parity("mini-dino", "mini-dino@bfloat16", images="photos")
        >>> found.parts_at, found.conclusion
        (None, ...)
    """
    from layerboard.benchmark.api import execute
    from layerboard.benchmark.engines.progress import Silent, reporter_for
    from layerboard.benchmark.plan.backbones import find_backbones
    from layerboard.benchmark.plan.suites import SUITES
    from layerboard.tasks.datasets.catalogue import read_own
    from layerboard.tasks.datasets.classes import Classification
    from layerboard.tasks.datasets.reading.archives import unpacked
    from layerboard.tasks.framework.protocols import STANDARD

    names = request.first, request.second
    asked = Request.of(request, backbones=names, output="results", floor=False, examples=False)
    specs = find_backbones(asked, SUITES[0], Silent())
    layers = ",".join(map(str, _shared(specs)))
    if vectors := specs[0].vectors or specs[1].vectors:  # an ONNX file of these alone
        asked = replace(
            asked, poolings=(vectors,) if vectors in parsers.USUAL_POOLINGS else ("mean", vectors)
        )
    # without a folder, the images are those of the mini suite, which have classes
    classes = all(
        isinstance(read_own(unpacked(folder, request.cache)), Classification) for folder in request.images
    )
    tasks = ["layerboard.tasks.similarity.drift:PARITY", *(["knn"] if classes else [])]
    with TemporaryDirectory() as folder:
        output = request.output or Path(folder)
        whole = replace(asked, tasks=tasks, layers=layers, output=output, engine="local")
        summary = execute(whole, report or reporter_for(None), [STANDARD])
        rows = summary.records[summary.records["task"] == "parity"]
        if rows.empty or summary.board is None:
            raise InputError(
                f"{specs[0].name} and {specs[1].name}: {'; '.join(map(str, summary.done.failures))}"
            )
        return _said(specs, rows, summary.board)


def _shared(specs: Sequence[BackboneSpec]) -> list[Layer]:
    """The layers that both backbones have; raises InputError unless these are two of the same shape."""
    if len(specs) != 2:
        names = ", ".join(spec.name for spec in specs)
        raise InputError(f"parity takes two different backbones, found {names}")
    first, second = specs
    layers = [layer for layer in first.layers if second.has(layer)]
    # vectors have no grid, and patchwise ones several cells of it side by side
    kept = {"stride": 1} if first.vectors or second.vectors else {}
    kept |= {"width": 1} if "patchwise" in (first.vectors, second.vectors) else {}
    stages, others = ([replace(spec.stage_of(each), blocks=1, **kept) for each in layers] for spec in specs)
    are_whole = first.shown is second.shown is None  # an ONNX file may have only some layers
    if not layers or stages != others or (are_whole and first.stages != second.stages):
        shapes = (
            f"{spec.name} has {spec.depth} blocks of {spec.width} channels and cells of {spec.patch_size} px"
            for spec in specs
        )
        raise InputError(
            f"parity compares layer by layer, but {' and '.join(shapes)}; compare takes backbones of "
            "different shapes"
        )
    return layers


def _said(specs: Sequence[BackboneSpec], rows: "pd.DataFrame", board: "Board") -> Parity:
    import pandas as pd
    import torch

    first, second = (spec.name for spec in specs)
    places = [str(Layer.of_record(*fields)) for fields in zip(rows["layer"], rows["tap"], strict=True)]
    rows = rows.assign(layer=places)  # in the order of a forward
    largest = partial(pd.Series.max, skipna=False)  # of both poolings; NaN: not finite in one of them
    frame = rows.pivot_table("value", "layer", "metric", largest, dropna=False, sort=False).reset_index()
    frame = frame.rename(columns={"drift-max": "drift_max"})[["layer", "drift", "drift_max"]]
    formats = (getattr(torch, spec.dtype.removeprefix("amp-")) for spec in specs)
    epsilon = max(torch.finfo(dtype).eps for dtype in formats)
    parts_at, sentence = first_difference(frame, epsilon)
    parts = tuple(_scores(board, (first, second)))
    conclusion = f"{first} and {second}, {counted(int(rows['n'].max()), 'images')}: {sentence}"
    return Parity(
        title=f"{first} and {second}, layer by layer",
        frame=frame,
        table=frame.assign(**{name: frame[name].map("{:.1e}".format) for name in ("drift", "drift_max")}),
        notes=(conclusion,),
        parts=parts,
        conclusion=" ".join([conclusion, *(note for part in parts for note in part.notes)]),
        parts_at=parts_at,
        draw=lambda: chain([_drift_chart(rows)], drawn(board, ["*-layers"])()),
    )


def _drift_chart(rows: "pd.DataFrame") -> "Chart":
    """The median difference of two backbones at every block."""
    from layerboard.leaderboards.blocks.blocks import Plot
    from layerboard.leaderboards.charts.chart import Chart
    from layerboard.leaderboards.charts.pictures import picture_spec

    blocks = rows[(rows["metric"] == "drift") & (rows["tap"] == "block")].sort_values("layer")
    lines = blocks.assign(series=blocks["pooling"], x=blocks["layer"], y=100 * blocks["value"])
    plot = Plot(lines, "lines", "Drift of vectors", "block", "median difference, % of the norm")
    return Chart("drift", picture_spec(plot, ()) | {"background": "white"})


def first_difference(frame: "pd.DataFrame", epsilon: float) -> tuple[str | None, str]:
    """The first layer that differs by more than rounding (None if none does), and a sentence about it.

    The frame has one row per layer with ``layer``, ``drift`` and ``drift_max``; ``epsilon`` is the relative
    precision of the coarser of the two dtypes.
    """
    names, medians = list(frame["layer"]), list(frame["drift"])
    apart = [name for name, most in zip(names, frame["drift_max"], strict=True) if most != 0]
    if not apart:
        return None, "every layer is the same to the bit."
    if broken := [name for name, median in zip(names, medians, strict=True) if median != median]:
        return broken[0], f"numbers of layer {broken[0]} are not finite in one of them."
    largest = f"The largest median difference is {max(medians):.1e} of a vector's length."
    if names.index(apart[0]) > 1:  # a block before it sums in the same order, so this is no rounding
        return apart[0], f"they part at layer {apart[0]}; all before are the same to the bit. {largest}"
    # blocks from each layer to the one before, at least 1: an ONNX file may have only some layers
    numbers = [int(digits[0]) if (digits := re.match(r"\d+", name)) else 0 for name in names]
    steps = [max(1, number - before) for before, number in pairwise((0, *numbers))]
    for name, before, median, blocks in zip(names, [0.0, *medians], medians, steps, strict=False):
        if median > max(ROUNDINGS * epsilon * blocks, (1 + (JUMP - 1) * blocks) * before):
            rest = "" if name == names[0] else "; all before are the same but for rounding"
            return name, f"they part at layer {name}{rest}. {largest}"
    slowly = "" if max(medians) <= ROUNDINGS * epsilon * steps[0] else ", which grows from layer to layer"
    return None, f"they differ by no more than rounding{slowly}. {largest}"


def _scores(board: "Board", names: tuple[str, str]) -> Iterator[Result]:
    """The paired differences of scores at every layer; nothing if there are no scores."""
    import pandas as pd

    from layerboard.leaderboards.findings.paired import conclusion, match_backbones, match_frame, match_table

    if not board.columns:
        return
    try:
        matched = match_backbones(board, names, "numbered")
    except InputError as error:
        yield Result(title="Scores", frame=pd.DataFrame(), notes=(f"{error}.",))
    else:
        yield Result(
            title="Scores",
            frame=match_frame(matched),
            table=match_table(matched),
            notes=(conclusion(matched),),
        )
