"""From records to verdicts, their table, and the section of a page."""

from pathlib import Path

import numpy as np
import pytest

from layerboard.leaderboards.blocks.blocks import Page
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.claims.section import CLAIMS_TITLE, claim_blocks
from layerboard.leaderboards.claims.verdicts import (
    chosen_judgements,
    claim_frame,
    claim_table,
    counts_text,
    lacking_texts,
)
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.record import Record, to_frame
from layerboard.leaderboards.writers.markdown import markdown_page
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import layers, measured, pair, unsure
from tests.leaderboards.claims.planted import SPECS

FAMILIES = {"mini-fs": "FS", "mini-clip": "CLIP", "mini-mae": "MAE", "mini-resnet": "ResNet"}
DEPTH = 12


def scores(task: str, peak: int, jitter: int = 0) -> list[Record]:
    """Scores that are best near a block."""
    return [
        record
        for place, (name, family) in enumerate(FAMILIES.items())
        for record in unsure(
            layers(
                [50.0 - abs(block - peak - jitter * (place % 2)) for block in range(1, DEPTH + 1)],
                backbone=name,
                family=family,
                task=task,
                metric={"knn": "top-1", "davis": "J&F", "spair": "PCK@0.1"}[task],
                pooling="cls" if task == "knn" else "grid",
            )
        )
    ]


def similarities(vit: float, convnet: float) -> list[Record]:
    """CKA of the blocks of each network with itself, and a ConvNet that is like the first ones of a ViT."""
    generator = np.random.default_rng(0)
    where = {"tap": "block", "pooling": "patch", "depth": DEPTH}
    rows = [
        pair(name, first, name, second, level + generator.normal(0, 0.01), family=FAMILIES[name], **where)
        for name, level in (("mini-fs", vit), ("mini-resnet", convnet))
        for first in range(1, DEPTH + 1)
        for second in range(first + 1, DEPTH + 1)
    ]
    return rows + [
        pair("mini-fs", first, "mini-resnet", second, 1 - abs(first - second / 4) / 20, family="FS", **where)
        for first in range(1, DEPTH + 1)
        for second in range(1, DEPTH + 1)
    ]


def board(records: list[Record], items: Path | None = None) -> Board:
    return Board.of(to_frame(records), "mini", items=items).knowing(SPECS)


def verdicts(found: Board) -> dict[int, str]:
    return {each.claim.number: each.verdict for each in chosen_judgements(found)}


@pytest.mark.parametrize(
    ("vit", "convnet", "verdict"), [(0.8, 0.3, "holds"), (0.3, 0.8, "fails"), (0.5, 0.5, "undecided")]
)
def test_layers_are_more_alike_in_one_network(vit: float, convnet: float, verdict: str) -> None:
    found = verdicts(board(similarities(vit, convnet)))
    assert found[21] == verdict
    assert found[22] == "holds"


def test_classes_peak_after_places_or_before() -> None:
    places = scores("davis", 6) + scores("spair", 5)
    assert verdicts(board(scores("knn", 11, 1) + places))[32] == "holds"
    assert verdicts(board(scores("knn", 2, 1) + places))[32] == "fails"


def test_scores_by_item_decide_whether_the_last_layer_is_worse(tmp_path: Path) -> None:
    records = [record for record in scores("davis", 6) if record.backbone == "mini-clip"]
    generator = np.random.default_rng(0)
    luck = generator.normal(0, 2, 60)
    key = task_key("davis", records[0].dataset, "standard")
    for worse, verdict in ((12, "holds"), (1, "fails")):
        items = {
            (block, "block", "grid"): measured(
                50
                + luck
                + generator.normal(0, 0.3, 60)
                - 9 * (block == DEPTH if worse == DEPTH else block < DEPTH),
                "J&F",
            )
            for block in range(1, DEPTH + 1)
        }
        path = tmp_path / str(worse) / scored_path(key, "mini-clip")
        path.parent.mkdir(parents=True)
        write_items(items, path)
        assert verdicts(board(records, tmp_path / str(worse)))[33] == verdict


def test_what_was_not_run_is_named() -> None:
    found = {each.claim.number: each for each in chosen_judgements(board(similarities(0.8, 0.3)))}
    assert found[10].reason == "needs `attention-maps`, two sizes of one method"
    assert found[16].reason == "needs two sizes of one method (reconstruction)"
    assert found[26].verdict == "not measured"
    without = Board.of(to_frame(similarities(0.8, 0.3)), "mini")
    assert {each.verdict for each in chosen_judgements(without)} == {"not measured"}


def test_untrained_networks_take_no_part() -> None:
    names = {"mini-fs": "mini-fs-untrained", "mini-resnet": "mini-resnet-untrained"}
    frame = to_frame(similarities(0.8, 0.3)).assign(trained=False).replace(names)
    assert verdicts(Board.of(frame, "mini").knowing(SPECS))[21] == "not measured"


def test_tables_have_every_number() -> None:
    found = chosen_judgements(board(similarities(0.8, 0.3)), [21, 26])
    frame, table = claim_frame(found), claim_table(found)
    assert frame["number"].tolist() == [21, 26]
    assert frame["ci_low"][0] < frame["estimate"][0] < frame["ci_high"][0]
    assert frame.loc[1, ["estimate", "ci_low", "ci_high"]].isna().all()
    assert table["verdict"].tolist() == ["holds", "not measured"]
    assert table["decided by"][0] == "mini-fs and mini-resnet"
    assert counts_text(found) == "2 claims: 1 holds, 1 not measured."
    assert counts_text(found[:1]) == "1 claim: 1 holds."
    assert lacking_texts((*found, *found[1:])) == (f"Not measured, {found[1].reason}: 26, 26.",)
    with pytest.raises(InputError, match="numbers of claims, 1 to 33, found 99"):
        chosen_judgements(board(similarities(0.8, 0.3)), [99])


def test_the_section_links_to_what_it_rests_on() -> None:
    blocks = claim_blocks(board(similarities(0.8, 0.3)))
    text = markdown_page(Page("mini", "mini", tuple(blocks)))
    assert f"## {CLAIMS_TITLE}" in text
    assert "[How similar the backbones are (CKA)](#how-similar-the-backbones-are-cka): 21, 22" in text
    assert "needs two sizes" in text.lower()
    assert claim_blocks(Board.of(to_frame([])).knowing(SPECS)) == []
