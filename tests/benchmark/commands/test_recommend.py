"""The command `recommend` and the lines of Python that it gives, on a whole run with planted costs."""

import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from layerboard.benchmark.commands.recommend import RecommendRequest, code_of, recommended
from layerboard.benchmark.plan.suites import MINI_SUITE, STANDARD_SUITE
from layerboard.leaderboards.answer.answer import Answer
from layerboard.leaderboards.answer.choice import Choice
from layerboard.leaderboards.answer.phrases import named
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.key import COMPARISON_TASK
from layerboard.leaderboards.records.record import to_frame
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.tasks.framework.registry import DRIFT, TASKS, find_tasks
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.view.geometry import ViewSize
from layerboard.zoo.view.views import view_size
from tests.benchmark.conftest import BACKBONES, Whole, copy_results
from tests.benchmark.runs import Cli, run
from tests.leaderboards.answer.test_candidates import candidates, cost, given
from tests.leaderboards.builder import layers

MS = {"mini-fs": 3.0, "mini-resnet": 1.0}
"""Planted milliseconds a block."""
ATTEMPTS, ROUNDS = 5, 10
TIMED = {
    MINI_SUITE.name: ("classification", "retrieval", "videos", "keypoints", "objects", "parts"),
    STANDARD_SUITE.name: ("scenes", "defects", "instances"),  # which the mini suite lacks
}
"""Roles of tasks that are timed on the data of a suite."""


@pytest.fixture(scope="module")
def out(whole: Whole, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the whole run says of a task on vectors and one on grids, and costs; not to be changed."""
    folder = copy_results(whole, tmp_path_factory.mktemp("costs") / "out", "knn", "spair")
    for name, each in MS.items():
        records = [one for layer in range(1, 13) for one in cost(name, layer, each * layer)]
        write_checked(
            to_frame(records), folder / "records" / name / "cost.Fast CPU, 2 threads.standard.parquet"
        )
    return folder


def said(cli: Cli, folder: Path, *arguments: object) -> dict[str, object]:
    found = cli("recommend", "-o", folder, *arguments, "--json")
    assert found.code == 0, found.err
    result: dict[str, object] = json.loads(found.out, parse_constant=pytest.fail)
    return result


def scores(whole: Whole, task: str) -> pd.DataFrame:
    rows = whole.records[(whole.records["task"] == task) & whole.records["primary"]]
    return rows[(rows["tap"] == "block") & rows["backbone"].isin(BACKBONES)]


def test_a_task_without_a_score_is_left_out_with_its_reason(cli: Cli, out: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(out, tmp_path / "out")
    few = {"backbone": "mini-fs", "task": "fewshot", "metric": "top1-10shot", "reason": "10 shots need more"}
    records = to_frame(layers([math.nan] * 12, **few))
    write_checked(records, folder / "records" / "mini-fs" / "fewshot.mini-imagenet.standard.parquet")
    found = cli("recommend", "-o", folder, "--tasks", "knn", "fewshot")
    assert found.code == 0
    assert "No score of fewshot: 10 shots need more." in found.out
    for name in ("recommend", "show"):
        found = cli(name, "-o", folder, "--tasks", "fewshot")
        assert found.code == 2
        assert "No score of fewshot: 10 shots need more" in found.err


def test_the_first_is_the_cheapest_that_loses_little(cli: Cli, out: Path, whole: Whole) -> None:
    found = cli("recommend", "-o", out, "--task", "knn")
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0].startswith("recommended for knn top-1")
    assert any(line.startswith("1. mini-") for line in lines)
    assert "import layerboard" in lines
    times = "ms: latency of one image up to that layer, at the network's own input size"
    assert times in " ".join(found.out.split())
    note = r"knn top-1 †: mini-\S+, the best, held out \d+\.\d %"
    assert re.search(note, " ".join(found.out.split()))
    result = said(cli, out, "--task", "knn")
    rows: Any = result["recommended"]
    assert [row["ms"] for row in rows] == sorted(row["ms"] for row in rows)
    best = scores(whole, "knn")["value"].max()
    assert result["device"] == "Fast CPU, 2 threads"
    assert all(0 <= row["loss"] <= 2 for row in rows) or rows[0]["reason"].startswith("no layer is proven to")
    assert max(row["score"] for row in rows) <= best
    assert "loses at most" in rows[0]["reason"]


@pytest.mark.parametrize("tasks", [("knn",), ("knn", "spair")])
def test_a_ticket_is_six_lines_of_the_first_recommendation(
    cli: Cli, out: Path, tasks: tuple[str, ...]
) -> None:
    first, *facts, code = cli("recommend", "-o", out, "--tasks", *tasks, "--markdown").out.splitlines()
    advice = recommended(RecommendRequest(tasks, output=out))
    choice, answers = advice.choices[0], advice.answers
    places = dict.fromkeys(f"layer {each.layer} {each.pooling}" for each in choice.candidates.values())
    assert re.sub(r" \([a-z, ]+\)", "", first) == f"**Take {choice.backbone}: {', '.join(places)}**"
    assert all(task in first for task in tasks) or len(places) == 1
    names = [line.partition(":")[0].removeprefix("- ") for line in facts]
    assert names == ["Score", "Reason", "Cost", "Best"]
    assert all(f"{each.column.heading} {named(each.best)}" in facts[3] for each in answers)
    assert all(f" {each.value:.1f} " in facts[0] for each in choice.candidates.values())
    assert f"{choice.costs['ms']:.2f} ms an image" in facts[2]
    assert code.count(f'layerboard.load("{choice.backbone}", layer=') == len(choice.places)
    error = cli("recommend", "-o", out, "--markdown", "--details").error
    assert "--markdown takes no --details" in error


def photos() -> Sequence[Image.Image]:
    random = np.random.default_rng(0)
    return [Image.fromarray(random.integers(0, 255, (70, 90, 3), dtype=np.uint8)) for _ in range(3)]


def test_the_lines_of_python_run_and_give_the_vectors_of_that_layer(out: Path) -> None:
    found = recommended(RecommendRequest(["knn", "spair"], output=out))
    names: dict[str, object] = {"images": photos()}
    exec(found.code[0], names)
    choice = found.choices[0]
    vectors = [value for name, value in names.items() if name.startswith("vectors")]
    spec = find([choice.backbone])[0]
    assert len(vectors) == 2  # of a task on vectors and one on grids
    for one, row in zip(vectors, choice.candidates.values(), strict=True):
        assert isinstance(one, torch.Tensor)
        assert one.shape[0] == 3
        assert one.ndim == (4 if row.pooling == "grid" else 2)
        assert one.shape[-1] == next(stage.width for stage in spec.stages if stage.width == one.shape[-1])
    encode = next(value for name, value in names.items() if name.startswith("encode"))
    assert str(encode.layer) == str(next(iter(choice.candidates.values())).layer)  # type: ignore[attr-defined]


SIZES = re.compile(r"\d{3,}$")
"""In names of protocols that differ from another one in the size of images alone."""
COLUMNS = [
    Column(task.name, "images", protocol.name, metric=task.metric, heading=task.name, partial=False)
    for task in TASKS
    if not task.analysis
    for protocol in PROTOCOLS
    if protocol.covers(task.name) and not SIZES.search(protocol.name)
]
DENSE = ("videos", "keypoints", "scenes", "objects", "parts", "masks")
"""Roles of tasks that are scored on grids."""


def choice_of(column: Column, backbone: str, **facts: object) -> Choice:
    """A layer that is recommended, as `code_of` takes it."""
    (candidate,) = given(candidates((backbone, 2, 50.0, 1.0), **facts))
    return Choice({column: candidate})


@cache
def vectors_by(code: str) -> torch.Tensor:
    """Those that lines of Python give, which several tasks and protocols share."""
    names: dict[str, object] = {"images": photos()[:1]}
    exec(code, names)
    vectors = names["vectors"]
    assert isinstance(vectors, torch.Tensor)
    return vectors


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.task}-{column.protocol}")
def test_the_lines_of_python_run_for_every_task_and_protocol(column: Column) -> None:
    (task,) = find_tasks([column.task])
    # views of dense tasks are large, and a ConvNet does not attend to thousands of tokens
    name, pooling, width = ("mini-resnet", "grid", 64) if task.role in DENSE else ("mini-fs", "cls", 96)
    choice = choice_of(column, name, pooling=pooling, dim=width)
    vectors = vectors_by(re.sub("#.*", "", code_of(choice)))
    assert (vectors.ndim, vectors.shape[0], vectors.shape[-1]) == (4 if pooling == "grid" else 2, 1, width)


def test_the_lines_of_python_run_for_a_task_of_somebodys_own() -> None:
    column = Column("my-task", "images", "standard", metric="score", heading="my-task", partial=False)
    names: dict[str, object] = {"images": photos()[:1]}
    exec(code_of(choice_of(column, "mini-fs", pooling="grid")), names)
    assert isinstance(names["vectors"], torch.Tensor)


@pytest.mark.parametrize(
    ("name", "revision", "given"),
    [
        ("dino-s16", "sha256:0123456789abcdef", True),
        ("timm:vit_tiny_patch16_224", "sha256:0123456789abcdef", True),
        ("dino-s16", "0123456789abcdef", False),
        ("mini-fs", "sha256:0123456789abcdef", False),
        ("onnx:net.onnx", "sha256:0123456789abcdef", False),
    ],
)
def test_the_lines_of_python_ask_for_weights_that_were_given(name: str, revision: str, given: bool) -> None:
    (column,) = (each for each in COLUMNS if (each.task, each.protocol) == ("knn", "standard"))
    code = code_of(choice_of(column, name, revision=revision))
    assert ('weights="PATH"' in code) == given


@pytest.mark.parametrize(
    ("name", "call"), [("vit", '"PATH/TO/vit"'), ("onnx:net.onnx", '"onnx:PATH/TO/net.onnx"')]
)
def test_the_lines_of_python_load_directories_and_files_by_their_paths(name: str, call: str) -> None:
    (column,) = (each for each in COLUMNS if (each.task, each.protocol) == ("knn", "standard"))
    code = code_of(choice_of(column, name, revision="sha256:01"), {name: "digest of its path"})
    assert f"layerboard.load({call}, layer=2" in code
    assert "weights" not in code


@pytest.mark.slow
@pytest.mark.parametrize("suite", [MINI_SUITE.name, STANDARD_SUITE.name])
def test_times_are_those_of_the_lines_of_python(data: Path, tmp_path: Path, suite: str) -> None:
    """Of every task that ranks layers: an image at the size that it shows takes as long as is said.

    Both times are minima, and that of the lines is of the processor, on one thread: else no call of some
    milliseconds would be undisturbed on a busy machine. What differs is timed again, a few times.
    """
    tasks = [task.name for task in TASKS if not task.analysis and task.role in TIMED[suite]]
    left, options = sorted({*tasks} - {COMPARISON_TASK, DRIFT}), {"suite": suite, "layers": "12"}
    options |= {"data": data} if suite == STANDARD_SUITE.name else {}
    for attempt in range(ATTEMPTS):
        run(tmp_path, ["mini-dino"], *left, "cost", again=attempt > 0, **options)
        said, taken, calls = dict[str, float](), dict.fromkeys(left, math.inf), {}
        for task in left:
            found = recommended(RecommendRequest([task], output=tmp_path / "out"))
            best = found.choices[0].deepest
            assert best.timed_at == best.view_size
            said[task], calls[task] = best.ms, call_of(found.code[0], best.timed_at)
        for _, (task, call) in product(range(ROUNDS), calls.items()):
            begin = thread_time()
            call()
            taken[task] = min(1000 * (thread_time() - begin), taken[task])
        left = [task for task in left if not 1 / 1.5 < taken[task] / said[task] < 1.5]
        if not left:
            break
    assert {task: (said[task], taken[task]) for task in left} == {}


def call_of(code: str, size: str) -> Callable[[], object]:
    """The last of the lines of Python, for one image that its view shows at a size."""
    shown = ViewSize.parse(size)
    assert shown is not None
    image = Image.fromarray(np.full((shown.height, shown.width, 3), 77, np.uint8))
    names: dict[str, Any] = {"images": [image]}
    exec(code, names)
    encode = names["encode"]
    assert view_size(encode.view, image.size) == shown
    return lambda: encode(names["images"])


def test_the_score_of_another_choice_than_the_limits_leave_is_not_said(cli: Cli, tmp_path: Path) -> None:
    knn = to_frame(layers([40.0, 50.0, 60.0], backbone="mini-fs"))
    knn = knn.assign(chosen=[0.0, 0.25, 0.75], held_out=[math.nan, 49.0, 57.0])
    times = to_frame([one for layer in (1, 2, 3) for one in cost("mini-fs", layer, float(layer))])
    for name, frame in (("knn", knn), ("cost", times)):
        write_checked(frame, tmp_path / "records" / "mini-fs" / f"{name}.mini-imagenet.standard.parquet")

    def answer(*limits: str) -> str:
        return " ".join(cli("recommend", "-o", tmp_path, "--task", "knn", *limits).out.split())

    free, all_chosen, cut = answer(), answer("--within", "ms=3"), answer("--within", "ms=2")
    assert "scores best, 60.0" in free
    assert "held out 55.0 %" in free
    assert "scores best, 60.0" in all_chosen
    assert "scores 10.0 points below mini-fs layer 3 cls (60.0), which the limits leave out" in cut
    assert "held out" not in cut


def test_named_backbones_are_compared_with_the_best_of_all(out: Path) -> None:
    def compared(*names: str) -> Answer:
        request = RecommendRequest(output=out, tasks=("knn",), backbones=names)
        (answer,) = recommended(request).answers
        return answer

    every = compared()
    for name in BACKBONES:
        named = compared(name)
        assert named.best.backbone == every.best.backbone
        own = [repr(each) for each in every.candidates if each.backbone == name]  # in which NaN is NaN
        assert [*map(repr, named.candidates)] == own


def test_without_costs_the_command_that_measures_them_is_named(cli: Cli, of_knn: Path) -> None:
    notes = said(cli, of_knn, "--task", "knn", "--licence", "commercial")["notes"]
    assert isinstance(notes, list)
    told = f"layerboard run --tasks cost --backbones mini-fs mini-resnet -o {of_knn}"
    assert any(told in note and "weights up to a layer are about an equal share" in note for note in notes)
    assert "What licences allow is read from their names and is no legal advice." in notes
    error = cli("recommend", "-o", of_knn, "--within", "ms=5").error
    assert "a limit of ms needs times, and none were measured" in error
    assert told in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-b", "mini-dino"), "backbone mini-dino was not run here"),
        (("--task", "knn", "--within", "ms=0.1"), "ms=0.1 leaves out all 2 layers"),
        (("--within", "loss=-1"), "--within takes as loss a number of at least 0; found -1"),
        (("--within", "ms=nan"), "--within takes as ms a finite number"),
        (("--within", "parameters=many"), "takes as parameters a number such as 100M or 1.2G"),
        (("--within", "dim=0"), "--within takes as dim a whole number of at least 1; found 0"),
        (("--within", "size=3"), "--within takes values of loss, ms, dim, bytes or parameters; found 'size'"),
        (("--within", "ms=1", "ms=2"), "takes each name once, several values with commas"),
        (("--licence", "free"), "--licence takes any or commercial; found 'free'"),
        (("--device", "tpu"), "no cost was measured on 'tpu'; it was on Fast CPU, 2 threads"),
    ],
)
def test_recommend_refuses_in_a_sentence(cli: Cli, out: Path, arguments, words) -> None:  # type: ignore[no-untyped-def]
    found = cli("recommend", "-o", out, *arguments)
    assert found.code == 2
    assert words in found.err


def test_a_folder_without_scores_is_refused(tmp_path: Path) -> None:
    write_checked(to_frame(cost("mini-fs", 1, 1.0)), tmp_path / "records" / "mini-fs" / "cost.parquet")
    with pytest.raises(InputError, match="no backbone has a score in a ranking task"):
        recommended(RecommendRequest(output=tmp_path))
