"""Published numbers of the same that disagree with each other."""

from dataclasses import replace

from layerboard.leaderboards.blocks.blocks import Bullets
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.findings.reproduce import disputes, settlements
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.record import to_frame
from layerboard.leaderboards.sections.published import published_blocks
from tests.leaderboards.builder import record
from tests.leaderboards.findings.test_reproduce import README

OTHER = replace(README, source="dino-threads", table="issue 1", value=75.1)


def test_both_numbers_are_told_with_their_sources() -> None:
    assert disputes([README, OTHER]) == (
        "dino-b16, knn top-1, imagenet (standard): published numbers disagree: 76.1 by dino-readme, "
        "pretrained models, 75.1 by dino-threads, issue 1.",
    )


def test_numbers_that_round_to_the_same_do_not_disagree() -> None:
    assert disputes([README, replace(OTHER, value=76.0)]) == ()
    assert disputes([README, replace(OTHER, value=76.0, decimals=0)]) == ()
    assert len(disputes([README, replace(OTHER, value=75.9)])) == 1


def test_what_was_measured_another_way_does_not_disagree() -> None:
    for change in (
        {"backbone": "dino-b8"},
        {"protocol": "paper"},
        {"metric": "top-5"},
        {"transform": "debias:20"},
        {"input_size": 448},
        {"rule": "last"},
        {"protocol": "none", "not_comparable": "k is not stated"},
    ):
        assert disputes([README, replace(OTHER, **change)]) == ()


def test_a_claim_is_of_the_same_whatever_the_protocol() -> None:
    first = replace(README, claim="ImageNet")
    second = replace(OTHER, claim="ImageNet", metric="unstated", protocol="none", second_hand=True)
    (found,) = disputes([first, second])
    assert found == (
        "dino-b16, knn, imagenet (ImageNet): published numbers disagree: 76.1 (top-1) by dino-readme, "
        "pretrained models, protocol standard, 75.1 (unstated) by dino-threads, issue 1 (second hand), "
        "protocol none."
    )
    assert disputes([first, replace(second, claim="another")]) == ()


def test_what_is_known_to_disagree() -> None:
    found = disputes(all_published())
    assert [sentence.split(",")[0] for sentence in found] == [
        "mae-b16",
        "dinov3-7b16",
        "dinov3-b16",
        "dino-b16",
    ]
    card, paper = (f"{value} by dinov3-{place}" for value, place in ((72.8, "card"), (60.7, "paper")))
    assert f"{card}, ViT, LVD-1689M, protocol none, {paper}, Table 23, protocol dinov3." in found[1]
    for sentence, numbers in zip(
        found, (("22.74", "22.65"), ("72.8", "60.7"), ("57.2", "46.8"), ("55.7", "55.9")), strict=True
    ):
        assert all(f" {number} " in sentence for number in numbers)


def test_a_page_tells_it_of_the_backbones_that_it_shows() -> None:
    place = {"dataset": "imagenet", "input_size": 224, "tap": "final"}
    records = to_frame([record(**place, backbone="dino-b16")])
    blocks = published_blocks(Board.of(records, published=[README, OTHER]))
    both = (*disputes([README, OTHER]), *settlements(records, [README, OTHER]))
    assert (blocks[-1], len(both)) == (Bullets(both), 2)
    elsewhere = [replace(one, backbone="dino-b8") for one in (README, OTHER)]
    assert not any(
        isinstance(block, Bullets)
        for block in published_blocks(Board.of(records, published=[README, *elsewhere]))
    )
