import base64
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from leaderboards.pages.csv import csv_text
from leaderboards.pages.html import html_page
from leaderboards.pages.page import leaderboard_page
from tasks.blocks import (
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
from tests.leaderboards.builder import floor, frame, full_suite, layers, record, unsure

HOSTILE = "<script>alert(1)</script>|*a*`b`\"'&lt;"
VOID = {"meta", "br", "path"}


class Reader(HTMLParser):
    """All tags with their attributes, all text, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or (tag == "path" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self):
        return "".join(self.words)


def read(*blocks, title="T"):
    reader = Reader(html_page(Page("p", title, blocks)))
    assert reader.open == []
    return reader


def table(**columns):
    return Table(pd.DataFrame(columns), caption="what it shows")


def test_a_page_is_whole_and_needs_nothing_else():
    text = html_page(leaderboard_page(full_suite(compared=["mean"], metrics=2), "mini"))
    found = Reader(text)
    assert found.open == []
    assert found.named("html") == [{"lang": "en"}]
    assert any(one.get("name") == "viewport" for one in found.named("meta"))
    assert not found.named("script") + found.named("img") + found.named("link")
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert "prefers-color-scheme: dark" in text
    assert len(found.named("svg")) == len(found.named("figure")) == 8
    assert len(found.named("caption")) == len(found.named("table"))
    assert "nan" not in found.text.lower()


def test_marks_are_told_without_colour():
    found = read(table(backbone=["r"], a=[Cell("1", "best")], b=[Cell("2", "tied")], c=["3"]))
    assert {"scope": "row", "class": "left"} in found.named("th")
    assert len(found.named("strong")) == 1
    assert found.named("abbr") == [{"title": "cannot be told from the best"}]
    assert [one.get("scope") for one in found.named("th")] == ["col"] * 4 + ["row"]
    assert found.named("div")[0]["aria-label"] == "what it shows"


@pytest.mark.parametrize(
    "block",
    [
        Heading(2, HOSTILE),
        Text((HOSTILE, Strong(HOSTILE), Code(HOSTILE), Link(HOSTILE, HOSTILE))),
        Bullets((HOSTILE,)),
        Table(
            pd.DataFrame({HOSTILE: [HOSTILE, "x"], "b": [Cell(HOSTILE, "best"), Cell(HOSTILE, "tied")]}),
            caption=HOSTILE,
        ),
        Plot(pd.DataFrame({"series": [HOSTILE], "x": [1.0], "y": [2.0]}), "lines", HOSTILE, HOSTILE, HOSTILE),
    ],
)
def test_data_are_shown_as_they_are(block):
    found = read(block, title=HOSTILE)
    assert not found.named("script")
    shown = {"Heading": 1, "Text": 4, "Bullets": 1, "Table": 5, "Plot": 6}[type(block).__name__]
    assert found.text.count(HOSTILE) >= shown + 2
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)


def test_hostile_records_cannot_leave_their_cells():
    hostile = {
        "backbone": HOSTILE,
        "coverage": HOSTILE,
        "dataset": HOSTILE,
        "unit": HOSTILE,
        "split": HOSTILE,
    }
    gap = record(**hostile, layer=3, value=float("nan"), reason=HOSTILE)
    records = frame(unsure(layers([1.0, 2.0], **hostile)), [gap], floor([1.0]))
    found = Reader(html_page(leaderboard_page(records, "mini")))
    assert found.open == []
    assert not found.named("script")
    assert found.text.count(HOSTILE) > 10


def test_a_link_to_the_numbers_of_the_page_holds_them():
    numbers = Numbers(pd.DataFrame({"a": ["1", "≈"]}), "p")
    [link] = read(Text((Link("p.csv", "p.csv"),)), numbers).named("a")
    assert link["download"] == "p.csv"
    head, data = link["href"].split(",")
    assert head == "data:text/csv;charset=utf-8;base64"
    assert base64.b64decode(data).decode() == csv_text(numbers)


def test_links_go_to_pages_only():
    found = read(Text((Link("a", "javascript:alert(1)"), Link("b", "https://a.b/?c&d"))))
    assert found.named("a") == [{"href": "https://a.b/?c&d"}]


def test_text_without_words_is_not_written():
    assert read(Text(())).named("p") == []
