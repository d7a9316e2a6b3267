from dataclasses import replace
from functools import cache

from layerboard.leaderboards.answers import answers_of
from layerboard.leaderboards.report.answer import answer_html
from layerboard.leaderboards.scores.column import Side
from tests.leaderboards.report.boards import HOSTILE, content


@cache
def found():
    """What the page of the small records holds; it takes longer than to write a card."""
    return content()


def card(**changes):
    """The first card, of an answer that is changed."""
    one = replace(answers_of(found().board)[0], **changes)
    return answer_html([one], found())


def test_a_lead_is_called_one_only_where_all_were_compared():
    assert "better than every other backbone, with 95 % confidence" in card(compared=3)
    assert "better than" not in card(compared=2, untested=("mini-fs",))
    assert "not compared with mini-fs" in card(compared=2, untested=("mini-fs",))
    assert "better than" not in card(compared=0)
    assert "per-item scores of the same images are missing" in card(compared=0)


def test_who_cannot_be_told_from_the_best_is_named():
    text = card(compared=3, rivals=("mini-clip", HOSTILE), layers=(1, 2))
    assert "<strong>tied with the best:</strong> mini-clip, &lt;/script&gt;" in text
    assert "tied with its layers 1 to 2" in text or "tied with its layers 1, 2" in text
    assert "better than" not in text


def test_another_pooling_and_a_cost_are_told_where_they_are_known():
    text = card(others=(Side("mini-dino", 2, 3, "mean", 64.04),), milliseconds=6.0, device="cuda")
    assert "64.0 % from another pooling: mean of the patch tokens, layer 2" in text
    assert "6.00 ms an image on cuda, 64-dimensional vectors, about 600 M parameters" in text
    assert " ms an image" not in card()
