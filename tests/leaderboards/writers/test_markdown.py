import pandas as pd
import pytest

from layerboard.leaderboards.blocks.blocks import (
    Bullets,
    Cell,
    Code,
    Heading,
    Link,
    Marked,
    Numbers,
    Page,
    Plot,
    Strong,
    Table,
    Text,
)
from layerboard.leaderboards.writers.markdown import markdown_page, plain

FRAME = pd.DataFrame({"series": ["a"], "x": [1.0], "y": [2.0]})


def written(*blocks):
    return markdown_page(Page("p", "T", blocks)).removeprefix("# T\n").strip("\n")


def test_every_block_is_written_and_figures_and_numbers_are_not():
    blocks = (
        Heading(2, "H"),
        Text(("one ", Strong("two"), Marked("break"), Code("x"), Link("l", "a b.csv"))),
        Text(()),
        Plot(FRAME, "lines", "f", "x", "y"),
        Bullets(("i", "j")),
        Numbers(FRAME, "p"),
        Table(pd.DataFrame({"a": ["r"], "b": [Cell("1", "best")], "c": [Cell("2", "maybe")]})),
    )
    assert written(*blocks) == (
        "## H\n\none **two**\n`x`[l](a%20b.csv)\n\n- i\n- j\n\n"
        "| a   |     b |   c |\n|:----|------:|----:|\n| r   | **1** | 2 ≈ |"
    )


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("a|b", "a\\|b"),
        ("*a* **b**", "\\*a\\* \\*\\*b\\*\\*"),
        ("`a`", "\\`a\\`"),
        ("_a_ b_c", "\\_a\\_ b_c"),
        ("[a](b)", "\\[a\\](b)"),
        ("a\\|b", "a\\\\\\|b"),
        ("~~a~~", "\\~\\~a\\~\\~"),
        ("&lt; J&F", "&amp;lt; J&F"),
        (" a\n\n# b ", "a # b"),
    ],
)
def test_data_are_shown_as_they_are(text, escaped):
    assert plain(text) == escaped
    assert written(Heading(2, text)) == f"## {escaped}"
    assert written(Text((Strong(text),))) == f"**{escaped}**"
    assert written(Bullets((text,))) == f"- {escaped}"
    assert f"| {escaped} " in written(Table(pd.DataFrame({text: [Cell(text)]})))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("# a", "\\# a"), ("- a", "\\- a"), ("> a", "\\> a"), ("1. a", "1\\. a"), ("1.5 a", "1.5 a")],
)
def test_data_do_not_start_a_block(text, escaped):
    assert written(Text((text,))) == escaped
    assert written(Bullets((text,))) == f"- {escaped}"


def test_code_with_backticks_has_a_longer_fence():
    assert written(Text((Code("a `` b"),))) == "``` a `` b ```"
