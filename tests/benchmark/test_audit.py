"""The audit of a folder, from a run to the report."""

import csv
import shutil
from pathlib import Path

import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.commands.result import Result
from layerboard.leaderboards.report.audit import SUMS
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import Tally, command, run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on class folders in which one image is a copy of another, and its audit."""
    place = tmp_path_factory.mktemp("audit")
    fakes.write_fake_class_folders(place / "photos", classes=2, images=10)
    first, second = sorted((place / "photos").iterdir())
    shutil.copyfile(next(iter(sorted(first.iterdir()))), second / "=copy.JPEG")
    run(place, ["mini-fs"], "knn", images=place / "photos", layers="all")
    return place


@pytest.fixture(scope="module")
def audited(place: Path) -> Result:
    with Tally().watching() as tally:
        found = layerboard.check(
            images=place / "photos", features=True, output=place / "out", cache=place / "cache"
        )
    assert (tally.loads, tally.rows.total()) == ([], 0)
    return found


def test_the_copy_is_found_from_stored_vectors(place: Path, audited: Result) -> None:
    (audit,) = audited.parts
    rows = audit.frame[audit.frame["finding"] == "duplicate"]
    files = {path.relative_to(place / "photos").as_posix() for path in (place / "photos").rglob("*.JPEG")}
    copy = next(name for name in files if "=copy" in name)
    assert copy in {*rows["file"], *rows["other"]}
    assert (rows["cosine"].astype(float) > 0.999).any()
    assert audit.notes[0].startswith(
        "21 images, by each backbone at its layer of the best leave-one-out k-NN"
    )
    table = pd.read_csv(place / "out" / "audit.csv", keep_default_na=False)
    assert [*table.columns] == [*audit.frame.columns]


def test_the_split_is_a_table_of_labels(place: Path, audited: Result) -> None:
    path = place / "out" / "audit-split.csv"
    with path.open(newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    copy = next(name for name in rows if "=copy" in name)
    original = "n00000001/n00000001_0.JPEG"
    assert rows[copy]["group"] == rows[original]["group"] != ""
    assert rows[copy]["split"] == rows[original]["split"]
    for option in ("labels", "groups"):
        found = layerboard.check(images=place / "photos", **{option: path})
        assert found.frame["state"].tolist() == ["complete"]


def test_no_cell_of_the_split_is_a_formula_and_it_names_the_images_as_they_are(tmp_path: Path) -> None:
    """Classes and files may be called like formulas."""
    for name in ("=cmd()", "@b"):
        fakes.write_fake_class_folders(tmp_path / "made", classes=1, images=6)
        (made,) = (tmp_path / "made").iterdir()
        shutil.copytree(made, tmp_path / "photos" / name)
    images, folders = tmp_path / "photos", {"output": tmp_path / "out", "cache": tmp_path / "cache"}
    run(tmp_path, ["mini-fs"], "knn", images=images)
    layerboard.check(images=images, features=True, **folders)
    path = tmp_path / "out" / "audit-split.csv"
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert "'=cmd()" in cells
    for option in ("labels", "groups"):
        found = layerboard.check(images=images, **{option: path})
        assert found.frame["state"].tolist() == ["complete"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("finding,", "found,", 1), "expected the columns dataset, finding, file"),
        (lambda text: text.replace("other_picture,", "", 1), "expected the columns"),
        (lambda text: text.replace(",duplicate,", ",duplicates,"), "there is no finding 'duplicates'"),
        (lambda text: text + '"', "cannot read the audit"),
        (lambda text: text.replace(",duplicate,", ",series,", 1).replace("0.9", "x", 1), "convert string"),
        (lambda text: "", "No columns"),
        (lambda text: text + "\0", "cannot read the audit"),
    ],
)
def test_a_damaged_audit_is_said(capsys: Capture, place: Path, audited: Result, change, words) -> None:  # type: ignore[no-untyped-def]
    path, sums = place / "out" / "audit.csv", place / "out" / SUMS
    whole, digests = path.read_text(), sums.read_text()
    sums.unlink()  # else the table is not read at all
    path.write_text(change(whole))
    try:
        said = command(capsys, "report", "-o", place / "out")
    finally:
        path.write_text(whole)
        sums.write_text(digests)
    assert said.code == 2
    assert "cannot read the audit" in said.error
    assert words in said.error
    assert "delete it, or write it again by `layerboard check --features`" in said.error


def test_the_report_shows_it_with_pictures(capsys: Capture, place: Path, audited: Result) -> None:
    assert command(capsys, "report", "-o", place / "out").code == 0
    (page,) = (place / "out" / "report").glob("*.html")
    text = page.read_text()
    assert 'id="audit"' in text
    assert 'id="audit-0"' in text
    assert "/=copy.JPEG" in text


def test_it_is_printed(capsys: Capture, place: Path) -> None:
    folders = ("--images", place / "photos", "-o", place / "out", "--cache", place / "cache")
    shown = command(capsys, "check", "--features", *folders)
    assert shown.code == 0
    assert "Audit by features" in shown.out
    assert "n00000002/=copy.JPEG" in shown.out
    assert "Series: none" in shown.out


def test_without_a_run_it_says_what_to_do(place: Path, tmp_path: Path) -> None:
    for output in (tmp_path / "none", place / "out"):
        images = place / "photos" if output != place / "out" else next((place / "photos").iterdir())
        with pytest.raises(InputError, match="found none; `layerboard run` on the same images"):
            layerboard.check(images=images, features=True, output=output, cache=place / "cache")


def test_it_is_of_one_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="features= is for one folder of images=, found 0"):
        layerboard.check(data=tmp_path, features=True)


def test_a_changed_table_is_not_shown(capsys: Capture, place: Path, audited: Result, tmp_path: Path) -> None:
    shutil.copytree(place / "out", tmp_path / "out")
    table = tmp_path / "out" / "audit.csv"
    table.write_text(table.read_text().replace("copy.JPEG", "other.JPEG"))
    assert command(capsys, "report", "-o", tmp_path / "out").code == 0
    (page,) = (tmp_path / "out" / "report").glob("*.html")
    text = page.read_text()
    assert "audit.csv was changed after `layerboard check` wrote it, and is not shown" in text
    assert "other.JPEG" not in text
