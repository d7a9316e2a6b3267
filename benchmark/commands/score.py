"""Scorers on their own, for features or predictions that any code has exported: the commands of `score`.

Numbers that decide a score have no default here: where none is given, the protocol's counts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from benchmark import parsers
from benchmark.commands.command import command
from benchmark.option import (
    OnePath,
    OneWord,
    Option,
    OptionalPath,
    OptionalReal,
    OptionalWhole,
    Paths,
    Switch,
    Wholes,
)
from tasks.protocols import PROTOCOLS
from zoo.errors import InputError

if TYPE_CHECKING:
    from benchmark.scores.exported.report import Cell, ScoreReport

CkaEstimator = Literal["unbiased", "biased", "paper"]
SegmentProtocol = Literal["standard", "hummingbird", "capi"]
Numbers = int | Sequence[int]

OF_PROTOCOL = "the standard protocol's"
"""What the help says of an option whose default is a protocol's number, which only a run reads."""

LABELLED = "An .npz with train, train_labels, test and test_labels (whole numbers)."
FOR_MACHINES = "For machines: scores, parameters and details."

WIDEST = 10_000
"""Characters of a line of a table."""


@dataclass(frozen=True, kw_only=True)
class KnnRequest:
    """What to classify by its neighbours."""

    features: OnePath = Option(..., LABELLED, parsers.path, positional=False)
    k: Wholes = Option((), "Neighbours.", parsers.wholes, several=True, usual=OF_PROTOCOL)
    temperature: OptionalReal = Option(
        None, "Of the vote exp(cosine / temperature).", parsers.positive, usual=OF_PROTOCOL
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score knn", KnnRequest)
def knn_command(request: KnnRequest) -> None:
    """Top-1 and top-5 of a k-nearest-neighbour vote by cosine."""
    from benchmark.scores.exported.classification import score_knn

    _show(score_knn(request.features, request.k, request.temperature), request.json)


@dataclass(frozen=True, kw_only=True)
class FewShotRequest:
    """What to classify by a few labels."""

    features: OnePath = Option(..., LABELLED, parsers.path, positional=False)
    shots: Wholes = Option((), "Items a class.", parsers.wholes, several=True, usual=OF_PROTOCOL)
    penalty: OptionalReal = Option(
        None, "Of the squared weights.", parsers.positive, usual="chosen on held-out shots"
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score fewshot", FewShotRequest)
def fewshot_command(request: FewShotRequest) -> None:
    """Top-1 of a linear probe in closed form on a few items a class, the mean of three draws."""
    from benchmark.scores.exported.classification import score_few_shot

    _show(score_few_shot(request.features, request.shots, request.penalty), request.json)


@dataclass(frozen=True, kw_only=True)
class LinearRequest:
    """What to train a linear layer on, and for how long."""

    features: OnePath = Option(..., LABELLED, parsers.path, positional=False)
    epochs: OptionalWhole = Option(
        None, "How often each item is seen.", parsers.whole, least=1, usual=OF_PROTOCOL
    )
    seed: OptionalWhole = Option(
        None, "Of the order and the held-out items.", parsers.whole, least=0, usual=OF_PROTOCOL
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score linear", LinearRequest)
def linear_command(request: LinearRequest) -> None:
    """Top-1 of a linear layer trained on all items, of features as they are and standardised (bn)."""
    from benchmark.scores.exported.classification import score_linear

    _show(score_linear(request.features, request.epochs, request.seed), request.json)


@dataclass(frozen=True, kw_only=True)
class RetrievalRequest:
    """What to rank, and what is true of it."""

    ground_truth: OnePath = Option(
        ..., "gnd_roxford5k.pkl, gnd_rparis6k.pkl or one like them.", parsers.path, positional=False
    )
    features: OptionalPath = Option(
        None, "An .npz with database and queries, compared by cosine.", parsers.path
    )
    similarity: OptionalPath = Option(None, "Instead: an .npy [database queries].", parsers.path)
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score retrieval", RetrievalRequest)
def retrieval_command(request: RetrievalRequest) -> None:
    """Scores mAP and mP@1, 5, 10, Easy, Medium and Hard; rows in the order of the ground truth."""
    from benchmark.scores.exported.retrieval import score_features, score_similarity

    name, path = _one_of(features=request.features, similarity=request.similarity)
    score = score_features if name == "features" else score_similarity
    _show(score(path, request.ground_truth), request.json)


@dataclass(frozen=True, kw_only=True)
class DavisRequest:
    """What masks were predicted, and what is true."""

    ground_truth: OnePath = Option(
        ..., "DAVIS root, or a folder of <sequence>/*.png.", parsers.path, positional=False
    )
    predictions: OnePath = Option(
        ..., "Folder of <sequence>/*.png, pixel values are object ids.", parsers.path, positional=False
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score davis", DavisRequest)
def davis_command(request: DavisRequest) -> None:
    """J and F of predicted masks by the rules of the DAVIS-2017 evaluation (semi-supervised)."""
    from benchmark.scores.exported.davis import score_davis

    _show(score_davis(request.ground_truth, request.predictions), request.json)


@dataclass(frozen=True, kw_only=True)
class SpairRequest:
    """What to find keypoints by, and by whose rules."""

    dataset: OnePath = Option(
        ..., "SPair-71k root (PairAnnotation, JPEGImages).", parsers.path, positional=False
    )
    features: OptionalPath = Option(
        None,
        "Folder of [<category>/]<image>.npy, each [side side dim] of the letterboxed view.",
        parsers.path,
    )
    predictions: OptionalPath = Option(
        None,
        "Instead: a .json with [x, y] in target image pixels for each keypoint of each pair file.",
        parsers.path,
    )
    protocol: OneWord = Option(
        "standard",
        "Whose pairs, matches and averages: see list protocols.",
        parsers.choice,
        choices=tuple(protocol.name for protocol in PROTOCOLS if protocol.speaks_of("spair")),
    )
    split: OneWord = Option("test", "Folder of PairAnnotation.", parsers.text)
    view_size: OptionalWhole = Option(
        None,
        "Pixels of the view that --features show.",
        parsers.whole,
        least=1,
        usual="the protocol's",
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score spair", SpairRequest)
def spair_command(request: SpairRequest) -> None:
    """PCK of keypoints that are matched by features, or were predicted."""
    from benchmark.scores.exported.spair import read_dataset, score_features, score_predictions

    name, path = _one_of(features=request.features, predictions=request.predictions)
    task = read_dataset(request.dataset, request.split, request.protocol)
    if name == "features":
        _show(score_features(path, task, request.view_size), request.json)
    else:
        _show(score_predictions(path, task), request.json)


@dataclass(frozen=True, kw_only=True)
class SegmentRequest:
    """What to label the cells of images by, and by whose rules."""

    features: OptionalPath = Option(
        None, "An .npz with train and test [n h w dim], train_masks and test_masks [n H W].", parsers.path
    )
    predictions: OptionalPath = Option(
        None, "Instead: a folder of <image>.png, pixel values are classes.", parsers.path
    )
    ground_truth: OptionalPath = Option(
        None, "With --predictions: a folder of masks of the same names.", parsers.path
    )
    classes: OptionalWhole = Option(
        None, "Classes, from 0.", parsers.whole, least=1, usual="as the masks hold"
    )
    ignore: Wholes = Option(
        (), "Labels of pixels that are not judged.", parsers.wholes, several=True, usual="255"
    )
    k: OptionalWhole = Option(None, "Cells that vote.", parsers.whole, least=1, usual=OF_PROTOCOL)
    temperature: OptionalReal = Option(
        None, "Of the vote exp(cosine / temperature).", parsers.positive, usual=OF_PROTOCOL
    )
    memory: OptionalWhole = Option(
        None, "Cells of train that vote at most.", parsers.whole, least=1, usual=OF_PROTOCOL
    )
    protocol: Option[SegmentProtocol, SegmentProtocol] = Option(
        "standard",
        "hummingbird: 255 is background, classes are renamed; capi: each pixel of a cell votes.",
        parsers.choice,
        choices=get_args(SegmentProtocol),
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score segment", SegmentRequest)
def segment_command(request: SegmentRequest) -> None:
    """Mean IoU of a vote of labelled cells, or of predicted masks."""
    from benchmark.scores.exported.segment import (
        Judged,
        exported_rule,
        score_by_pixels,
        score_features,
        score_predictions,
    )

    name, path = _one_of(features=request.features, predictions=request.predictions)
    judged = Judged(request.classes, request.ignore or (255,))
    if name == "predictions":
        if request.ground_truth is None:
            raise InputError("--predictions needs --ground-truth, a folder of masks of the same names")
        report = score_predictions(request.ground_truth, path, judged)
    elif request.protocol == "capi":
        if request.temperature is not None:
            raise InputError("--temperature does not go with --protocol capi, whose votes have no weights")
        report = score_by_pixels(path, judged, exported_rule(request.k), request.memory)
    else:
        numbers = (request.k, request.temperature, request.memory)
        report = score_features(path, judged, *numbers, hummingbird=request.protocol == "hummingbird")
    _show(report, request.json)


@dataclass(frozen=True, kw_only=True)
class ClusteringRequest:
    """What to cluster, and how."""

    features: OptionalPath = Option(
        None, "An .npz with features and labels (whole numbers or text).", parsers.path
    )
    assignments: OptionalPath = Option(None, "Instead: an .npz with clusters and labels.", parsers.path)
    k: OptionalWhole = Option(None, "Clusters.", parsers.whole, least=1, usual="number of classes")
    seed: OptionalWhole = Option(None, "Of k-means.", parsers.whole, least=0, usual=OF_PROTOCOL)
    n_init: OptionalWhole = Option(
        None, "Runs of k-means; the best counts.", parsers.whole, least=1, usual=OF_PROTOCOL
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score clustering", ClusteringRequest)
def clustering_command(request: ClusteringRequest) -> None:
    """Purity, NMI and ARI of k-means clusters, or of finished ones."""
    from benchmark.scores.exported.clustering import score_assignments, score_features

    name, path = _one_of(features=request.features, assignments=request.assignments)
    if name == "features":
        _show(score_features(path, request.k, request.seed, request.n_init), request.json)
    else:
        _show(score_assignments(path), request.json)


@dataclass(frozen=True, kw_only=True)
class CkaRequest:
    """What to compare, and how."""

    features: Paths = Option(
        ...,
        "Two or more .npy files [n ...] of the same samples.",
        parsers.paths,
        several=True,
        positional=False,
    )
    estimator: Option[CkaEstimator, CkaEstimator] = Option(
        "unbiased",
        "HSIC; paper: unbiased, of Gram matrices scaled to [0, 1].",
        parsers.choice,
        choices=get_args(CkaEstimator),
    )
    batch_size: OptionalWhole = Option(
        None,
        "Rows of a batch, in the given order.",
        parsers.whole,
        least=4,
        usual="all rows; for paper its protocol's",
    )
    json: Switch = Option(False, FOR_MACHINES, parsers.switch)


@command("score cka", CkaRequest)
def cka_command(request: CkaRequest) -> None:
    """Linear CKA of every representation with every other one."""
    from benchmark.scores.exported.cka import score_cka

    _show(score_cka(request.features, request.estimator, request.batch_size), request.json)


SCORE_COMMANDS = (
    *(knn_command, fewshot_command, linear_command, retrieval_command, davis_command, spair_command),
    *(segment_command, clustering_command, cka_command),
)


def _one_of(**options: Path | None) -> tuple[str, Path]:
    """Name and path of the one option that was given; raises InputError for none or several."""
    given = [(name, path) for name, path in options.items() if path is not None]
    if len(given) != 1:
        flags = " or ".join(f"--{name}" for name in options)
        raise InputError(f"expected either {flags}, found {'both' if given else 'neither'}")
    return given[0]


def _show(report: "ScoreReport", for_machines: bool) -> None:
    """Print a report as JSON or as a table."""
    if for_machines:
        typer.echo(json.dumps(report.as_json(), indent=2, allow_nan=False))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column(escape(report.grid.corner), overflow="fold")
    for column in report.grid.columns:
        table.add_column(escape(column), justify="right")
    places = 2 if report.scale == "percent" else 4
    for name, cells in report.grid.rows.items():
        table.add_row(escape(name), *(_text(cell, places) for cell in cells))
    console = Console()
    # a table that is wider than the screen keeps its digits; the terminal wraps its lines
    unbounded = console.options.update(max_width=WIDEST)
    console.width = max(console.width, Measurement.get(console, unbounded, table).maximum)
    console.print(table)
    scale = " Scores are percentages." if report.scale == "percent" else ""
    summary = f"{report.n:,} {report.unit}, protocol: {report.protocol}.{scale}"
    for sentence in filter(None, (summary, report.reason, *report.notes)):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _text(cell: "Cell", places: int) -> str:
    if cell is None:
        return ""
    return f"{cell:.{places}f}" if isinstance(cell, float) else str(cell)
