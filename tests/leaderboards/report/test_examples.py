"""The section of failures and successes, from planted predictions."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.report.gallery.places import outline
from layerboard.leaderboards.report.gallery.section import example_sections
from layerboard.leaderboards.report.templates.environment import ASSETS
from tests.leaderboards.builder import layers
from tests.leaderboards.reader import Reader
from tests.leaderboards.report.kept import CLASSES, keep, keep_knn, read

NASTY = "val/dog/<script>alert('1')</script>&\"x\".png"

STYLE = (ASSETS / "examples.css").read_text(encoding="utf-8")


def section(output: Path) -> Reader:
    (found,) = example_sections(Board.of(read(output)), output)
    assert (found.anchor, found.title) == ("examples", "Failures and successes")
    page = Reader(str(found.html))
    assert page.open == []
    assert not {"script", "style", "link"} & {tag for tag, _ in page.tags}
    assert page.values("style") == []
    for address in page.values("href") + page.values("src"):
        assert address.startswith(("data:image/", "#examples-"))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {one for one in page.values("href") if one.startswith("#")} <= {f"#{name}" for name in ids}
    return page


def test_a_query_that_the_best_backbone_loses_is_told_with_its_neighbours(tmp_path: Path) -> None:
    keep_knn(tmp_path, "mini-dino", [50.0, 90.0, 40.0], [[False, True], [True, True], [False, True]])
    keep_knn(tmp_path, "mini-clip", [50.0, 80.0, 70.0], [[False, True], [True, True], [True, False]])
    page = section(tmp_path)
    assert "knn top-1: mini-dino" in page.text
    assert (
        "1 of 2 are right at layer 1, 2 of 2 are right at layer 2, 1 of 2 are right at layer 3" in page.text
    )
    assert "dog right at layer 2, wrong at layers 1 and 3" in page.text
    assert "dog right at layers 1, 2 and 3" in page.text
    assert page.text.count("lost with depth") == 1
    assert page.text.count("right at every layer") == 1
    assert "mini-clip, layer 2: dog" in page.text
    labels = page.values("aria-label")
    assert "cat: wrong class, neighbour 1 at layer 3, cosine 0.50, train/cat/near.png" in labels
    assert "dog: right class, neighbour 1 at layer 2, cosine 0.50, train/dog/near.png" in labels
    frames = [one for one in page.values("class") if one.startswith("examples-frame")]
    assert frames.count("examples-frame examples-no") == 2  # the lost one's first and last layer
    # ids of four pictures, though the neighbours are shown at many layers
    assert len([1 for tag, _ in page.tags if tag == "image"]) == 4


def test_classes_come_lowest_first_with_what_they_are_taken_for(tmp_path: Path) -> None:
    classes = CLASSES | {"mistaken_image": [["val/dog", "val/cat", ""]] * 3}
    for name, right in (("mini-dino", [3, 2, 0]), ("mini-clip", [2, 4, 0])):
        top = 90.0 if name == "mini-dino" else 80.0
        keep_knn(tmp_path, name, [50.0, top, 40.0], [[True]] * 3, more=classes | {"class_right": [right] * 3})
    page = section(tmp_path)
    shown = re.sub(r"\s+", " ", page.text[page.text.index("Accuracy by class") :])

    def cell(right: int, images: int) -> str:
        ends = binomtest(right, images).proportion_ci()
        return f"{100 * right / images:.0f}({100 * ends.low:.0f}to{100 * ends.high:.0f})"

    dog = f"dog5{cell(2, 5)}{cell(4, 5)}cat(3)"
    cat = f"cat4{cell(3, 4)}{cell(2, 4)}dog(1)"
    assert shown.replace(" ", "").index(dog) < shown.replace(" ", "").index(cat)
    assert "none" not in shown
    assert "dog taken for cat: 3 images" in shown
    assert "cat taken for dog: 1 image " in shown


def test_where_the_best_backbone_loses_nothing_another_that_does_is_named(tmp_path: Path) -> None:
    keep_knn(tmp_path, "mini-dino", [50.0, 60.0, 90.0], [[False], [True], [True]])
    keep_knn(tmp_path, "mini-clip", [50.0, 80.0, 10.0], [[True], [True], [False]])
    page = section(tmp_path)
    assert "found with depth" in page.text
    assert "lost with depth by mini-clip" in page.text


def test_names_from_data_are_texts(tmp_path: Path) -> None:
    keep_knn(tmp_path, "own/<b>", [50.0, 60.0, 40.0], [[False], [True], [False]], query=NASTY, wrong="<i>&")
    page = section(tmp_path)
    assert NASTY in page.text
    assert "own/<b>" in page.text
    assert "✗ wrong: <i>&" in page.text
    assert f"query: dog, {NASTY}" in page.values("aria-label")


def test_a_picture_that_is_gone_is_said_in_words(tmp_path: Path) -> None:
    keep_knn(tmp_path, "mini-dino", [50.0, 90.0, 40.0], [[False], [True], [False]])
    shutil.rmtree(tmp_path / "thumbnails")
    page = section(tmp_path)
    assert "(no picture)" in page.text
    assert "cat: wrong class, neighbour 1 at layer 3" in page.text


def test_examples_that_are_not_those_of_the_records_are_left_out(tmp_path: Path) -> None:
    keep_knn(tmp_path, "mini-dino", [50.0, 90.0, 40.0], [[False], [True], [False]])
    (path,) = (tmp_path / "examples").rglob("*.npz")
    path.write_bytes(path.read_bytes() + b" ")
    assert example_sections(Board.of(read(tmp_path)), tmp_path) == []
    path.unlink()
    keep(tmp_path, layers([50.0, 90.0, 40.0]), {"version": 0, "query": ["q"]}, ["q"])
    assert example_sections(Board.of(read(tmp_path)), tmp_path) == []
    path.unlink()
    assert example_sections(Board.of(read(tmp_path)), tmp_path) == []


def test_a_ranking_a_mask_and_points_are_drawn(tmp_path: Path) -> None:
    ranking = {
        "query": ["query/a"],
        "positives": [7],
        "neighbour": [[["x", "y"]], [["y", "x"]], [["y", ""]]],
        "kind": [[["wrong", "hard"]], [["easy", "wrong"]], [["hard", ""]]],
        "average_precision": [[10.0], [60.0], [90.0]],
    }
    task = {"task": "retrieval", "metric": "mAP medium", "dataset": "mini-oxford"}
    keep(tmp_path, layers([10, 60, 90], **task), ranking, ["query/a", "x", "y"])
    square = np.full((96, 96), 255, np.uint8)
    square[:30, :40] = 0
    square[10:20, 10:20] = 1
    video = {
        "video": ["run"],
        "frame": ["run/4"],
        "first": ["run/0"],
        "position": [4],
        "truth": square[None],
        "given": square[None],
        "mask": np.stack([square[None], np.where(square == 1, 0, square)[None], square[None]]),
        "score": [[90.0], [80.0], [30.0]],
    }
    keep(
        tmp_path, layers([90, 80, 30], task="davis", metric="J&F", pooling="grid"), video, ["run/0", "run/4"]
    )
    points = {
        "pair": ["1:dog"],
        "category": ["dog"],
        "source": ["s"],
        "target": ["t"],
        "source_size": [[80, 60]],
        "target_size": [[80, 60]],
        "of_pair": [0, 0],
        "source_point": [[8.0, 8.0], [16.0, 6.0]],
        "target_point": [[20.0, 10.0], [40.0, 30.0]],
        "point": [[[20, 10], [40, 30]], [[20, 10], [60, 50]], [[70, 10], [60, 50]]],
        "right": [[True, True], [True, False], [False, False]],
    }
    keep(tmp_path, layers([90, 50, 0], task="spair", metric="PCK@0.1", pooling="grid"), points, ["s", "t"])
    image = {
        "image": ["val/7"],
        "classes": ["ground", "<dog>"],
        "truth": square[None],
        "mask": np.stack([np.where(square == 1, 0, square)[None], square[None], square[None]]),
        "score": [[91.0], [100.0], [100.0]],
    }
    keep(tmp_path, layers([10, 90, 80], task="segment", metric="mIoU", pooling="grid"), image, ["val/7"])
    product = {
        "image": ["nut/test/crack/0"],
        "product": ["nut"],
        "kind": ["<crack>"],
        "truth": square[None],
        "heat": np.stack([np.where(square == 1, heat, square)[None] for heat in (0, 40, 100)]),
        "score": [[20.0], [80.0], [100.0]],
    }
    defects = layers([10, 90, 80], task="anomaly", metric="AUROC", pooling="grid")
    keep(tmp_path, defects, product, ["nut/test/crack/0"])
    page = section(tmp_path)
    assert "nut, <crack> told from 20 % at layer 1, told from 80 % at layer 2, told from 100 %" in page.text
    label = "distance of layer 3 from good images, nut, <crack>: nut/test/crack/0: told from 100 %"
    assert label in page.values("aria-label")
    assert "<dog> 91 % right at layer 1, 100 % right at layer 2, 100 % right at layer 3" in page.text
    assert "wrong pixels of layer 1, val/7: 8.3%" in page.values("aria-label")
    assert "AP 10 at layer 1, AP 90 at layer 3; 7 images show the same" in page.text
    assert "same, hard" in page.text
    assert "another: rank 1 at layer 1, x" in page.values("aria-label")
    assert "run frame 5: J&F 90 at layer 1, J&F 30 at layer 3" in page.text
    assert "frame 5 of run with the mask of layer 3: J&F 30" in page.values("aria-label")
    assert "wrong pixels of layer 2, frame 5 of run: 8.3%" in page.values("aria-label")
    assert "2 of 2 points at layer 1, 0 of 2 points at layer 3" in page.text
    # the picture has half the image's pixels: the second point of layer 2 is at (30, 25), not at (20, 15)
    (missed,) = {path for path in page.values("d") if path.startswith("M30.0 25.0L20.0 15.0")}
    assert missed == "M30.0 25.0L20.0 15.0M27.5 22.5l5 5m0 -5l-5 5"
    assert [tag for tag, _ in page.tags].count("circle") == 2 + 2 + 2 + 2


def test_clusters_say_what_is_among_its_own_class(tmp_path: Path) -> None:
    images = [f"train/{name}/{number}.png" for name in ("cat", "dog") for number in range(3)]
    arrays = {
        "image": images,
        "class": ["cat"] * 3 + ["n1"] * 3,
        "class_folder": ["n1"],
        "class_name": ["dog"],
        "cluster": [[0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 2]],
    }
    keep(tmp_path, layers([20, 50, 60], task="cluster-image", metric="purity"), arrays, images)
    page = section(tmp_path)
    assert "layer 1 4 of 6 are with their own class, in 2 clusters" in page.text
    assert "layer 3 (best) 6 of 6 are with their own class, in 3 clusters" in page.text
    assert "1 smaller cluster is not shown." in page.text
    assert "dog, unlike most of its cluster, train/dog/1.png" in page.values("aria-label")


def test_the_outline_is_where_an_object_ends() -> None:
    truth = np.zeros((5, 5), np.uint8)
    truth[1:4, 1:4] = 2
    expected = truth > 0
    expected[2, 2] = False
    assert (outline(truth) == expected).all()


def test_every_rule_of_the_style_is_of_the_section() -> None:
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"@media[^{]*\{", "", STYLE))
    assert len(rules) > 20
    for selectors in rules:
        assert all(".examples" in one for one in selectors.split(",")), selectors


@pytest.mark.browser
@pytest.mark.slow
def test_an_example_opens_by_keyboard_on_a_phone_without_a_script(tmp_path: Path, browser, watch) -> None:
    keep_knn(tmp_path, "mini-dino", [50.0, 90.0, 40.0], [[False, True], [True, True], [False, True]])
    (found,) = example_sections(Board.of(read(tmp_path)), tmp_path)
    page_path = tmp_path / "page.html"
    hidden = ".hidden{position:absolute;width:1px;height:1px;overflow:hidden}.scroll{overflow:auto}"
    style = f"<style>{hidden}{STYLE}</style>"
    page_path.write_text(f"<!doctype html><meta charset=utf-8>{style}{found.html}", encoding="utf-8")
    page = browser.new_page(viewport={"width": 360, "height": 700}, java_script_enabled=True)
    asked, _ = watch(page)
    page.goto(page_path.as_uri())
    second = page.locator("details").nth(1)
    assert second.get_attribute("open") is None
    second.locator("summary").focus()
    page.keyboard.press("Enter")
    assert second.get_attribute("open") is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert all(url.startswith(("file:", "data:")) for url in asked)
