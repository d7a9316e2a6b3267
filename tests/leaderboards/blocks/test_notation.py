import pytest

from layerboard.leaderboards.blocks.blocks import Code, Link, Marked, Strong, Text, said


def test_our_own_sentences_are_read():
    found = said("A **strong** word,\n`code` and a [link](page.csv).")
    pieces = (
        "A ",
        Strong("strong"),
        " word,",
        Marked("break"),
        Code("code"),
        " and a ",
        Link("link", "page.csv"),
        ".",
    )
    assert found == Text(pieces)


def test_data_are_never_read_as_notation():
    hostile = "**x** `y` [z](javascript:1) {other}"
    assert said("{name}: **{name}**", name=hostile) == Text((f"{hostile}: ", Strong(hostile)))


def test_line_breaks_of_data_are_spaces():
    assert said("{name}.", name=" a\n\n# b\t") == Text(("a # b.",))


def test_a_placeholder_without_data_is_an_error():
    with pytest.raises(KeyError):
        said("{name}")


def test_nothing_said_has_no_pieces():
    assert said("{name}", name="") == Text(())
