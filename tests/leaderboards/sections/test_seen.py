"""The table of what was seen in training: beside the scores, and never in their place."""

from layerboard.benchmark.plan.facts import with_seen
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.seen import seen_blocks
from layerboard.leaderboards.writers.build import pages_of
from layerboard.leaderboards.writers.markdown import markdown_page
from tests.leaderboards.builder import floor, frame, layers
from tests.leaderboards.shown import write_pages


def scored(*names, dataset="imagenet"):
    return frame(*(layers([10.0, 20.0], backbone=name, dataset=dataset) for name in names))


def test_marks_of_backbones_by_datasets():
    records = with_seen(scored("dino-b16", "clip-b16", "fs-b16@abc", "somebody/else"))
    table = seen_blocks(Board.of(records))[-1].frame.set_index("backbone")
    marks = {
        "dino-b16": "images",
        "clip-b16": "unknown, with texts",
        "fs-b16@abc": "images, labels",
        "somebody/else": "",
    }
    assert dict(table["imagenet"]) == marks


def test_the_page_says_it_and_no_score_changes(tmp_path):
    records = scored("dino-b16", "clip-b16")
    write_pages(records, tmp_path / "without")
    write_pages(with_seen(records), tmp_path / "with")
    plain, marked = ((tmp_path / name / "mini.md").read_text() for name in ("without", "with"))
    assert "What the trainings have seen" in marked
    assert "images, labels" not in marked.partition("What was seen in training")[2]
    assert "What the trainings have seen" not in plain
    heads, tail = marked.split("## What the trainings have seen")
    assert heads + tail[tail.index("\n## ") + 1 :] == plain
    assert (tmp_path / "with" / "mini.csv").read_bytes() == (tmp_path / "without" / "mini.csv").read_bytes()


def test_a_page_on_which_nothing_was_seen_has_no_such_section():
    mini = with_seen(frame(layers([1.0, 2.0]), floor([1.0, 2.0])))
    marked, plain = (
        markdown_page(pages_of(Board.of(one, "mini"))[0]) for one in (mini, mini.drop(columns="seen"))
    )
    assert marked == plain
    assert seen_blocks(Board.of(with_seen(scored("capi-l14-places205")))) == []
    assert seen_blocks(Board.of(with_seen(scored("clip-b16", dataset="my photos")))) == []
