"""The command `score`: scores of features or predictions that any code has exported.

Numbers that change a score have no default here; where one is not given, that of the protocol is used.
"""

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from layerboard.benchmark.commands.cka import CkaEstimator
from layerboard.benchmark.commands.command import command, say, say_json
from layerboard.benchmark.commands.result import rows_text, wrap_text
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, Option, OptionalPath, Paths, Plain, Wholes, declared
from layerboard.benchmark.forms.request import JsonOption
from layerboard.tasks.framework.protocols import PROTOCOLS, STANDARD
from layerboard.zoo.errors import InputError, require_known

if TYPE_CHECKING:
    from layerboard.benchmark.exported.report import ScoreReport

OF_PROTOCOL = "the standard protocol's"  # read only when a scorer runs


OF_VECTORS = tuple(each.name for each in PROTOCOLS if each.tasks is None)
OF_SPAIR = tuple(each.name for each in PROTOCOLS if each.covers("spair"))


class Scorer(NamedTuple):
    """How a task is scored: a function, and which options it takes."""

    function: str  # its module in `benchmark.exported` and its name; None is the number of the protocol
    needs: str = "features"  # options without which there is nothing to score
    takes: str = "protocol"  # further options
    protocols: tuple[str, ...] = OF_VECTORS


SCORERS = {
    "knn": Scorer("vectors:score_knn", takes="protocol k temperature"),
    "fewshot": Scorer("vectors:score_fewshot", takes="protocol shots penalty"),
    "linear": Scorer("vectors:score_task", takes="protocol epochs seed"),
    "retrieval": Scorer("vectors:score_retrieval", "ground_truth", "features predictions protocol"),
    "clustering": Scorer("vectors:score_clustering", "", "features predictions protocol k seed n_init"),
    "segment": Scorer(
        "segment:score_segment",
        "",
        "features predictions ground_truth protocol classes ignore k temperature memory",
        ("standard", "hummingbird", "capi"),
    ),
    "spair": Scorer("spair:score_spair", "ground_truth", "features predictions protocol view_size", OF_SPAIR),
    "davis": Scorer("davis:score_davis", "ground_truth predictions", ""),
    "cka": Scorer("cka:score_cka", takes="estimator batch_size"),
    "index": Scorer("index:score_index", takes="vectors"),
}
ANY_OTHER = Scorer("vectors:score_task", takes="protocol ground_truth")  # task on vectors
SEVERAL_FILES = ("cka", "index")  # tasks that take them
SEVERAL_K = ("knn",)


class FileOptions(Form, panel="Files"):
    """The files to score."""

    features: Paths = Option(
        (),
        "An .npz archive of vectors or grids; spair: a folder of [<category>/]<image>.npy, each a grid [side "
        "side dim] of the letterboxed image; cka: two or more .npy files [n ...] of the same samples.",
    )
    predictions: OptionalPath = Option(
        None,
        "davis: a folder of <sequence>/*.png with object ids. Instead of features: retrieval: an .npy "
        "[database queries] of similarities; clustering: an .npz with clusters and labels; segment: a folder "
        "of <image>.png with classes; spair: a .json, for each keypoint of each pair file [x, y] in pixels.",
    )
    ground_truth: OptionalPath = Option(
        None,
        "retrieval: gnd_roxford5k.pkl, or a file like it; davis: its root, or a folder of <sequence>/*.png; "
        "spair: the root of SPair-71k; segment, with predictions: a folder of masks of the same names.",
    )


class NumberOptions(Form, panel="Numbers"):
    """Numbers that replace those of the protocol."""

    protocol: Plain[str | None] = Option(
        None, "Protocol whose numbers apply; see `list protocols`.", usual="standard"
    )
    k: Wholes = Option(
        (),
        "knn: numbers of neighbours, the primary one first; segment: of voting patches; clustering: of "
        "clusters.",
        usual=f"{OF_PROTOCOL}; the number of classes",
    )
    temperature: Plain[float | None] = Option(
        None, "knn, segment: T of the vote exp(cosine / T).", parsers.positive, usual=OF_PROTOCOL
    )
    shots: Wholes = Option((), "fewshot: training items per class.", usual=OF_PROTOCOL)
    penalty: Plain[float | None] = Option(
        None, "fewshot: L2 penalty.", parsers.positive, usual="chosen by validation"
    )
    epochs: Plain[int | None] = Option(None, "linear: training epochs.", least=1, usual=OF_PROTOCOL)
    seed: Plain[int | None] = Option(None, "linear, clustering: random seed.", least=0, usual=OF_PROTOCOL)
    n_init: Plain[int | None] = Option(None, "clustering: restarts of k-means.", least=1, usual=OF_PROTOCOL)
    memory: Plain[int | None] = Option(
        None, "segment: maximum number of training patches.", least=1, usual=OF_PROTOCOL
    )
    classes: Plain[int | None] = Option(
        None, "segment: number of classes.", least=1, usual="as many as the masks have"
    )
    ignore: Wholes = Option((), "segment: labels of pixels to ignore.", usual="255")
    view_size: Plain[int | None] = Option(
        None, "spair: resolution in pixels of the images behind the features.", least=1, usual=OF_PROTOCOL
    )
    estimator: Plain[CkaEstimator | None] = Option(
        None, "cka: HSIC estimator; paper: unbiased, of Gram matrices scaled to [0, 1].", usual="unbiased"
    )
    batch_size: Plain[int | None] = Option(
        None, "cka: rows per batch, in the given order.", least=4, usual="all rows; for paper its protocol's"
    )
    vectors: Plain[int | None] = Option(
        None,
        "index: size to which the database grows, by repeating vectors with added noise.",
        least=1,
        usual="100000",
    )


def scored_task(value: object) -> str:
    """The name of a scorer or of a task; raises InputError for a name that none has."""
    name = parsers.text(value)
    return name if name in SCORERS else parsers.tasks(name)[0]


class ScoreRequest(JsonOption, NumberOptions, FileOptions):
    """Options of `score`: a task, files, and numbers."""

    task: Plain[str] = Option(..., "A task of the list above, or module:NAME of your own.", scored_task)


@command("score", ScoreRequest)
def score_command(request: ScoreRequest) -> None:
    """Score features or predictions that any code has exported.

    What each task reads:

    - `knn`, `fewshot`, `linear`: arrays train, train_labels, test, test_labels (whole numbers).
    - `regress`, `multilabel`: arrays features, targets; optionally names, folds, groups.
    - `instances`: arrays features, groups; if not every image is a query, also roles.
    - `retrieval`: arrays database, queries, in the order of the ground truth.
    - `clustering`: arrays features, labels.
    - `segment`: arrays train, test [n h w dim], train_masks, test_masks [n H W]; or predicted masks.
    - `davis`: predicted masks. `spair`: a grid of each image, or predicted keypoints.
    - `cka`: two arrays or more, each compared with every other one.
    - `index`: any of these archives; recall and cost of flat, HNSW and IVF indexes of its vectors (faiss).
    - Any other task on vectors, also your own: the arrays of a task above on the same kind of data.

    Examples:
    - `layerboard score knn --features F.npz --k 10 20`
    - `layerboard score davis --ground-truth DAVIS --predictions DIR`
    - `layerboard score my_tasks:NEAREST_MEAN --features F.npz`
    """
    report = _scored(request)
    if request.json:
        say_json({"command": f"score {request.task}", **report.as_json()})
        return
    tables = [rows_text(head, rows) for head, *rows in report.tables]
    scale = " Scores are percentages." if report.scale == "percent" else ""
    margin = " ±: half of the 95 % interval." if "±" in tables[0] else ""
    if re.search(r"\d \(\S+ to \S+\)", tables[0]):
        margin += " In brackets: the ends of the 95 % interval."
    summary = f"{report.n:,} {report.unit}, protocol: {report.protocol}.{scale}{margin}"
    say("\n".join(f"{table}\n" for table in tables))
    for text in filter(None, (summary, report.reason, *report.notes)):
        say(wrap_text(text))


def _scored(request: ScoreRequest) -> "ScoreReport":
    """The scores; raises InputError for wrong input, or for an option that the task does not take."""
    scorer = SCORERS.get(request.task, ANY_OTHER)
    words = _words(request, scorer)
    module, _, name = scorer.function.partition(":")
    words |= {"task": request.task} if name == "score_task" else {}
    report: ScoreReport = getattr(import_module(f"layerboard.benchmark.exported.{module}"), name)(**words)
    return report


def _words(request: ScoreRequest, scorer: Scorer) -> dict[str, Any]:
    """The options with which a scorer is called; raises InputError for one too many or too few."""
    needs, takes = scorer.needs.split(), scorer.takes.split()
    words = {name: getattr(request, name) for name in (*needs, *takes)}
    flags = {option.name: option.flag for option in declared(ScoreRequest)}
    for name in flags.keys() - words.keys() - {"task", "json"}:
        if getattr(request, name) not in (None, ()):
            taken = ", ".join(flags[each] for each in words)
            raise InputError(f"score {request.task} does not take {flags[name]}; it takes {taken}")
    for name in needs:
        if words[name] in (None, ()):
            raise InputError(f"score {request.task} needs {flags[name]}; `layerboard score -h` says of what")
    for name, tasks in (("features", SEVERAL_FILES), ("k", SEVERAL_K)):
        if name in words and request.task not in tasks:
            if len(words[name]) > 1:
                raise InputError(f"score {request.task} takes one {flags[name]}; found {len(words[name])}")
            words[name] = next(iter(words[name]), None)
    if request.task not in SEVERAL_K and (k := words.get("k")) is not None and k < 1:
        raise InputError(f"--k takes a whole number of at least 1; found {k}")
    if "protocol" in words:
        words["protocol"] = request.protocol or STANDARD.name
        require_known("protocol of the task", [words["protocol"]], scorer.protocols)
    return words
