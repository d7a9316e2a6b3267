"""`find`: images and regions of a folder, as a user asks for them."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import layerboard
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import Tally, command

Capture = pytest.CaptureFixture[str]
ACROSS, DOWN = 160, 120  # pixels of an image
BOX = (32, 24, 64, 48)  # x, y, width and height of the region


def texture(seed: int, size: tuple[int, int] = (ACROSS, DOWN)) -> Image.Image:
    """Coloured blobs, other ones for each seed."""
    random = np.random.default_rng(seed)
    small = random.integers(0, 256, (6, 8, 3), np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images in folders of folders: turned by EXIF, transparent, animated, a link, and a broken one."""
    folder = tmp_path_factory.mktemp("find") / "photos"
    (folder / "a" / "deep").mkdir(parents=True)
    for seed in range(6):
        texture(seed).save(folder / f"plain{seed}.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    texture(10).rotate(90, expand=True).save(folder / "a" / "turned.jpg", exif=exif, quality=95)
    clear = texture(11).convert("RGBA")
    alpha = np.repeat(np.repeat(np.uint8([[0, 255]]), ACROSS // 2, 1), DOWN, 0)
    clear.putalpha(Image.fromarray(alpha))
    clear.save(folder / "a" / "clear.png")
    texture(12).save(folder / "a" / "deep" / "moves.gif", save_all=True, append_images=[texture(13)])
    (folder / "a" / "deep" / "link.png").symlink_to(folder / "plain0.png")
    (folder / "broken.jpg").write_bytes((folder / "plain1.png").read_bytes()[:900])
    return folder


def found(
    place: Path, photos: Path, query: object, **options: object
) -> layerboard.benchmark.commands.result.Files:  # type: ignore[name-defined]
    return layerboard.find(query, photos, to=place / "found.html", cache=place / "cache", **options)  # type: ignore[arg-type]


def test_images_are_found_as_people_see_them(photos: Path, tmp_path: Path) -> None:
    queries = {
        "a/turned.jpg": texture(10),
        "a/deep/moves.gif": texture(12),
        "a/clear.png": None,
        "plain3.png": None,
    }
    for name, query in queries.items():
        first = found(tmp_path, photos, query or photos / name).frame.iloc[0]
        assert (first["image"], first["score"] > 0.98) == (name, True)
    white = texture(11)
    white.paste("white", (0, 0, ACROSS // 2, DOWN))
    assert found(tmp_path, photos, white).frame["image"][0] == "a/clear.png"


def test_the_second_search_shows_only_the_query_and_says_what_it_left_out(
    photos: Path, tmp_path: Path
) -> None:
    first = found(tmp_path, photos, photos / "plain0.png", top=3)
    with Tally().watching() as tally:
        again = found(tmp_path, photos, photos / "plain0.png", top=3)
    assert tally.rows.total() == 0
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert {*first.frame["image"][:2]} == {"plain0.png", "a/deep/link.png"}
    for result in (first, again):
        assert any("1 image could not be read" in note and "broken.jpg" in note for note in result.notes)
    assert "the best of retrieval on mini-oxford in the packaged results" in first.notes[0]


def test_a_region_is_found_in_other_images(tmp_path: Path) -> None:
    folder, (x, y, width, height) = tmp_path / "photos", BOX
    folder.mkdir()
    query = texture(20)
    part = query.crop((x, y, x + width, y + height))
    places = {"one.png": (80, 50, 1.0), "two.png": (10, 60, 1.0), "large.png": (20, 10, 1.5)}
    for seed in range(8):
        texture(seed).save(folder / f"plain{seed}.png")
    for seed, (name, (left, top, scale)) in enumerate(places.items(), start=30):
        image = texture(seed)
        size = round(width * scale), round(height * scale)
        image.paste(part.resize(size, Image.Resampling.BICUBIC), (left, top))
        image.save(folder / name)
    result = found(tmp_path, folder, query, box=BOX, top=5)
    assert {*result.frame["image"][:3]} == {*places}
    for row in result.frame[:3].to_dict("records"):
        left, top, scale = places[row["image"]]
        truth = (left, top, left + width * scale, top + height * scale)
        box = (row["x"], row["y"], row["x"] + row["width"], row["y"] + row["height"])
        assert overlap(box, truth) >= 0.5, (row, truth)


def overlap(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Intersection over union of boxes by their edges."""
    width, height = (
        max(0.0, min(first[side + 2], second[side + 2]) - max(first[side], second[side])) for side in (0, 1)
    )
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return width * height / (sum(areas) - width * height)


def test_the_page_is_one_offline_file(capsys: Capture, photos: Path, tmp_path: Path) -> None:
    page, folders = tmp_path / "x.html", ("--to", tmp_path / "x.html", "--cache", tmp_path / "cache")
    said = command(
        capsys, "find", photos / "plain2.png", "--in", photos, "--box", "10,10,60,60", "--top", "2", *folders
    )
    assert said.code == 0
    assert said.out.splitlines()[-2:] == [str(page), str(tmp_path / "x.csv")]
    text = page.read_text()
    assert text.count("<figure>") == 3
    assert text.count('class="inner"') == 3
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text
    assert "is a toy network" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"box": "1,2,3"}, "box= takes four numbers x,y,width,height"),
        ({"box": (150, 0, 20, 10)}, "inside the image of 160 x 120 pixels; found 150,0,20,10"),
        ({"box": (0, 0, 0, 10)}, "box= takes four numbers"),
        ({"layer": 99}, "layer= takes a block of mini-dino from 0 to"),
        ({"backbones": ["mini-fs", "mini-mae"]}, "find takes one backbone, found 2"),
        ({"top": 0}, "top= takes a whole number of at least 1"),
    ],
)
def test_wrong_options_are_said(photos: Path, tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        found(tmp_path, photos, photos / "plain0.png", **options)


def test_wrong_places_are_said(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copy(photos / "broken.jpg", tmp_path / "empty" / "broken.jpg")
    for query, folder, words in [
        (photos / "none.png", photos, "none.png"),
        (photos / "broken.jpg", photos, "cannot decode image"),
        (photos / "plain0.png", tmp_path / "nowhere", "does not exist"),
        (photos / "plain0.png", tmp_path / "empty", "found none among 1"),
        (42, photos, "expected images of Pillow, arrays or paths, found int"),
    ]:
        with pytest.raises(InputError, match=words):
            found(tmp_path, folder, query)


def test_classes_are_no_hindrance(tmp_path: Path) -> None:
    folder = fakes.write_fake_class_folders(tmp_path / "photos", classes=2, images=3)
    name = "n00000002/n00000002_1.JPEG"
    assert found(tmp_path, folder, folder / name).frame["image"][0] == name
