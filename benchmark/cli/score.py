"""The commands of ``score``. Heavy libraries are imported by the commands that need them.

Numbers that decide a score have no default here: where none is given, the protocol's counts.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from benchmark.scores.exported.options import Estimator, ProtocolName, SegmentProtocol
from benchmark.scores.exported.report import Cell, ScoreReport
from zoo.errors import InputError

score_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Scorers on their own, for features or predictions that any code has exported.",
)

OF_PROTOCOL = "the standard protocol's"
"""What the help says of an option whose default is a protocol's number, which only a run reads."""

WIDEST = 10_000
"""Characters of a line of a table."""


def literal(text: str) -> str:
    """A help text whose placeholders stay: Markdown takes ``<image>`` for a tag and drops it."""
    return re.sub(r"([<>*\[\]])", r"\\\1", text)


AsJson = Annotated[bool, typer.Option("--json", help="For machines: scores, parameters and details.")]


@score_app.command("knn")
def knn_command(
    features: Annotated[
        Path, typer.Option(help="An .npz with train, train_labels, test and test_labels (whole numbers).")
    ],
    k: Annotated[
        list[int] | None,
        typer.Option("--k", help="Neighbours; several may follow.", show_default=OF_PROTOCOL),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Of the vote exp(cosine / temperature).", show_default=OF_PROTOCOL),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Top-1 and top-5 of a k-nearest-neighbour vote by cosine."""
    from benchmark.scores.exported.knn import score_knn
    from tasks.protocols import STANDARD

    rule = STANDARD.knn
    found = score_knn(
        features, tuple(k or (rule.k,)), rule.temperature if temperature is None else temperature
    )
    show(found, as_json)


@score_app.command("fewshot")
def fewshot_command(
    features: Annotated[
        Path, typer.Option(help="An .npz with train, train_labels, test and test_labels (whole numbers).")
    ],
    shots: Annotated[
        list[int] | None,
        typer.Option("--shots", help="Items a class; several may follow.", show_default=OF_PROTOCOL),
    ] = None,
    penalty: Annotated[
        float | None,
        typer.Option(help="Of the squared weights.", show_default="chosen on held-out shots"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Top-1 of a linear probe in closed form on a few items a class, the mean of three draws."""
    from benchmark.scores.exported.probes import score_few_shot
    from tasks.protocols import STANDARD

    rule = STANDARD.fewshot
    if penalty is not None:
        if not 0 < penalty < float("inf"):
            raise InputError(f"expected a positive --penalty, found {penalty}")
        rule = replace(rule, penalties=(), penalty=penalty)
    show(score_few_shot(features, replace(rule, shots=tuple(shots or rule.shots))), as_json)


@score_app.command("linear")
def linear_command(
    features: Annotated[
        Path, typer.Option(help="An .npz with train, train_labels, test and test_labels (whole numbers).")
    ],
    epochs: Annotated[
        int | None, typer.Option(min=1, help="How often each item is seen.", show_default=OF_PROTOCOL)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Of the order and the held-out items.", show_default=OF_PROTOCOL),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Top-1 of a linear layer trained on all items, of features as they are and standardised (bn)."""
    from benchmark.scores.exported.probes import score_linear
    from tasks.protocols import STANDARD

    rule = STANDARD.linear
    rule = replace(
        rule, epochs=rule.epochs if epochs is None else epochs, seed=rule.seed if seed is None else seed
    )
    show(score_linear(features, rule), as_json)


@score_app.command("retrieval")
def retrieval_command(
    ground_truth: Annotated[Path, typer.Option(help="gnd_roxford5k.pkl, gnd_rparis6k.pkl or one like them.")],
    features: Annotated[
        Path | None,
        typer.Option(help="An .npz with database and queries, compared by cosine.", show_default=False),
    ] = None,
    similarity: Annotated[
        Path | None, typer.Option(help="Instead: an .npy [database queries].", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Scores mAP and mP@1, 5, 10, Easy, Medium and Hard; rows in the order of the ground truth."""
    from benchmark.scores.exported.retrieval import score_features, score_similarity

    path, given = one_of({"--features": features, "--similarity": similarity})
    scorer = score_features if given == "--features" else score_similarity
    show(scorer(path, ground_truth), as_json)


@score_app.command("davis")
def davis_command(
    ground_truth: Annotated[Path, typer.Option(help=literal("DAVIS root, or a folder of <sequence>/*.png."))],
    predictions: Annotated[
        Path, typer.Option(help=literal("Folder of <sequence>/*.png, pixel values are object ids."))
    ],
    as_json: AsJson = False,
) -> None:
    """J and F of predicted masks by the rules of the DAVIS-2017 evaluation (semi-supervised)."""
    from benchmark.scores.exported.davis import score_davis

    show(score_davis(ground_truth, predictions), as_json)


@score_app.command("spair")
def spair_command(
    dataset: Annotated[Path, typer.Option(help="SPair-71k root (PairAnnotation, JPEGImages).")],
    features: Annotated[
        Path | None,
        typer.Option(
            help=literal("Folder of [<category>/]<image>.npy, each [side side dim] of the letterboxed view."),
            show_default=False,
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="Instead: a .json with [x, y] in target image pixels for each keypoint of each pair file.",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[
        ProtocolName,
        typer.Option(
            metavar="<name>",
            help="Whose pairs, matches and averages: see list protocols.",
            show_choices=False,
        ),
    ] = ProtocolName.standard,
    split: Annotated[str, typer.Option(help="Folder of PairAnnotation.")] = "test",
    view_size: Annotated[
        int | None,
        typer.Option(min=1, help="Pixels of the view that --features show.", show_default="the protocol's"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """PCK of keypoints that are matched by features, or were predicted."""
    from benchmark.scores.exported.spair import read_dataset, score_features, score_predictions

    path, given = one_of({"--features": features, "--predictions": predictions})
    data = read_dataset(dataset, split, protocol.value)
    report = score_features(path, data, view_size) if given == "--features" else score_predictions(path, data)
    show(report, as_json)


@score_app.command("segment")
def segment_command(
    features: Annotated[
        Path | None,
        typer.Option(
            help=literal("An .npz with train and test [n h w dim], train_masks and test_masks [n H W]."),
            show_default=False,
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help=literal("Instead: a folder of <image>.png, pixel values are classes."), show_default=False
        ),
    ] = None,
    ground_truth: Annotated[
        Path | None,
        typer.Option(help="With --predictions: a folder of masks of the same names.", show_default=False),
    ] = None,
    classes: Annotated[
        int | None, typer.Option(min=1, help="Classes, from 0.", show_default="as the masks hold")
    ] = None,
    ignore: Annotated[
        list[int] | None,
        typer.Option(help="Labels of pixels that are not judged; several may follow.", show_default="255"),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="Cells that vote.", show_default=OF_PROTOCOL)
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Of the vote exp(cosine / temperature).", show_default=OF_PROTOCOL),
    ] = None,
    memory: Annotated[
        int | None, typer.Option(min=1, help="Cells of train that vote at most.", show_default=OF_PROTOCOL)
    ] = None,
    protocol: Annotated[
        SegmentProtocol,
        typer.Option(
            help="hummingbird: 255 is background, classes are renamed; capi: each pixel of a cell votes."
        ),
    ] = SegmentProtocol.standard,
    as_json: AsJson = False,
) -> None:
    """Mean IoU of a vote of labelled cells, or of predicted masks."""
    from benchmark.scores.exported.segment import Judged, score_features, score_predictions
    from benchmark.scores.exported.segment_pixels import exported_rule, score_by_pixels
    from tasks.datasets.scenes import VOC_2012
    from tasks.protocols import SEGMENTATION

    path, given = one_of({"--features": features, "--predictions": predictions})
    judged = Judged(classes, tuple(ignore or (255,)))
    if given == "--predictions":
        if ground_truth is None:
            raise InputError("--predictions needs --ground-truth, a folder of masks of the same names")
        show(score_predictions(ground_truth, path, judged), as_json)
        return
    cells = VOC_2012.memory if memory is None else memory
    if protocol is SegmentProtocol.capi:
        if temperature is not None:
            raise InputError("--temperature does not go with --protocol capi, whose votes have no weights")
        show(score_by_pixels(path, judged, exported_rule(k), cells), as_json)
        return
    rule = SEGMENTATION
    if temperature is not None and not temperature > 0:
        raise InputError(f"expected a positive --temperature, found {temperature}")
    votes = replace(
        rule.vote,
        k=rule.vote.k if k is None else k,
        temperature=rule.vote.temperature if temperature is None else temperature,
    )
    show(score_features(path, judged, replace(rule, vote=votes), cells, protocol), as_json)


@score_app.command("clustering")
def clustering_command(
    features: Annotated[
        Path | None,
        typer.Option(help="An .npz with features and labels (whole numbers or text).", show_default=False),
    ] = None,
    assignments: Annotated[
        Path | None, typer.Option(help="Instead: an .npz with clusters and labels.", show_default=False)
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="Clusters.", show_default="number of classes")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of k-means.", show_default=OF_PROTOCOL)] = None,
    n_init: Annotated[
        int | None,
        typer.Option(min=1, help="Runs of k-means; the best counts.", show_default=OF_PROTOCOL),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Purity, NMI and ARI of k-means clusters, or of finished ones."""
    from benchmark.scores.exported.clustering import score_assignments, score_features
    from tasks.protocols import STANDARD

    path, given = one_of({"--features": features, "--assignments": assignments})
    rule = STANDARD.clusters
    rule = replace(
        rule, seed=rule.seed if seed is None else seed, n_init=rule.n_init if n_init is None else n_init
    )
    show(score_features(path, k, rule) if given == "--features" else score_assignments(path), as_json)


@score_app.command("cka")
def cka_command(
    features: Annotated[
        list[Path],
        typer.Option(help="Two or more .npy files [n ...] of the same samples; several may follow."),
    ],
    estimator: Annotated[
        Estimator, typer.Option(help="HSIC; paper: unbiased, of Gram matrices scaled to [0, 1].")
    ] = Estimator.unbiased,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=4,
            help="Rows of a batch, in the given order.",
            show_default="all rows; for paper its protocol's",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Linear CKA of every representation with every other one."""
    from benchmark.scores.exported.cka import score_cka

    show(score_cka(features, estimator, batch_size), as_json)


def one_of(options: dict[str, Path | None]) -> tuple[Path, str]:
    """The one option that was given, and its name; raises InputError for none or several."""
    given = [(path, name) for name, path in options.items() if path is not None]
    if len(given) != 1:
        found = "both" if given else "neither"
        raise InputError(f"expected either {' or '.join(options)}, found {found}")
    return given[0]


def show(report: ScoreReport, as_json: bool) -> None:
    """Print a report as JSON or as a table."""
    if as_json:
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
    sentences = (
        f"{report.n:,} {report.unit}, protocol: {report.protocol}.{scale}",
        report.reason,
        *report.notes,
    )
    for sentence in filter(None, sentences):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _text(cell: Cell, places: int) -> str:
    if cell is None:
        return ""
    return f"{cell:.{places}f}" if isinstance(cell, float) else str(cell)
