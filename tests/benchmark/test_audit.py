"""`duplicates`: copies, doubtful labels and series of a folder, as a user asks for them."""

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

import layerboard
from layerboard.benchmark.commands.result import Files
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import Tally, command, run
from tests.benchmark.test_find import texture

Capture = pytest.CaptureFixture[str]
ORIGINALS, COPIED = 24, 3


def copies(image: Image.Image) -> Iterator[tuple[str, Image.Image, dict[str, int]]]:
    """Versions of an image: the end of the name, the pixels, and how they are saved."""
    width, height = image.size
    yield "-1.png", image, {}
    yield "-2.png", image, {}
    yield "-3.jpg", image, {"quality": 40}
    yield "-half.png", image.resize((width // 2, height // 2)), {}
    yield "-crop.png", image.crop((5, 4, width - 4, height - 4)), {}
    yield "-mirror.png", ImageOps.mirror(image), {}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Different images, and in another folder versions of the first ones."""
    folder = tmp_path_factory.mktemp("planted") / "photos"
    (folder / "more" / "deep").mkdir(parents=True)
    for seed in range(ORIGINALS):
        image = texture(seed)
        image.save(folder / f"photo{seed:02}.png")
        for ending, copy, options in copies(image) if seed < COPIED else ():
            copy.save(folder / "more" / "deep" / f"v{seed:02}{ending}", **options)
    (folder / "broken.png").write_bytes(b"no image")
    return folder


def searched(place: Path, folder: Path, **options: object) -> Files:
    return layerboard.duplicates(  # type: ignore[arg-type]
        folder, to=place / "d.html", cache=place / "cache", output=place / "out", **options
    )


def original(name: str) -> int:
    """Number of the image that a planted file is a version of."""
    return int("".join(filter(str.isdecimal, Path(name).name))[:2])


def pairs(found: Files) -> set[frozenset[str]]:
    rows = found.frame[found.frame["finding"] == "duplicate"]
    return {frozenset(pair) for pair in zip(rows["file"], rows["other"], strict=True)}


def test_all_versions_of_an_image_and_nothing_else_are_listed(planted: Path, tmp_path: Path) -> None:
    found = searched(tmp_path, planted)
    seeds = [{*map(original, pair)} for pair in pairs(found)]
    assert all(len(each) == 1 for each in seeds)
    assert sorted(seed for (seed,) in seeds) == sorted([*range(COPIED)] * 6)
    said = " ".join(found.notes)
    assert "No pairs are labelled, so no precision is known" in said
    assert "1 image could not be read, and the others were compared: broken.png" in said
    assert "No image was changed or deleted" in said
    assert "precision 9" not in said


def test_labelled_copies_give_the_threshold_of_a_precision(planted: Path, tmp_path: Path) -> None:
    rows = [
        (f"more/deep/v{seed:02}{ending}", seed) for seed in (0, 1) for ending, *_ in copies(texture(seed))
    ]
    rows += [(f"photo{seed:02}.png", seed) for seed in range(8)]
    table = tmp_path / "known.csv"
    table.write_text("\n".join(["file,group", *(f"{name},thing{seed}" for name, seed in rows)]))
    found = searched(tmp_path, planted, labels=table, precision=0.9)
    assert any({*map(original, pair)} == {2} for pair in pairs(found))
    (said,) = (note for note in found.notes if "labelled pairs" in note and "are copies" in note)
    assert "precision in this folder 100.0 %" in said
    assert "No pairs are labelled" not in " ".join(found.notes)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on class folders in which one image is a copy of another."""
    place = tmp_path_factory.mktemp("audit")
    fakes.write_fake_class_folders(place / "photos", classes=2, images=10)
    first, second = sorted((place / "photos").iterdir())
    shutil.copyfile(next(iter(sorted(first.iterdir()))), second / "=copy.JPEG")
    run(place, ["mini-fs"], "knn", images=place / "photos", layers="all")
    return place


@pytest.fixture(scope="module")
def audited(place: Path) -> Files:
    with Tally().watching() as tally:
        found = searched(place, place / "photos")
    assert (tally.loads, tally.rows.total()) == ([], 0)  # those of the run
    return found


def test_the_vectors_and_the_classes_of_a_run_are_used(place: Path, audited: Files) -> None:
    assert any("n00000002/=copy.JPEG" in pair for pair in pairs(audited))
    assert audited.notes[0].startswith(
        "21 images, by each backbone at its layer of the best leave-one-out k-NN: mini-fs"
    )
    assert audited.paths == (place / "d.html", place / "d.csv", place / "d-groups.csv")
    with audited.paths[1].open(newline="") as file:
        assert next(csv.reader(file)) == [*audited.frame.columns]


def test_the_groups_are_a_table_of_labels_without_formulas(place: Path, audited: Files) -> None:
    path = audited.paths[2]
    with path.open(newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    copy = next(name for name in rows if "=copy" in name)
    original = "n00000001/n00000001_0.JPEG"
    assert rows[copy]["group"] == rows[original]["group"] != ""
    assert rows[copy]["split"] == rows[original]["split"]
    for option in ("labels", "groups"):
        found = layerboard.check(images=place / "photos", **{option: path})
        assert found.frame["state"].tolist() == ["complete"]


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    """Classes and files may be called like formulas."""
    for name in ("=cmd()", "@b"):
        fakes.write_fake_class_folders(tmp_path / "made", classes=1, images=6)
        (made,) = (tmp_path / "made").iterdir()
        shutil.copytree(made, tmp_path / "photos" / name)
    found = searched(tmp_path, tmp_path / "photos")
    for path in found.paths[1:]:
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    for option in ("labels", "groups"):
        checked = layerboard.check(images=tmp_path / "photos", **{option: found.paths[2]})
        assert checked.frame["state"].tolist() == ["complete"]


def test_it_is_printed_and_the_page_is_one_offline_file(capsys: Capture, place: Path, tmp_path: Path) -> None:
    folders = ("-o", place / "out", "--cache", place / "cache", "--to", tmp_path / "x.html")
    said = command(capsys, "duplicates", place / "photos", *folders)
    assert said.code == 0
    assert "n00000002/=copy.JPEG" in said.out
    assert said.out.endswith("".join(f"{tmp_path / name}\n" for name in ("x.html", "x.csv", "x-groups.csv")))
    text = (tmp_path / "x.html").read_text()
    assert "n00000002/=copy.JPEG" in text
    assert text.count("<figure>") >= 2
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": 0.0}, "precision= takes a number above 0 and at most 1; found 0"),
        ({"precision": 95}, "precision= takes a number above 0 and at most 1; found 95"),
        ({"labels": Path("none.csv")}, "none.csv"),
        ({"backbones": "mini-none"}, "mini-none"),
    ],
)
def test_wrong_options_are_said(
    planted: Path, tmp_path: Path, options: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        searched(tmp_path, planted, **options)


def test_mixed_folders_have_no_classes_and_a_single_image_no_copy(tmp_path: Path) -> None:
    folder = tmp_path / "photos" / "a"
    folder.parent.mkdir()
    texture(0).save(tmp_path / "photos" / "one.png")
    assert not len(searched(tmp_path, tmp_path / "photos").frame)
    folder.mkdir()
    np.save(folder / "array.npy", np.zeros(3))
    texture(0).save(folder / "two.png")
    found = searched(tmp_path, tmp_path / "photos")
    assert pairs(found) == {frozenset(("one.png", "a/two.png"))}
    assert any("without classes" in note.lower() for note in found.notes)
