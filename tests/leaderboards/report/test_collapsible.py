import re

import pandas as pd
import pytest

from layerboard.leaderboards.blocks.blocks import (
    Bullets,
    Cell,
    Code,
    Heading,
    Link,
    Numbers,
    Page,
    Plot,
    Strong,
    Table,
    Text,
)
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.report.page import CollapsibleWriter, collapsibles
from layerboard.leaderboards.writers.build import leaderboard_page
from tests.leaderboards.builder import frame
from tests.leaderboards.goldens import several
from tests.leaderboards.reader import Reader, page_html

HOSTILE = "<script>alert(1)</script>|*a*`b`\"'&lt;"


def read(*blocks, title="T"):
    reader = Reader(page_html(Page("p", title, blocks)))
    assert reader.open == []
    return reader


def table(**columns):
    return Table(pd.DataFrame(columns), caption="what it shows")


def test_a_page_is_whole_and_needs_nothing_else():
    page = leaderboard_page(Board.of(several(), "mini"))
    text, folded = page_html(page), [block for block in page.blocks if getattr(block, "folded", False)]
    found = Reader(text)
    assert found.open == []
    assert not found.named("script") + found.named("img") + found.named("link") + found.named("a")
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert len(found.named("caption")) + len(folded) == len(found.named("table")) > 5
    assert "nan" not in found.text.lower()


def test_marks_are_told_without_colour():
    found = read(table(backbone=["r"], a=[Cell("1", "best")], b=[Cell("2", "maybe")], c=["3"]))
    assert {"scope": "row", "class": "left"} in found.named("th")
    assert len(found.named("strong")) == 1
    assert found.named("abbr") == [{"title": "not shown to be worse than the best"}]
    assert [one.get("scope") for one in found.named("th")] == ["col"] * 4 + ["row"]
    assert found.named("div")[0]["aria-label"] == "what it shows"


@pytest.mark.parametrize(
    "block",
    [
        Heading(3, HOSTILE),
        Text((HOSTILE, Strong(HOSTILE), Code(HOSTILE), Link(HOSTILE, HOSTILE))),
        Bullets((HOSTILE,)),
        Table(
            pd.DataFrame({HOSTILE: [HOSTILE, "x"], "b": [Cell(HOSTILE, "best"), Cell(HOSTILE, "maybe")]}),
            caption=HOSTILE,
        ),
        Plot(pd.DataFrame({"series": [HOSTILE], "x": [1.0], "y": [2.0]}), "lines", HOSTILE, HOSTILE, HOSTILE),
    ],
)
def test_data_are_shown_as_they_are(block):
    found = read(block, title=HOSTILE)
    assert not found.named("script")
    shown = {"Heading": 1, "Text": 4, "Bullets": 1, "Table": 5, "Plot": 5}[type(block).__name__]
    assert found.text.count(HOSTILE) >= shown + 1
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)


def test_nothing_leads_out_and_numbers_are_said_elsewhere():
    found = read(
        Text((Link("a", "javascript:alert(1)"), Link("b", "https://a.b/?c&d"))), Numbers(frame([]), "p")
    )
    assert (found.named("a"), found.text.split()) == ([], ["T", "ab"])


def test_what_stands_before_any_heading_is_under_the_first_title():
    parts = collapsibles(
        [Text(("a",)), Heading(2, "two"), Heading(3, "three"), Text(("b",)), Heading(2, "x")], "one"
    )
    assert parts == [("one", [Text(("a",))]), ("two", [Heading(3, "three"), Text(("b",))])]


def test_pictures_that_have_no_room_are_named_or_left_out():
    plot = Plot(pd.DataFrame({"series": ["a"], "x": [1.0], "y": [2.0]}), "lines", "title", "x", "y")
    parts = [("one", [plot, plot])]
    whole = CollapsibleWriter(()).html(parts)
    assert whole.count("<svg") == whole.count("<figcaption>title</figcaption>") == 2
    scarce = CollapsibleWriter((), room=len(whole) * 2 // 3).html(parts)
    assert (scarce.count("<svg"), scarce.count("had no room for it")) == (1, 1)
    assert "<svg" not in CollapsibleWriter(()).html(parts, pictures=False)


def test_text_without_words_is_not_written():
    assert read(Text(())).named("p") == []
