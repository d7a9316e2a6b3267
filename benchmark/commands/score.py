"""The command `score`: scores of features or predictions that any code has exported.

Numbers that change a score have no default here; where one is not given, that of the protocol is used.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from layerboard.benchmark.commands.cka import CkaEstimator
from layerboard.benchmark.commands.command import command, say, say_json
from layerboard.benchmark.commands.result import rows_text, wrap_text
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import ByName, Option, OptionalPath, Paths, Plain, declared
from layerboard.benchmark.forms.request import JsonOption
from layerboard.tasks.framework.protocols import PROTOCOLS, STANDARD
from layerboard.zoo.errors import InputError, require_known

if TYPE_CHECKING:
    from layerboard.benchmark.exported.report import ScoreReport

OF_VECTORS = tuple(each.name for each in PROTOCOLS if each.tasks is None)
OF_SPAIR = tuple(each.name for each in PROTOCOLS if each.covers("spair"))
_WHOLE = partial(parsers.whole, least=1)
_SEED = partial(parsers.whole, least=0)
_ESTIMATOR = partial(parsers.choice, choices=get_args(CkaEstimator))


class Scorer(NamedTuple):
    """How a task is scored: a function, and which options it takes."""

    function: str  # its module in `benchmark.exported` and its name; None is the number of the protocol
    needs: str = "features"  # options without which there is nothing to score
    takes: str = "protocol"  # further options
    protocols: tuple[str, ...] = OF_VECTORS
    config: Mapping[str, Callable[[Any], Any]] = {}  # parsers of the numbers that ``--config`` replaces


SCORERS = {
    "knn": Scorer("vectors:score_knn", config={"k": parsers.wholes, "temperature": parsers.temperature}),
    "fewshot": Scorer("vectors:score_fewshot", config={"shots": parsers.wholes, "penalty": parsers.positive}),
    "linear": Scorer("vectors:score_task", config={"epochs": _WHOLE, "seed": _SEED}),
    "retrieval": Scorer("vectors:score_retrieval", "ground_truth", "features predictions protocol"),
    "clustering": Scorer(
        "vectors:score_clustering",
        "",
        "features predictions protocol",
        config={"k": _WHOLE, "seed": _SEED, "n_init": _WHOLE},
    ),
    "segment": Scorer(
        "segment:score_segment",
        "",
        "features predictions ground_truth protocol",
        ("standard", "hummingbird", "capi"),
        {
            "k": _WHOLE,
            "temperature": parsers.temperature,
            "memory": _WHOLE,
            "classes": _WHOLE,
            "ignore": parsers.wholes,
        },
    ),
    "spair": Scorer(
        "spair:score_spair", "ground_truth", "features predictions protocol", OF_SPAIR, {"view_size": _WHOLE}
    ),
    "davis": Scorer("davis:score_davis", "ground_truth predictions", ""),
    "cka": Scorer(
        "cka:score_cka",
        takes="",
        config={"estimator": _ESTIMATOR, "batch_size": partial(parsers.whole, least=4)},
    ),
    "index": Scorer("index:score_index", takes="", config={"vectors": _WHOLE}),
}
ANY_OTHER = Scorer("vectors:score_task", takes="protocol ground_truth")  # task on vectors
SEVERAL_FILES = ("cka", "index")  # tasks that take them


class ScoreRequest(JsonOption, panel="Files"):
    """Options of `score`: a task, files, and numbers."""

    task: Plain[str] = Option(
        ...,
        "A task of the list above, or module:NAME of your own.",
        lambda name: name if name in SCORERS else parsers.tasks(name)[0],
    )
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
    protocol: Plain[str | None] = Option(
        None, "Protocol whose numbers apply; see `list protocols`.", usual="standard", panel="Numbers"
    )
    config: ByName = Option(
        (),
        "NAME=VALUE, in place of the protocol's. knn: k (neighbours, the primary number first: k=10,20) and "
        "temperature T of the vote exp(cosine / T); segment: both (one k), memory (training patches at "
        "most), classes (as many as the masks have) and ignore (labels of pixels, 255); fewshot: shots "
        "(items per class: 1,5,10) and penalty (L2, else chosen by validation); linear: epochs, seed; "
        "clustering: k (clusters), seed, n_init (restarts of k-means); spair: view_size (pixels of the "
        "images behind the features); cka: estimator (unbiased, biased, or paper: unbiased, of Gram "
        "matrices scaled to [0, 1]) and batch_size (rows, in the given order; all); index: vectors (size to "
        "which the database grows, by repeating vectors with added noise; 100000).",
        parsers.assigned,
        keys={name for each in SCORERS.values() for name in each.config},
        usual="numbers of the protocol",
        panel="Numbers",
    )


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
    - `layerboard score knn --features F.npz --config k=10,20 temperature=0.1`
    - `layerboard score davis --ground-truth DAVIS --predictions DIR`
    - `layerboard score my_tasks:NEAREST_MEAN --features F.npz`
    """
    scorer = SCORERS.get(request.task, ANY_OTHER)
    words = _words(request, scorer)
    module, _, name = scorer.function.partition(":")
    words |= {"task": request.task} if name == "score_task" else {}
    report: ScoreReport = getattr(import_module(f"layerboard.benchmark.exported.{module}"), name)(**words)
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


def _words(request: ScoreRequest, scorer: Scorer) -> dict[str, Any]:
    """The options with which a scorer is called; raises InputError for one too many or too few."""
    needs, takes = scorer.needs.split(), scorer.takes.split()
    words = {name: getattr(request, name) for name in (*needs, *takes)}
    flags = {option.name: option.flag for option in declared(ScoreRequest)}
    for name in flags.keys() - words.keys() - {"task", "json", "config"}:
        if getattr(request, name) not in (None, ()):
            taken = ", ".join(flags[each] for each in words)
            raise InputError(f"score {request.task} does not take {flags[name]}; it takes {taken}")
    for name in needs:
        if words[name] in (None, ()):
            raise InputError(f"score {request.task} needs {flags[name]}; `layerboard score -h` says of what")
    if "features" in words and request.task not in SEVERAL_FILES:
        if len(words["features"]) > 1:
            count = len(words["features"])
            raise InputError(f"score {request.task} takes one {flags['features']}; found {count}")
        words["features"] = next(iter(words["features"]), None)
    if "protocol" in words:
        words["protocol"] = request.protocol or STANDARD.name
        require_known("protocol of the task", [words["protocol"]], scorer.protocols)
    if request.config and not scorer.config:
        raise InputError(f"score {request.task} has no numbers that --config could replace")
    try:
        numbers = parsers.of_names(request.config, scorer.config)
    except parsers.WrongValueError as error:
        raise error.about(f"score {request.task} --config") from None
    return words | dict.fromkeys(scorer.config) | numbers
