"""What stands behind the numbers of a page."""

import pytest

from layerboard.leaderboards.sections.provenance import unlike_blocks
from layerboard.tasks.framework.protocols import PROTOCOLS
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.shown import render_page

SPAIR = {"task": "spair", "dataset": "mini-spair", "pooling": "grid", "metric": "PCK@0.1"}


def test_the_page_says_what_a_protocol_does_not_do_as_its_source_does() -> None:
    text = render_page(frame(layers([30.0, 45.0], **SPAIR, protocol="probe3d")), "mini")
    assert "- probe3d: Its 200 pairs of a category depend on an unsorted listing of files" in text
    assert "insid3:" not in text


def test_standard_is_what_it_is() -> None:
    assert unlike_blocks(frame(layers([30.0, 45.0], **SPAIR))) == []


@pytest.mark.parametrize(
    "protocol", [one for one in PROTOCOLS if one.name != "standard"], ids=lambda one: one.name
)
def test_every_other_protocol_says_something_in_whole_sentences(protocol) -> None:
    assert protocol.unlike
    assert all(note[0].isupper() and note.endswith(".") for note in protocol.unlike)


def test_a_page_of_transforms_alone_says_nothing_of_plain_runs() -> None:
    text = render_page(frame(layers([30.0, 45.0], transform="whiten")), "mini")
    assert "\nThe numbers as a table: [mini.csv](mini.csv)" in text
    assert "Scored with" not in text
