"""Images of one's own in every form that is taken, from the folder to the pages."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.commands.check import UNCOUNTED
from layerboard.benchmark.plan.datasets import PlannedTasks, bind_tasks, own_datasets
from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.inside.page import inside_page
from layerboard.tasks.datasets.classes import EVERY
from layerboard.tasks.datasets.folder import NO_CLASSES, QUERY_SPLITS
from layerboard.tasks.datasets.reading.files import IMAGE_EXTENSIONS
from layerboard.tasks.datasets.reading.labels import (
    FILE_COLUMNS,
    GROUP_COLUMN,
    LABEL_COLUMNS,
    METADATA,
    SPLIT_COLUMN,
    Labelling,
)
from layerboard.tasks.framework import sources
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of, find_tasks
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import Cli, Tally, run

IMAGES = 14


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of two kinds in one folder."""
    root = tmp_path_factory.mktemp("flat")
    fakes.write_fake_class_folders(root / "classes", classes=2, images=IMAGES // 2)
    (root / "flat").mkdir()
    for path in (root / "classes").rglob("*.JPEG"):
        shutil.copy2(path, root / "flat" / path.name)
    return root / "flat"


def table(path: Path, flat: Path, ending: str = ".JPEG") -> Path:
    lines = (f"{one.stem}{ending};{one.name[:9]}" for one in sorted(flat.glob("*.JPEG")))
    path.write_text("\n".join(["file;label", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def without_labels(flat: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame, Tally]:
    """A run on images without classes, of what is run there by default."""
    place = tmp_path_factory.mktemp("without")
    with Tally().watching() as tally:
        return place, run(place, ["mini-fs"], images=flat, layers="6,12,final", floor=True), tally


def test_without_labels_what_needs_none_is_run(without_labels: tuple[Path, pd.DataFrame, Tally]) -> None:
    _, records, tally = without_labels
    assert set(records["task"]) == {"cka", "label-free"}
    assert set(records["split"]) == {"images"}
    assert set(records["coverage"]) == {f"{IMAGES} images; {NO_CLASSES}"}
    assert not records["partial"].any()
    # once as they are and once mirrored; floors are described by no analysis
    assert tally.rows == {
        ("mini-fs", "flat/images"): IMAGES,
        ("mini-fs", "flat/images-mirrored"): IMAGES,
        ("mini-random", "flat/images"): IMAGES,
        ("mini-pixels", "flat/images"): IMAGES,
    }


def test_without_labels_each_layer_and_pooling_has_its_criteria(
    without_labels: tuple[Path, pd.DataFrame, Tally],
) -> None:
    _, records, _ = without_labels
    own = records[records["task"] == "label-free"]
    assert own["analysis"].all()
    places = set(zip(own["layer"], own["tap"], own["pooling"], strict=True))
    taps = ((6, "block"), (12, "block"), (12, "final"))
    assert places == {(*one, pooling) for one in taps for pooling in ("cls", "mean")}
    assert np.isfinite(own["value"]).all()
    page = inside_page(Board.of(records, records["suite"].iloc[0]))
    text = " ".join(str(block) for block in page.blocks)
    assert "none of these criteria is an accuracy" in " ".join(text.split())


@pytest.mark.usefixtures("no_pages")
def test_a_table_of_labels_and_class_folders_are_the_same_data(cli: Cli, flat: Path, tmp_path: Path) -> None:
    labels = table(tmp_path / "labels.csv", flat, ending="")
    options = ("-b", "mini-fs", "-t", "knn", "--layers", "12", "--workers", "1", "--no-floor")
    cache, values = ("--cache", tmp_path / "cache"), list[float]()
    for images in ((flat, "--labels", labels), (flat.parent / "classes",)):
        assert cli("run", "--images", *images, *options, *cache, "-o", tmp_path / "out").code == 0
        (path,) = (tmp_path / "out" / "records").rglob("*.parquet")  # of the first name in both runs
        records = pd.read_parquet(path)
        top = records[(records["metric"] == "top-1") & (records["pooling"] == "cls")]
        values += [float(top["value"].iloc[0])]
        assert set(records["dataset"].str.partition("-")[0]) == {"flat"}
        assert set(records["split"]) == {"all images, leave-one-out"}
        assert records["coverage"].str.contains(EVERY, regex=False).all()
    assert values[0] == values[1]


@pytest.mark.usefixtures("no_pages")
def test_what_was_understood_is_said_in_a_line(cli: Cli, flat: Path, tmp_path: Path) -> None:
    labels = table(tmp_path / "labels.csv", flat)
    line = f"2 classes, 14 images; classes from labels.csv (file, label); {EVERY}"
    own = ("--images", flat, "--labels", labels)
    for name, limit in (("run", ("--limit", "7")), ("features", ("--campaign", tmp_path / "out"))):
        options = ("-b", "mini-fs", "-t", "knn", "--layers", "1", "--workers", "1", *limit)
        said = cli(name, *own, *options, "-o", tmp_path / "out", "--cache", tmp_path / "cache")
        assert said.code == 0
        (found,) = said.lines("flat-")
        assert found.partition(": ")[2] == line
    said = cli("check", *own)
    assert said.code == 0
    note = UNCOUNTED.format(data=f"--images {flat} --labels {labels}", output="results")
    assert " ".join(said.out.split()).endswith(f"flat complete {line}; 14 of 14 images opened {note}")
    said = cli("check", "--images", flat, tmp_path / "nowhere")
    assert said.code == 0
    assert "missing" in said.out
    assert cli("check", "--images", tmp_path).code == 2


def test_labels_none_takes_several_folders_without_classes(flat: Path) -> None:
    found = own_datasets([str(flat.parent / "classes"), str(flat)], Labelling(Path("none")))
    assert [len(data.samples) for data in found.values()] == [IMAGES, IMAGES]


def test_identity_is_the_content_and_not_the_place_nor_the_time(flat: Path, tmp_path: Path) -> None:
    (name,) = own_datasets([str(flat)])
    shutil.copytree(flat, tmp_path / "flat", copy_function=shutil.copyfile)
    assert [*own_datasets([str(tmp_path / "flat")])] == [name]
    with pytest.raises(InputError, match="--images names the same images twice"):
        own_datasets([str(flat), str(flat)])
    (tmp_path / "labels.csv").write_text("file,label\n")
    labels = table(tmp_path / "labels.csv", flat)
    (with_labels,) = own_datasets([str(flat)], Labelling(labels))
    assert with_labels != name
    first = sorted((tmp_path / "flat").iterdir())[0]
    first.write_bytes(first.read_bytes()[:-1] + b"x")
    assert [*own_datasets([str(tmp_path / "flat")])] != [name]


def test_the_page_names_what_is_taken() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "how-to" / "own_images.md").read_text(encoding="utf-8")
    criteria = (docs / "explanation" / "analyses.md").read_text(encoding="utf-8").split("### label-free")[1]
    (entry,) = find_tasks(("label-free",))
    columns = (*FILE_COLUMNS, *LABEL_COLUMNS, SPLIT_COLUMN)
    for word in (*columns, *QUERY_SPLITS, *IMAGE_EXTENSIONS, *METADATA, GROUP_COLUMN):
        assert f"`{word}`" in page, word
    assert [metric for metric in entry.metrics if f"| `{metric}` |" not in criteria] == []
    assert EVERY in page
    assert f"more than {sources.IMAGES['standard'].own_unlabelled:,} images" in page
    assert f"the {config_of(STANDARD, 'label-free').neighbours} nearest neighbours" in criteria


def test_a_whole_folder_of_broken_images_fails_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "im").mkdir()
    for index in range(3):
        (tmp_path / "im" / f"{index}.jpg").write_bytes(b"no image")
    places: dict[str, Any] = {"output": tmp_path / "out", "cache": tmp_path / "cache"}
    found = layerboard.run("mini-fs", images=tmp_path / "im", floor=False, layers="1", **places)
    assert len(found.frame) == 0
    assert repr(found).startswith("no scores")
    assert all("expected images that can be decoded" in one for one in found.failures)


def test_images_too_few_for_cka_leave_it_empty(flat: Path, tmp_path: Path) -> None:
    (tmp_path / "im").mkdir()
    shutil.copy2(next(flat.glob("*.JPEG")), tmp_path / "im")
    records = run(tmp_path, ["mini-fs"], "cka", images=tmp_path / "im")
    assert {*records["reason"]} == {"CKA needs 4 images that can be read"}


def bound(root: Path, flat: Path, layout: str, task: str) -> PlannedTasks:
    """The tasks of a run on own images in a layout."""
    images, labelling = root / layout, Labelling()
    if layout == "defects":
        fakes.write_fake_defects(images)
    elif layout == "instances":
        for part in ("query", "database"):
            fakes.write_fake_class_folders(images / part)
    else:
        images = flat.parent / "classes" if layout == "classes" else flat
    if layout == "numbers":
        lines = (f"{path.name},{number / 3}" for number, path in enumerate(flat.iterdir()))
        (root / "n.csv").write_text("\n".join(["file,size", *lines]))
        labelling = Labelling(root / "n.csv", target="number")
    at = DataLocation(MINI_SUITE.datasets, None, (str(images),), protocol=STANDARD, labelling=labelling)
    return bind_tasks(at, find_tasks((task,)), names=[task])


def test_of_the_analyses_together_those_are_run_that_class_labels_allow(flat: Path, tmp_path: Path) -> None:
    found = bound(tmp_path, flat, "classes", "inside")
    assert "attention-maps" in {one.entry.name for one in found.every}
    assert "saliency" in {one.task for one in found.absent}


@pytest.mark.parametrize(
    ("layout", "task", "needs"),
    [
        ("flat", "knn", "class labels, which flat-.* does not have"),
        ("numbers", "knn", "class labels, which flat-.* does not have"),
        ("numbers", "multilabel", r"several labels an image in --labels, parted by \| or"),
        ("classes", "saliency", "more than the class labels that --images has"),
        ("classes", "anomaly", "folders NAME/train/good and NAME/test in --images"),
        ("defects", "knn", "class folders or --labels; --images is in a layout of defects"),
        ("instances", "knn", "class folders or --labels; --images is in a layout of instances"),
    ],
)
def test_what_a_layout_has_not_is_said(
    layout: str, task: str, needs: str, flat: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"{task}: needs {needs}"):
        bound(tmp_path, flat, layout, task)
