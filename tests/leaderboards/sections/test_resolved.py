"""What the items of a column tell of its backbones' order: ranks, the smallest difference, enough images."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layerboard.leaderboards.answer.answer import answer_frame, answers_of
from layerboard.leaderboards.answer.phrases import notes, scored_text
from layerboard.leaderboards.blocks.display import enough_text, ordinal, rank_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.differences import enough_images
from layerboard.leaderboards.sections.layers import layer_blocks
from layerboard.leaderboards.sections.ranks import RANKS
from layerboard.tasks.statistics.resolution import enough_units
from tests.leaderboards.builder import frame, layers, scored, unsure, write_layers
from tests.leaderboards.shown import render_blocks, render_page

ROOT = Path(__file__).parents[3]
COUNT = 400
SHARES = {"mini-dino": (0.5, 0.8), "mini-clip": (0.6, 0.79), "mini-mae": (0.2, 0.4)}


def hits(share, seed):
    """Answers of which that share is right: common ones for all layers, and others by chance."""
    common, own = (np.random.default_rng(each).permutation(COUNT) for each in (0, seed))
    order = np.where(np.arange(COUNT) % 3 > 0, common, own)
    return 100.0 * (np.argsort(np.argsort(order, kind="stable"), kind="stable") < share * COUNT)


def plant(folder, prefix=""):
    """Items and records of two layers of three backbones."""
    found = []
    for number, (name, shares) in enumerate(SHARES.items()):
        values = [hits(share, 1 + 2 * number + place) for place, share in enumerate(shares)]
        key = prefix if name == "mini-mae" else ""
        coverage = "3 classes; every image tested once"
        found += unsure(scored(folder, name, values, f"{key}image ", n=COUNT, coverage=coverage), 4.0)
    return frame(found)


def page(folder, **words):
    return " ".join(render_page(plant(folder, **words), "mini", folder).split())


def test_a_table_says_what_its_images_resolve_and_the_ranks_are_ranges(tmp_path):
    text = page(tmp_path)
    said = (
        r"top-1, % These 400 images tell layers apart from the best that are (\d+\.\d) points worse \(80 % of"
    )
    (points,) = re.findall(said, text)
    (column,) = Board.of(plant(tmp_path), "mini", items=tmp_path).columns
    standing = Board.of(plant(tmp_path), "mini", items=tmp_path).standings[column.key]
    assert float(points) == pytest.approx(standing.smallest, abs=0.05)
    # of two layers, a tenth of the images are right in one and wrong in the other: about 2.9 errors
    disagree = np.mean(hits(0.8, 2) != hits(0.79, 4))
    assert 2.2 < standing.smallest / (100 * math.sqrt(disagree / COUNT)) < 3.6
    assert standing.ranks == {"mini-dino": (1, 2), "mini-clip": (1, 2), "mini-mae": (3, 3)}
    assert re.search(r"\| mini-dino \| 1st to 2nd \|", re.sub(" +", " ", text))
    assert re.search(r"\| mini-mae \| 3rd \|", re.sub(" +", " ", text))


def test_the_first_rank_belongs_to_what_is_marked_on_the_page_of_the_mini_suite():
    text = (ROOT / "leaderboards" / "tables" / "mini.md").read_text(encoding="utf-8")
    marked, ranks = (table_after(text, f"## {title}") for title in ("The best layer of each", RANKS))
    cells = {(row["backbone"], task): cell for row in marked for task, cell in row.items()}
    assert len(ranks) == 7
    for row in ranks:
        for task in row.keys() - {"backbone"}:
            cell = cells[row["backbone"], task]
            assert row[task].startswith("1st") == (cell.endswith("≈") or cell.startswith("**")), (row, task)


def table_after(text, heading):
    """The rows of the first table below a heading, by column."""
    lines = next(part for part in text.split(heading)[1].split("\n\n") if part.startswith("|")).split("\n")
    head, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows if row[0] != ""]


def test_without_the_items_of_all_there_are_no_ranks(tmp_path):
    text = page(tmp_path, prefix="other ")
    assert "Ranks that the data allow" not in text
    assert "These 400 images tell layers apart" in text  # of the two that share them
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    bare = Board.of(frame(layers([50.0, 60.0])), "mini", items=tmp_path)
    assert bare.standings == {}
    assert "tell layers apart" not in render_blocks(layer_blocks(bare))


def test_too_few_images_say_so(tmp_path):
    write_layers(tmp_path, "mini-dino", [[100.0, 0.0, 100.0], [0.0, 0.0, 100.0]])
    records = frame(unsure(layers([66.7, 33.3], n=3)))
    blocks = layer_blocks(Board.of(records, "mini", items=tmp_path))
    assert "These 3 images are too few to tell layers apart." in render_blocks(blocks)


def test_the_two_best_are_named_with_how_many_images_would_show_their_order(tmp_path):
    text = page(tmp_path)
    (column,) = Board.of(plant(tmp_path), "mini", items=tmp_path).columns
    first, second, enough = enough_images(column, tmp_path)
    assert (first, second) == ("mini-dino", "mini-clip")
    assert enough.units > 20 * COUNT  # one point where a tenth of the images differ
    assert f"- knn top-1, mini-dino and mini-clip: {enough_text(enough, COUNT, 'images')}" in text
    assert "show it in 80 % of cases, if the difference is as large as it looks" in text


def test_numbers_of_images_are_told_up_to_twenty_times_those_that_are_there():
    near, far = enough_units(1.5, 1.0, 100), enough_units(0.5, 1.0, 100)
    assert enough_text(near, 100, "images") == "about 350 images (at least 66)"
    assert enough_text(far, 100, "images") == "more than 20 times as many images (at least 130)"
    assert enough_text(enough_units(2.5, 1.0, 100), 100, "pairs") == "about 130 pairs (at least 39)"
    assert enough_text(enough_units(6.0, 1.0, 100), 100, "pairs") == "about 22 pairs (12 to 48)"


def test_ranks_in_words():
    assert [ordinal(each) for each in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th")
    ]
    assert (rank_text(2, 2), rank_text(1, 12)) == ("2nd", "1st to 12th")


def test_scores_without_an_interval_say_why():
    """Where others have one; records that never had any say nothing."""
    plain = layers([10.0, 30.0], task="regress", metric="MAE", dataset="photos")
    assert "too few" not in render_page(frame(plain), "mini")
    page = " ".join(render_page(frame(plain, unsure(layers([10.0, 30.0]), half=1.5)), "mini").split())
    words = "Images are too few for an interval: none holds in simulations, or it is wider than ± 40 points."
    assert page.count(words) == 1


def test_an_interval_that_says_nothing_is_printed_nowhere(tmp_path):
    """Two videos; tables of numbers keep its ends."""
    write_layers(tmp_path, "mini-dino", {1: np.array([0.0, 100.0])})
    wide = unsure(layers([50.0]), half=41.0)
    board = Board.of(frame(wide), "mini", items=tmp_path)
    text = render_blocks(layer_blocks(board))
    assert "2 images are too few for an interval" in text
    assert "±" not in text.replace("wider than ± 40", "")
    (answer,) = answers_of(board)
    assert "knn top-1: 2 images are too few for an interval." in notes([answer])
    assert scored_text(answer.best) == "50.0"
    assert scored_text(replace(answer.best, ci_low=10.0, ci_high=90.0)) == "50.0 ± 40.0"
    assert answer_frame([answer])["ci_high"].tolist() == [91.0]
