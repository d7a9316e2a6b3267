"""Several datasets of one's own in one run: each stands for itself, and beside them their mean."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import layerboard
from layerboard.benchmark.plan.datasets import own_datasets
from layerboard.benchmark.plan.suites import LONGEST_SUITE, images_suite
from layerboard.leaderboards.findings.reproduce import answered, reproduce
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.record import read_records
from tests import fakes
from tests.benchmark.plan.test_plan import plan
from tests.benchmark.runs import run
from tests.leaderboards.shown import render_page


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders of one name with other images of the same names and sizes, and a third."""
    root = tmp_path_factory.mktemp("images")
    places = [root / "a" / "im", root / "b" / "im", root / "other"]
    for seed, place in enumerate(places):
        fakes.write_fake_class_folders(place, classes=2, images=5, seed=seed)
    return places


@pytest.mark.usefixtures("no_pages")
def test_each_dataset_has_its_columns_its_comparison_and_a_part_in_the_mean(
    folders: list[Path], tmp_path: Path
) -> None:
    options = {"layers": "1", "workers": 1, "floor": False, "cache": tmp_path / "cache"}
    tasks = ["knn", "cka"]
    found = layerboard.run("mini-fs", tasks, images=folders[:2], output=tmp_path / "out", **options)
    assert found.failures == ()
    records = found.frame
    names = sorted(records["dataset"].unique())
    assert [name.rpartition("-")[0] for name in names] == ["im", "im"]
    for task in tasks:
        assert sorted(records[records["task"] == task]["dataset"].unique()) == names
    (suite,) = records["suite"].unique()
    assert suite == f"images-{'+'.join(names)}"
    best = records[records["metric"] == "top-1"].groupby("dataset")["value"].max()  # over poolings
    text = render_page(records, suite)
    head = next(line for line in text.splitlines() if "mean of 2 datasets" in line)
    assert head.count("knn top-1, ") == 3
    row = next(line for line in text.splitlines() if line.startswith("| FS"))
    assert f" {best.mean():.1f}" in row
    assert f"knn top-1 (standard): {', '.join(names)}" in text
    assert all(f"CKA: class token, {name} (standard)" in text for name in names)
    again = layerboard.run("mini-fs", tasks, images=folders[1::-1], output=tmp_path / "out", **options).frame
    assert set(again["suite"]) == {suite}
    assert (again["date"] == records["date"]).all()  # nothing was scored again


def test_several_named_datasets_of_classes_stand_in_one_suite(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fakes.write_fake_imagenet(data)
    fakes.write_fake_cifar10(data)
    found = run(tmp_path, ["mini-fs"], "knn", "cka", data=data, layers="1")
    assert set(found["suite"]) == {"standard"}
    named = {("cifar10", "3 of 10 classes, 12 of 50,000 train images"), ("imagenet", "3 of 1,000 classes")}
    of_knn = found[found["task"] == "knn"]
    assert {(name, said) for name, said in named if of_knn["coverage"].str.startswith(said).any()} == named
    assert found.groupby("dataset")["data"].nunique().tolist() == [2, 2]  # a digest for each task
    text = render_page(found, "standard")
    for name in ("cifar10", "imagenet"):
        assert f"knn top-1, {name} †" in text
        assert f"CKA: class token, {name} (standard) †" in text
    assert "knn top-1, mean of 2 datasets †" in text


@pytest.mark.slow
@pytest.mark.usefixtures("no_pages")
def test_vtab_has_means_by_group_and_published_numbers_beside(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("dtd", "svhn", "kitti", "dmlab"):
        fakes.write_fake_vtab(data, name, train=(0, 0, 0, 1, 1, 1), test=(0, 1, 2))
    options = {"layers": "1", "workers": 1, "floor": False, "cache": tmp_path / "cache", "data": data}
    found = layerboard.run("mini-fs", suite="vtab", output=tmp_path / "out", **options)
    assert found.failures == ()
    records = found.frame
    assert set(records["suite"]) == set(records["protocol"]) == {"vtab"}
    scores = records[records["metric"].isin(["top-1", "top1"])]
    assert set(scores["task"]) == {"knn", "linear"}
    assert scores["value"].notna().all()  # though a class has no training image
    heads = [line for line in render_page(records, "vtab").splitlines() if "mean of 4 datasets" in line]
    assert all(f"mean of 2 {group} datasets" in heads[0] for group in ("natural", "structured"))
    published = all_published()
    judged = reproduce(records, published)
    beside = answered(judged, published, records)
    ours = beside[beside["dataset"].str.startswith("vtab-")]
    assert set(ours["dataset"]) == set(records["dataset"])
    assert (len(ours), set(ours["verdict"])) == (12, {"not comparable"})
    assert ours["reason"].str.startswith("the whole network was fine-tuned").all()
    assert not judged[judged["source"].eq("vit") & judged["table"].eq("Table 9")]["measured"].notna().any()


def test_a_named_dataset_that_is_not_there_is_said_once(tmp_path: Path) -> None:
    fakes.write_fake_imagenet(tmp_path)
    tasks = plan(tmp_path, "knn", "cka").tasks
    assert [task.dataset for task in tasks.every] == ["imagenet", "imagenet"]
    (line,) = (line for line in tasks.left_out if "expected cifar10 (" in line)
    assert line.startswith("knn, cka on further data: expected cifar10 (cifar10/train/<class>/*.png")
    assert str(tmp_path / "cifar10") in line


def test_datasets_of_one_name_have_sources_of_their_own(folders: list[Path]) -> None:
    found = own_datasets([str(place) for place in folders])
    assert len(found) == 3
    one, two, other = found.values()
    assert [one.name, two.name] == list(found)[:2]
    assert other.name == "other"  # what was stored of it alone serves here, too


def test_the_suite_is_called_by_its_datasets_in_any_order_and_briefly() -> None:
    assert images_suite(["a-1", "a-1"]) == "images-a-1"
    assert images_suite(["b-2", "a-1"]) == images_suite(["a-1", "b-2"]) == "images-a-1+b-2"
    many = [f"dataset-{number}-00000000" for number in range(19)]
    assert len(images_suite(many)) <= LONGEST_SUITE
    assert images_suite(many).startswith("images-19-datasets-")
    assert images_suite(many) != images_suite([*many[:-1], "x"])


def test_the_same_images_by_two_doors_share_a_column(tmp_path: Path) -> None:
    """One folder with two runs, and two folders merged: the first name of the data is kept."""
    rows = []
    for number in range(8):
        pixels = np.random.default_rng(number).integers(0, 256, (64, 64, 3), np.uint8)
        path = tmp_path / "photos" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
        rows.append((pixels, path.parent.name))
    options: dict[str, Any] = {"layers": "final", "cache": tmp_path / "cache"}
    for images in (tmp_path / "photos", rows):
        run(tmp_path / "one", ["mini-fs"], "knn", images=images, **options)
    assert len([*(tmp_path / "one" / "out" / "records").rglob("*.parquet")]) == 1
    run(tmp_path / "two", ["mini-fs", "mini-mae"], "knn", images=rows[::-1], **options)
    layerboard.merge([tmp_path / "one" / "out", tmp_path / "two" / "out"], output=tmp_path / "both")
    records = read_records([tmp_path / "both" / "records"])
    assert len(records[["suite", "dataset", "data"]].drop_duplicates()) == 1
    assert {*records["backbone"]} == {"mini-fs", "mini-mae"}
    assert records["dataset"].iloc[0].startswith("photos-")
