"""Images of things in folders of one's own, from images to an answer."""

from pathlib import Path

import pandas as pd
import pytest

from tests import fakes
from tests.benchmark.runs import Tally, answer, once, run


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queries and a database of three things; not to be changed."""
    root = tmp_path_factory.mktemp("own") / "shop"
    fakes.write_fake_class_folders(root / "query", images=2)
    fakes.write_fake_class_folders(root / "database", images=3, seed=1)
    return root


@pytest.mark.slow
def test_a_folder_is_scored_by_one_pass_and_comes_to_an_answer_in_a_few_commands(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, shown = once(tmp_path, "instances", images=[shop])
    assert shown == {"database": 9, "queries": 6}
    primary = records[records["primary"]]
    assert {*primary["metric"]} == {"recall@1"}
    assert primary["ci_low"].notna().all()
    assert {"mAP", "R-precision", "ROC AUC", "cosine at precision 0.9"} <= {*records["metric"]}
    line = "3 things, 6 queries, 9 database images; things from the folders in database and query"
    page = answer(capsys, tmp_path, line, "instances recall@1", "--images", shop)
    assert "Each is shown with its nearest images" in page
    assert "3 images show the same" in page


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
