"""A folder of bursts is said to be one beside its scores, but not with groups, nor are independent images."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import layerboard
from layerboard.leaderboards.board.near_duplicates import read_near_duplicates
from layerboard.leaderboards.records.files import NEAR_DUPLICATE_PAIRS, NEAR_DUPLICATES
from tests.benchmark.runs import Cli

SIDE = 48


def scene(random: np.random.Generator) -> Image.Image:
    """A picture of coarse and fine blobs of random colours."""
    coarse, fine = (
        Image.fromarray(random.integers(0, 256, (cells, cells, 3), dtype=np.uint8)).resize(
            (SIDE + 8, SIDE + 8), Image.Resampling.BICUBIC
        )
        for cells in (4, 12)
    )
    return Image.blend(coarse, fine, 0.4)


def shot(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    """A frame of a burst: the scene from a slightly other place, with the noise of a sensor."""
    left, top = (int(each) for each in random.integers(0, 4, 2))
    frame = np.asarray(picture.crop((left, top, left + SIDE, top + SIDE)), np.float64)
    return Image.fromarray((frame + random.normal(0, 3, frame.shape)).clip(0, 255).astype(np.uint8))


def photos(folder: Path, scenes: int, frames: int) -> Path:
    """Three classes of so many scenes, each in so many frames, and a table of the scenes as groups."""
    random = np.random.default_rng(scenes)
    groups = ["file,group"]
    for kind in range(3):
        (folder / f"class-{kind}").mkdir(parents=True)
        for number in range(scenes):
            picture = scene(random)
            for frame in range(frames):
                name = f"class-{kind}/{number * frames + frame}.png"
                shot(picture, random).save(folder / name)
                groups.append(f"{name},{kind}-{number}")
    (folder.parent / "groups.csv").write_text("\n".join(groups))
    return folder


@pytest.mark.slow
def test_a_folder_of_bursts_is_said_to_be_one_wherever_its_score_is(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, output = photos(tmp_path / "photos", 4, 6), tmp_path / "out"
    places = ["--images", folder, "-o", output, "--cache", tmp_path / "cache"]
    words = ["-b", "mini-fs", "-t", "knn", "--layers", "1,6,12", "--workers", "1", *places]
    said = cli("run", *words)
    assert said.code == 0
    (found,) = read_near_duplicates(output).values()
    assert (found.images, found.backbone) == (72, "mini-fs")
    assert found.share > 0.3  # the scenes are alike, too
    warning = (
        f"At least {100 * found.share:.0f} % of the {found.images} images of photos have a near-duplicate"
    )
    assert warning in " ".join(said.out.split())
    (page,) = (path for path in (output / "tables").glob("*.md") if path.suffixes == [".md"])
    assert warning in page.read_text()
    (report,) = layerboard.report(output=output).paths
    answer, _, rest = report.read_text().partition('id="best"')
    assert (warning in answer, warning in rest) == (True, True)
    assert warning in " ".join(layerboard.best(output=output).notes)

    monkeypatch.setattr("layerboard.benchmark.api.write_changed", lambda *_: ([], False))
    with_groups = cli("run", *words, "--groups", tmp_path / "groups.csv")
    assert (with_groups.code, warning in " ".join(with_groups.out.split())) == (0, False)


def in_two_splits(folder: Path) -> dict[str, str]:
    """Scenes in train and in val, and two copies of each of three: one in val, and one in the other class."""
    random, copies = np.random.default_rng(7), dict[str, str]()
    for part, count in (("train", 24), ("val", 8)):
        for kind in ("a", "b"):
            (folder / part / kind).mkdir(parents=True)
            for number in range(count):
                scene(random).save(folder / part / kind / f"{number}.png")
    for number in range(3):
        with Image.open(folder / "train" / "a" / f"{number}.png") as image:
            image.save(folder / "val" / "a" / f"copy{number}.jpg", quality=90)
            image.save(folder / "train" / "b" / f"copy{number}.jpg", quality=80)
        copies[f"val/a/copy{number}.jpg"] = f"train/b/copy{number}.jpg"
    return copies


@pytest.mark.slow
def test_a_run_writes_the_pairs_that_it_counts_and_check_names_them(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layerboard.benchmark.api.write_changed", lambda *_: ([], False))
    copies, output = in_two_splits(tmp_path / "photos"), tmp_path / "out"
    places = ["--images", tmp_path / "photos", "-o", output, "--cache", tmp_path / "cache"]

    def checked() -> str:
        said = cli("check", *places)
        assert said.code == 0
        return " ".join(said.out.split())

    assert f"layerboard run --images DIR -o {output} counts those" in checked()
    words = ["-b", "mini-fs", "mini-dino", "-t", "knn", "--layers", "1,6,12", "--workers", "1", *places]
    assert cli("run", *words).code == 0
    (counted,) = read_near_duplicates(output).values()
    said, path = checked(), output / NEAR_DUPLICATE_PAIRS
    pairs = pd.read_csv(path)
    paired = {*pairs["file"], *pairs["other"]}
    assert len(paired) == round(counted.share * counted.images) >= 9
    assert str(path) in said
    written = {frozenset(each) for each in pairs[["file", "other"]].itertuples(index=False)}
    first = {f"train/a/{number}.png" for number in range(3)}
    assert {frozenset(pair) for pair in copies.items()} <= written
    assert {*copies, *copies.values(), *first} <= paired
    # those across splits come first, then those of two classes
    crossing = pairs["split"] != pairs["other_split"]
    assert crossing.sum() >= 6
    assert crossing.is_monotonic_decreasing
    assert (pairs["label"] != pairs["other_label"])[~crossing].is_monotonic_decreasing
    assert pairs["cosine"].between(0.9, 1).all()
    assert {*pairs["dataset"]} == {counted.dataset}
    found = layerboard.check(images=tmp_path / "photos", output=output, cache=tmp_path / "cache")
    assert found.paths == (path,)
    said = cli("check", "--images", tmp_path / "photos" / "val", *places[2:]).out
    assert "Near-duplicates are not counted yet" in said  # among these images, though among others
    path.unlink()
    assert f"The pairs of near-duplicates are not in {path}; " in checked()


def test_independent_images_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layerboard.benchmark.api.write_changed", lambda *_: ([], False))
    options = {"images": photos(tmp_path / "photos", 20, 1), "layers": "1,6,12", "floor": False}
    found = layerboard.run("mini-dino", "knn", output=tmp_path / "out", cache=tmp_path / "cache", **options)
    assert "near-duplicate" not in str(found)
    (counted,) = read_near_duplicates(tmp_path / "out").values()
    assert counted.share <= 0.02
    (tmp_path / "out" / NEAR_DUPLICATES).write_text("something else")
    assert read_near_duplicates(tmp_path / "out") == {}
    assert "near-duplicate" not in str(layerboard.best(output=tmp_path / "out"))
