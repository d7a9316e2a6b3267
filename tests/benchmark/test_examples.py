"""Examples of a run: what is kept beside the records, once, small, and mended where it is damaged."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.exchange.merge import merge_outputs
from layerboard.leaderboards.records.arrays import read_arrays
from layerboard.leaderboards.records.checksum import companions_of, file_digest, read_checked
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.record import read_records
from layerboard.leaderboards.records.thumbnails import LARGEST, MOST, is_whole, thumbnails_of
from layerboard.tasks.classification import knn, probes
from layerboard.tasks.clustering import task as clustering
from layerboard.tasks.framework.examples import SIDE
from layerboard.tasks.keypoints import task as keypoints
from layerboard.tasks.propagation import task as propagation
from layerboard.tasks.retrieval import landmarks as retrieval
from layerboard.zoo.errors import InputError
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.runs import assert_same_records, run, run_from_store

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "examples.md"
PICTURED = {"knn", "retrieval", "davis", "spair", "cluster-image"}


def kept(out: Path) -> dict[Path, bytes]:
    """Files of examples and pictures, by their path below the output folder."""
    paths = [path for kind in ("examples", "thumbnails") for path in (out / kind).rglob("*.*")]
    return {path.relative_to(out): path.read_bytes() for path in paths}


def examples_of(task: str, dataset: str, backbone: str) -> Path:
    return Path("examples") / scored_path(task_key(task, dataset, "standard"), backbone, ending="npz")


KNN = examples_of("knn", "imagenet", "mini-fs")
DAVIS = examples_of("davis", "davis-2017-val", "mini-resnet")


def test_a_run_keeps_small_files_that_records_name(whole: Whole) -> None:
    out = whole.place / "out"
    paths = sorted((out / "examples").rglob("*.npz"))
    assert {path.name.split(".")[0] for path in paths} == PICTURED
    assert {path.parent.name for path in paths} == {*BACKBONES}
    needed: set[str] = set()
    for path in paths:
        records = out / "records" / path.relative_to(out / "examples").with_suffix(".parquet")
        assert companions_of(read_checked(records))["examples"] == file_digest(path)
        names = thumbnails_of(path)
        assert 0 < len(names) <= MOST
        needed |= {*names}
    assert {path.name for path in (out / "thumbnails").iterdir()} == needed
    assert all(path.stat().st_size <= LARGEST and is_whole(path) for path in (out / "thumbnails").iterdir())


def test_every_backbone_is_asked_about_the_same(whole: Whole) -> None:
    out = whole.place / "out"
    for task, dataset, names in (
        ("knn", "imagenet", ("query", "class")),
        ("davis", "davis-2017-val", ("frame", "truth", "given")),
        ("spair", "spair-71k-test", ("pair", "source_point", "target_point")),
    ):
        first, second = (read_arrays(out / examples_of(task, dataset, one)) for one in BACKBONES)
        for name in names:
            assert (first[name] == second[name]).all(), (task, name)


def test_predictions_are_those_of_the_scores(whole: Whole) -> None:
    arrays = read_arrays(whole.place / "out" / KNN)
    assert set(arrays["pooling"]) == {"cls", "mean"}
    (column,) = [each for each in Board.of(whole.records).columns if each.task == "knn"]
    shown = column.poolings["mini-fs"]  # that of the best score
    assert (arrays["right"] == (arrays["predicted"] == arrays["class"])).all()
    assert arrays["drawn"].tolist() == [
        layer > 0 and tap == "block" and pooling == shown
        for layer, tap, pooling in zip(arrays["layer"], arrays["tap"], arrays["pooling"], strict=True)
    ]
    cosines = arrays["cosine"][..., :2]
    assert (np.diff(cosines, axis=-1) <= 0).all()


def test_another_run_keeps_the_same_bytes(tmp_path: Path, data: Path, whole: Whole) -> None:
    options = {"data": data, "workers": 2, "batch_size": 7, "cache": whole.place / "cache"}
    run(tmp_path, ["mini-fs"], "knn", "davis", "spair", **options)
    found, wanted = kept(tmp_path / "out"), kept(whole.place / "out")
    assert len(found) > 3
    assert found == {path: wanted[path] for path in found}


def test_what_is_damaged_or_gone_is_kept_again(again: Path, data: Path, whole: Whole) -> None:
    out = again / "out"
    before = kept(out)
    (out / KNN).unlink()
    content = bytearray((out / DAVIS).read_bytes())
    content[60] ^= 4
    (out / DAVIS).write_bytes(content)
    spair = thumbnails_of(out / examples_of("spair", "spair-71k-test", "mini-fs"))
    (out / "thumbnails" / spair[0]).unlink()
    (out / "thumbnails" / spair[1]).write_bytes(b"no picture")
    run_from_store(again, BACKBONES, "knn", "davis", "spair", data=data)
    assert kept(out) == before
    assert_same_records(read_records([out / "records"]), whole.records)


def test_without_examples_there_are_no_pictures_and_the_numbers_stay(
    again: Path, data: Path, whole: Whole
) -> None:
    out, tasks = again / "out", ["knn", "davis"]
    records = run_from_store(again, BACKBONES, *tasks, data=data, examples=False)
    left = sorted((out / "examples").rglob("*.npz"))
    assert {path.name.split(".")[0] for path in left} == PICTURED - {*tasks}
    needed = {name for path in left for name in thumbnails_of(path)}
    assert {path.name for path in (out / "thumbnails").iterdir()} == needed
    own = records[records["task"].isin(tasks)]
    assert_same_records(own, whole.records.query("task in @tasks"), numbers_only=True)
    run_from_store(again, BACKBONES, *tasks, data=data)
    assert kept(out) == kept(whole.place / "out")


def test_the_random_floor_has_none(tmp_path: Path, data: Path) -> None:
    run(tmp_path, ["mini-random"], "knn", data=data)
    assert kept(tmp_path / "out") == {}


def test_merge_takes_examples_and_pictures_along(whole: Whole, tmp_path: Path) -> None:
    merge_outputs([whole.place / "out", whole.place / "out"], tmp_path / "merged")
    assert kept(tmp_path / "merged") == kept(whole.place / "out")


def test_merge_refuses_a_picture_that_is_not_as_it_was(again: Path, tmp_path: Path) -> None:
    victim = thumbnails_of(again / "out" / KNN)[0]
    (again / "out" / "thumbnails" / victim).write_bytes(b"no picture")
    with pytest.raises(InputError, match=f"the picture .*{victim} of .* is missing or damaged"):
        merge_outputs([again / "out", again / "out"], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_the_documentation_names_every_array_with_its_axes(whole: Whole) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    named: dict[tuple[str, str], int] = {}
    tasks: list[str] = []
    for cells in ([cell.strip() for cell in line.split("|")[1:4]] for line in lines if line.startswith("|")):
        tasks = re.findall(r"[\w-]+", cells[0]) or tasks
        axes = [axis for axis in cells[2].replace(" (, 2)", "").split(",") if axis != "none"]
        named |= {(task, name): len(axes) for task in tasks for name in re.findall(r"`(\w+)`", cells[1])}
    for task in PICTURED:
        paths = (whole.place / "out" / "examples" / "mini-fs").glob(f"{task}.*.npz")
        path = min(paths)  # the only dataset, or one of two that are alike
        for name, array in read_arrays(path).items():
            axes = named.get((task, name), named.get(("any", name), -1))
            extra = 1 if (task, name) == ("spair", "point") else 0
            assert array.ndim == axes + extra, (task, name)


def test_the_documentation_gives_an_example_that_runs(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    target = tmp_path / "results" / examples_of("knn", "mini-imagenet", "mini-dino")
    target.parent.mkdir(parents=True)
    shutil.copyfile(whole.place / "out" / KNN, target)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    arrays = read_arrays(target)
    last = np.flatnonzero((arrays["pooling"] == "cls") & (arrays["tap"] == "block"))[-1]
    assert capsys.readouterr().out.count(" taken for ") == int((~arrays["right"][last]).sum())


def test_the_documentation_states_the_caps() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert (
        f"at most {SIDE} pixels a side and {LARGEST:,} bytes; one backbone and task has at most {MOST}"
        in text
    )
    assert f"{probes.QUERIES} queries, the classes in turn" in text
    assert f"the {knn.NEIGHBOURS} nearest training images" in text
    assert f"{retrieval.QUERIES} queries that have a positive | the first {retrieval.RANKED} of" in text
    assert f"{propagation.FRAMES} frames of at most {propagation.VIDEOS} videos" in text
    assert f"{keypoints.PAIRS} pairs" in text
    assert f"{clustering.OF_EACH} images of each of {clustering.CLASSES} classes" in text
