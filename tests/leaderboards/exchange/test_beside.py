import shutil
from pathlib import Path

import pytest

from layerboard.leaderboards.exchange.check import check_pages
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.planted import plant, records
from tests.leaderboards.shown import write_pages

DINO = {"mini-dino": "DINO"}
NAME = "localisation.mini-imagenet.standard"


def localised():
    return frame(records("localisation", DINO, depth=3), layers([1.0, 2.0, 3.0]))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    plant(folder / "arrays", "localisation", DINO, depth=3, grid=2)
    write_pages(localised(), folder, arrays=folder / "arrays")
    return folder


@pytest.fixture
def written(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def figures(folder):
    return sorted(path.name for path in (folder / "mini.inside").iterdir())


def test_pictures_are_files_beside_the_page_and_current(written):
    assert figures(written) == [f"{NAME}.depth.svg", f"{NAME}.tokens.svg"]
    assert f"](mini.inside/{NAME}.tokens.svg)" in (written / "mini.inside.md").read_text()
    assert check_pages(localised(), written) == []
    before = [path.read_bytes() for path in sorted((written / "mini.inside").iterdir())]
    write_pages(localised(), written, arrays=written / "arrays")
    assert before == [path.read_bytes() for path in sorted((written / "mini.inside").iterdir())]


def test_pictures_of_a_former_page_go_and_other_files_stay(written):
    (written / "mini.inside" / "mine.txt").write_text("mine")
    (written / "mini").mkdir()
    (written / "mini" / "mine.svg").write_text("mine")
    write_pages(localised(), written)
    assert figures(written) == [f"{NAME}.depth.svg", "mine.txt"]
    assert (written / "mini" / "mine.svg").exists()
    assert check_pages(localised(), written) == []


def test_the_check_names_pictures_that_are_missing_or_on_no_page(written):
    (written / "mini.inside" / f"{NAME}.depth.svg").rename(written / "mini.inside" / "other.svg")
    again = "write the leaderboard again"
    assert check_pages(localised(), written) == [
        f"mini.inside/{NAME}.depth.svg, which mini.inside.md shows, is not in {written}; {again}",
        f"mini.inside/other.svg is not shown on mini.inside.md; {again}",
    ]
