"""Images with a table of numbers, or of several labels each, from images to an answer."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.leaderboards.records.items import read_items
from tests.benchmark.runs import answer, assert_same_records, command, once, run

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


@pytest.mark.slow
def test_labels_come_to_an_answer_in_three_commands(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--images", photos / "photos", "--labels", photos / "tags.csv")
    line = "30 images; 3 labels, any number an image (bright, dark, odd); every image tested once, in 5 folds"
    page = answer(capsys, tmp_path, line, "multilabel macro AP", *asked)
    assert "predictions by layer" in page


def test_exported_vectors_are_scored_alike(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--images", photos / "photos", "--labels", photos / "numbers.csv", "--backbones", "mini-fs")
    places = ("--cache", tmp_path / "cache", "--output", tmp_path / "vectors")
    done = command(capsys, "features", *asked, *places, "--tasks", "regress", "--layers", "final")
    assert done.code == 0, done.err
    assert "score regress --features" in done.out + done.err
