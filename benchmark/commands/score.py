"""The commands of `score`: scorers for features or predictions that any code has exported.

Numbers that change a score have no default here; where one is not given, that of the protocol is used.
"""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from layerboard.benchmark.commands.cka import CkaEstimator
from layerboard.benchmark.commands.command import Command, say, say_json
from layerboard.benchmark.commands.result import rows_text, wrap_text
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import (
    Form,
    OnePath,
    Option,
    OptionalPath,
    Paths,
    Plain,
    Wholes,
    docstring,
)
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.zoo.errors import InputError

if TYPE_CHECKING:
    from layerboard.benchmark.exported.report import ScoreReport

OF_PROTOCOL = "the standard protocol's"  # read only when a scorer runs


class ScoreRequest(Form):
    """What to score, and how: a form whose docstring is the help of its command."""

    home: ClassVar[str] = ""  # module of `benchmark.exported`; "": of the command's name
    json: Plain[bool] = Option(False, "Print JSON: scores, parameters and details.")

    @classmethod
    def command(cls) -> str:
        """Name of the command, and of its function (without one, of the task), which takes the options."""
        return cls.__name__.removesuffix("Request").lower()

    def report(self) -> "ScoreReport":
        """The scores; raises InputError for wrong input."""
        module = import_module(f"layerboard.benchmark.exported.{self.home or self.command()}")
        score = getattr(module, f"score_{self.command()}", None) or partial(module.score_task, self.command())
        report: ScoreReport = score(**{name: value for name, value in vars(self).items() if name != "json"})
        return report


class VectorsRequest(ScoreRequest):
    """Vectors of items, which the task of a run scores."""

    home = "vectors"
    protocol: Plain[str] = Option(
        "standard",
        "Protocol whose numbers apply; see `list protocols`.",
        choices=tuple(protocol.name for protocol in PROTOCOLS if protocol.tasks is None),
    )


class LabelledRequest(VectorsRequest):
    """Features of items that have a class each."""

    features: OnePath = Option(
        ..., "An .npz with train, train_labels, test and test_labels (whole numbers).", positional=False
    )


class KnnRequest(LabelledRequest):
    """Top-1 and top-5 accuracy of weighted k-NN classification by cosine similarity.

    Example: `layerboard score knn --features F.npz --k 10 20`
    """

    k: Wholes = Option((), "Numbers of neighbours, the primary one first.", usual=OF_PROTOCOL)
    temperature: Plain[float | None] = Option(
        None, "T of the vote exp(cosine / T).", parsers.positive, usual=OF_PROTOCOL
    )


class FewShotRequest(LabelledRequest):
    """Top-1 accuracy of a closed-form linear probe on a few items per class, averaged over three draws.

    Example: `layerboard score fewshot --features F.npz --shots 1 5 10`
    """

    shots: Wholes = Option((), "Training items per class.", usual=OF_PROTOCOL)
    penalty: Plain[float | None] = Option(None, "L2 penalty.", parsers.positive, usual="chosen by validation")


class LinearRequest(LabelledRequest):
    """Top-1 accuracy of a linear layer trained on all items, on plain and standardised (bn) features.

    Example: `layerboard score linear --features F.npz`
    """

    epochs: Plain[int | None] = Option(None, "Training epochs.", least=1, usual=OF_PROTOCOL)
    seed: Plain[int | None] = Option(None, "Random seed.", least=0, usual=OF_PROTOCOL)


class RetrievalRequest(VectorsRequest):
    """Retrieval: mAP and mP@1, 5, 10 for Easy, Medium and Hard; rows are in the order of the ground truth.

    Example: `layerboard score retrieval --features F.npz --ground-truth gnd_roxford5k.pkl`
    """

    ground_truth: OnePath = Option(..., "gnd_roxford5k.pkl, or a file like it.", positional=False)
    features: OptionalPath = Option(None, "An .npz with database and queries, compared by cosine similarity.")
    similarity: OptionalPath = Option(None, "Instead: an .npy [database queries].")


class InstancesRequest(VectorsRequest):
    """Instance retrieval: recall at 1, 5 and 10, mAP, R-precision, and thresholds of the cosine similarity.

    Example: `layerboard score instances --features F.npz`
    """

    features: OnePath = Option(
        ...,
        "An .npz with features and groups (whole numbers or text); if not every image is a query, also roles "
        "(query, database, distractor, or empty for both query and database).",
        positional=False,
    )


class ClusteringRequest(VectorsRequest):
    """Purity, NMI and ARI of k-means clusters, or of given clusters.

    Example: `layerboard score clustering --features F.npz`
    """

    features: OptionalPath = Option(None, "An .npz with features and labels (whole numbers or text).")
    assignments: OptionalPath = Option(None, "Instead: an .npz with clusters and labels.")
    k: Plain[int | None] = Option(None, "Number of clusters.", least=1, usual="number of classes")
    seed: Plain[int | None] = Option(None, "Random seed of k-means.", least=0, usual=OF_PROTOCOL)
    n_init: Plain[int | None] = Option(None, "Restarts of k-means.", least=1, usual=OF_PROTOCOL)


class RegressRequest(VectorsRequest):
    """R2, Spearman's rho and mean absolute error of ridge regression, with cross-validation.

    Example: `layerboard score regress --features F.npz`
    """

    features: OnePath = Option(
        ..., "An .npz with features and targets, optionally names, folds and groups.", positional=False
    )


class MultilabelRequest(RegressRequest):
    """Macro average precision and AUROC of multi-label ridge regression and nearest neighbours.

    Example: `layerboard score multilabel --features F.npz`
    """


class TaskRequest(VectorsRequest):
    """Any task on vectors: one of the package by its name, or your own.

    The archive is that of the other commands for tasks on the same kind of data.

    Example: `layerboard score task my_tasks:NEAREST_MEAN --features F.npz`
    """

    task: Plain[str] = Option(..., "Name of a task, or module:NAME of your own.")
    features: OnePath = Option(..., "An .npz with the arrays of the task's kind of data.", positional=False)
    ground_truth: OptionalPath = Option(
        None, "For a task on retrieval: gnd_roxford5k.pkl, or a file like it."
    )


class DavisRequest(ScoreRequest):
    """J and F of predicted masks, as in the semi-supervised DAVIS-2017 evaluation.

    Example: `layerboard score davis --ground-truth DAVIS --predictions DIR`
    """

    ground_truth: OnePath = Option(..., "DAVIS root, or a folder of <sequence>/*.png.", positional=False)
    predictions: OnePath = Option(..., "Folder of <sequence>/*.png with object ids.", positional=False)


class SpairRequest(ScoreRequest):
    """PCK of keypoints matched by features, or of predicted keypoints.

    Example: `layerboard score spair --dataset SPair-71k --features GRIDS`
    """

    dataset: OnePath = Option(..., "SPair-71k root (PairAnnotation, JPEGImages).", positional=False)
    features: OptionalPath = Option(
        None, "Folder of [<category>/]<image>.npy, each a grid [side side dim] of the letterboxed image."
    )
    predictions: OptionalPath = Option(
        None, "Instead: a .json: for each keypoint of each pair file [x, y] in pixels of the target image."
    )
    protocol: Plain[str] = Option(
        "standard",
        "Protocol that defines pairs, matching and averages; see `list protocols`.",
        choices=tuple(protocol.name for protocol in PROTOCOLS if protocol.covers("spair")),
    )
    split: Plain[str] = Option("test", "Split: a folder below PairAnnotation.")
    view_size: Plain[int | None] = Option(
        None, "Resolution in pixels of the images behind --features.", least=1, usual="the protocol's"
    )


class SegmentRequest(ScoreRequest):
    """Mean IoU of k-NN segmentation from labelled patches, or of predicted masks.

    Example: `layerboard score segment --features F.npz`
    """

    features: OptionalPath = Option(
        None, "An .npz with train and test [n h w dim], train_masks and test_masks [n H W]."
    )
    predictions: OptionalPath = Option(None, "Instead: a folder of <image>.png, pixel values are classes.")
    ground_truth: OptionalPath = Option(None, "With --predictions: a folder of masks of the same names.")
    classes: Plain[int | None] = Option(
        None, "Number of classes.", least=1, usual="as many as the masks have"
    )
    ignore: Wholes = Option((), "Labels of pixels to ignore.", usual="255")
    k: Plain[int | None] = Option(None, "Number of nearest patches that vote.", least=1, usual=OF_PROTOCOL)
    temperature: Plain[float | None] = Option(
        None, "T of the vote exp(cosine / T).", parsers.positive, usual=OF_PROTOCOL
    )
    memory: Plain[int | None] = Option(
        None, "Maximum number of training patches.", least=1, usual=OF_PROTOCOL
    )
    protocol: Plain[Literal["standard", "hummingbird", "capi"]] = Option(
        "standard",
        "hummingbird: 255 is background, classes are renumbered; capi: all pixels of patches vote.",
    )

    def report(self) -> "ScoreReport":
        from layerboard.benchmark.exported import segment
        from layerboard.benchmark.exported.report import one_of

        name, path = one_of(features=self.features, predictions=self.predictions)
        judged = segment.Judged(self.classes, self.ignore or (255,))
        if name == "predictions":
            if self.ground_truth is None:
                raise InputError("--predictions needs --ground-truth, a folder of masks with the same names")
            return segment.score_predictions(self.ground_truth, path, judged)
        if self.protocol == "capi" and self.temperature is not None:
            raise InputError("--temperature does not go with --protocol capi, whose votes have no weights")
        if self.protocol == "capi":
            return segment.score_by_pixels(path, judged, segment.exported_rule(self.k), self.memory)
        return segment.score_features(path, judged, self.k, self.temperature, self.memory, self.protocol)


class CkaRequest(ScoreRequest):
    """Linear CKA of every representation with every other one.

    Example: `layerboard score cka --features A.npy B.npy`
    """

    features: Paths = Option(..., "Two or more .npy files [n ...] of the same samples.", positional=False)
    estimator: Plain[CkaEstimator] = Option(
        "unbiased", "HSIC estimator; paper: unbiased, of Gram matrices scaled to [0, 1]."
    )
    batch_size: Plain[int | None] = Option(
        None, "Rows per batch, in the given order.", least=4, usual="all rows; for paper its protocol's"
    )


def _scorer(form: type[ScoreRequest]) -> Command[..., Any]:
    name = f"score {form.command()}"

    def show(request: ScoreRequest) -> None:
        report = request.report()
        if request.json:
            say_json({"command": name, **report.as_json()})
            return
        tables = [rows_text(head, rows) for head, *rows in report.tables]
        scale = " Scores are percentages." if report.scale == "percent" else ""
        margin = " ±: half of the 95 % interval." if "±" in tables[0] else ""
        summary = f"{report.n:,} {report.unit}, protocol: {report.protocol}.{scale}{margin}"
        say("\n".join(f"{table}\n" for table in tables))
        for text in filter(None, (summary, report.reason, *report.notes)):
            say(wrap_text(text))

    show.__doc__ = docstring(form)
    return Command(name, form, show)


SCORE_COMMANDS: tuple[Command[..., Any], ...] = (
    *map(_scorer, (KnnRequest, FewShotRequest, LinearRequest, RetrievalRequest, DavisRequest, SpairRequest)),
    *map(_scorer, (SegmentRequest, ClusteringRequest, CkaRequest, InstancesRequest)),
    *map(_scorer, (RegressRequest, MultilabelRequest, TaskRequest)),
)
