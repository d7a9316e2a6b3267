"""Defects, things, numbers and labels in folders of one's own, from images to an answer."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from layerboard.leaderboards.records.items import read_items
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import Cli, Tally, answer, assert_same_records, once, run


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two products; not to be changed."""
    return fakes.write_fake_defects(tmp_path_factory.mktemp("own") / "parts", names=("bolt", "nut"))


def test_shots_are_chosen_and_another_mask_is_other_data(tmp_path: Path) -> None:
    own = fakes.write_fake_defects(tmp_path / "parts", names=("bolt", "nut"))
    first = run(tmp_path, ["mini-fs"], "anomaly", images=[own], layers="12", shots=(2,))
    few = {metric for metric in first["metric"] if "-shot" in metric}
    assert few == {"AUROC 2-shot", "AUROC 2-shot bolt", "AUROC 2-shot nut"}
    with pytest.raises(InputError, match=r"shots= is for fewshot and anomaly, which are not run"):
        run(tmp_path, ["mini-fs"], "cost", images=[own], shots=(2,))
    (own / "nut" / "ground_truth" / "dent" / "0_mask.png").unlink()
    second = run(tmp_path, ["mini-fs"], "anomaly", images=[own], layers="12", shots=(2,))
    assert second["partial"].all()
    assert {*first["data"]}.isdisjoint(second["data"])
    assert {"pixel AUROC bolt"} == {
        name for name in second["metric"] if name in ("pixel AUROC bolt", "pixel AUROC nut")
    }


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queries and a database of three things; not to be changed."""
    root = tmp_path_factory.mktemp("own") / "shop"
    fakes.write_fake_class_folders(root / "query", images=2)
    fakes.write_fake_class_folders(root / "database", images=3, seed=1)
    return root


def test_class_folders_and_copies_are_scored_where_that_is_asked(shop: Path, tmp_path: Path) -> None:
    folder = shop / "database"
    records = run(tmp_path, ["mini-fs"], "instances", layers="12", images=[folder])
    assert {*records["split"]} == {"all images, each a query"}
    copies = run(tmp_path, ["mini-fs"], "instances", layers="12", images=[folder], copies=True)
    assert {*copies["split"]} == {"all images, each a query, with copies"}
    assert "recall@1 mirrored" in {*copies["metric"]}
    assert {*copies["dataset"]}.isdisjoint(records["dataset"])
    table = tmp_path / "groups.csv"
    files = [path for path in sorted(folder.rglob("*.JPEG")) if path.stem[-1] != "2"]
    rows = [f"{path.relative_to(folder)},{path.parent.name}" for path in files]
    table.write_text("\n".join(["file,group", *rows]))
    grouped = run(tmp_path, ["mini-fs"], "instances", layers="12", images=[folder], groups=table)
    assert {*grouped["data"]}.isdisjoint(records["data"])
    assert (
        "each image looks for all others of its thing that are not of its group"
        in grouped["coverage"].iloc[0]
    )


def test_class_folders_are_shown_once_to_tasks_of_classes_and_of_things(shop: Path, tmp_path: Path) -> None:
    folder, table = shop / "database", tmp_path / "things.csv"
    with Tally().watching() as tally:
        records = run(tmp_path, ["mini-fs"], "knn", "instances", layers="12", images=[folder])
    assert sum(tally.rows.values()) == 9
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*.JPEG"))]
    table.write_text("\n".join(["file,group", *(f"{path},{path.parts[0]}" for path in files)]))
    by_table = run(tmp_path / "table", ["mini-fs"], "instances", layers="12", images=[folder], labels=table)
    scores = [
        frame[frame["task"] == "instances"].set_index(["metric", "pooling", "layer"])["value"].sort_index()
        for frame in (records, by_table)
    ]
    pd.testing.assert_series_equal(*scores, rtol=0, atol=1e-4)


COUNT = 30


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images that are the brighter the higher their number, and tables beside them; not to be changed."""
    root = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    rows = []
    for number in range(COUNT):
        level = 8 * number + rng.integers(0, 9, (24, 24, 3))
        (root / "photos").mkdir(exist_ok=True)
        Image.fromarray(level.astype(np.uint8)).save(root / "photos" / f"{number:02d}.png")
        tags = "|".join(["bright" if number > 14 else "dark"] + ["odd"] * (number % 2))
        rows.append((f"{number:02d}.png", str(level.mean().round(3)), str(number // 3), tags))
    for name, columns in {"numbers": (0, 1), "grouped": (0, 1, 2), "tags": (0, 3)}.items():
        header = ("file", "light", "group", "tags")
        lines = [",".join(row[column] for column in columns) for row in (header, *rows)]
        (root / f"{name}.csv").write_text("\n".join(lines))
    return root


def test_each_image_is_shown_once_and_its_number_is_read_off(photos: Path, tmp_path: Path) -> None:
    options = {"images": [photos / "photos"], "labels": photos / "numbers.csv"}
    records, shown = once(tmp_path, "regress", **options)
    assert [*shown.values()] == [COUNT]
    again, shown = once(tmp_path, "regress", **options)
    assert shown == {}
    assert_same_records(again, records)
    assert records["split"].eq("5 folds (seed 0)").all()
    best = records[records["primary"]].groupby("backbone")["value"].max()
    assert (best > 95).all()
    assert {"R2", "rho", "MAE"} == {*records["metric"]}
    assert (records["ci_low"] < records["value"]).eq(records["metric"] != "MAE").all()  # of 30 images


def test_groups_are_clusters_and_make_other_data(photos: Path, tmp_path: Path) -> None:
    options = {"images": [photos / "photos"], "layers": "final"}
    plain = run(tmp_path, ["mini-fs"], "regress", labels=photos / "numbers.csv", **options)
    grouped = run(tmp_path, ["mini-fs"], "regress", labels=photos / "grouped.csv", **options)
    assert {*plain["data"]}.isdisjoint(grouped["data"])
    (path,) = (tmp_path / "out" / "items").rglob(f"*{grouped['dataset'].iloc[0]}*.parquet")
    assert [len({*items.clusters}) for items in read_items(path).values()] == [COUNT // 3] * 2


def test_exported_vectors_are_scored_alike(photos: Path, tmp_path: Path, cli: Cli) -> None:
    asked = ("--images", photos / "photos", "--labels", photos / "numbers.csv", "--backbones", "mini-fs")
    places = ("--cache", tmp_path / "cache", "--output", tmp_path / "vectors")
    done = cli("features", *asked, *places, "--tasks", "regress", "--layers", "final")
    assert done.code == 0, done.err
    assert "score regress --features" in done.out + done.err


@pytest.mark.slow
def test_defects_and_things_are_scored_by_one_pass_over_each_source(
    parts: Path, shop: Path, tmp_path: Path
) -> None:
    records, shown = once(tmp_path / "defects", "anomaly", images=[parts])
    assert shown == {"references": 10, "test": 12}
    primary = records[records["primary"]]
    assert {*primary["metric"]} == {"AUROC"}
    assert (primary["value"] == 100).all()  # the square is seen by any network
    assert primary["ci_low"].between(50, 100).all()
    assert {"AUROC bolt", "AU-PRO nut", "AUROC 4-shot", "memory"} <= {*records["metric"]}
    records, shown = once(tmp_path / "things", "instances", images=[shop])
    assert shown == {"database": 9, "queries": 6}
    primary = records[records["primary"]]
    assert {*primary["metric"]} == {"recall@1"}
    assert primary["ci_low"].notna().all()
    assert {"mAP", "R-precision", "ROC AUC", "cosine at precision 0.9"} <= {*records["metric"]}


ANSWERS = (
    (
        "parts",
        "anomaly AUROC",
        "2 products, 10 reference images, 12 test images; 6 test images with a defect, 6 of them with a mask",
        ("distance of layer", "bolt, dent"),
    ),
    (
        "shop",
        "instances recall@1",
        "3 things, 6 queries, 9 database images; things from the folders in database and query",
        ("Each is shown with its nearest images", "3 images show the same"),
    ),
    (
        "photos",
        "multilabel macro AP",
        "30 images; 3 labels, any number an image (bright, dark, odd); every image tested once, in 5 folds",
        ("predictions by layer",),
    ),
)
"""A fixture of images, the primary metric, how they are understood, and what the report says of failures."""


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "metric", "line", "words"), ANSWERS)
def test_a_folder_comes_to_an_answer_in_a_few_commands(
    layout: str,
    metric: str,
    line: str,
    words: tuple[str, ...],
    tmp_path: Path,
    cli: Cli,
    request: pytest.FixtureRequest,
) -> None:
    place: Path = request.getfixturevalue(layout)
    asked = (place / "photos", "--labels", place / "tags.csv") if layout == "photos" else (place,)
    page = answer(cli, tmp_path, line, metric, "--images", *asked)
    assert [word for word in words if word not in page] == []
