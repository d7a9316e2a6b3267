"""The page of costs, from planted records; it leaves the other pages as they are."""

from pathlib import Path

import pandas as pd
import pytest

from layerboard.leaderboards.blocks.blocks import Plot
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.exchange.check import check_pages
from layerboard.leaderboards.sections.cost import cost_page, up_to_table, whole_table
from layerboard.leaderboards.writers.build import pages_of, write_page
from layerboard.leaderboards.writers.markdown import markdown_page
from tests.leaderboards.answer.test_candidates import CPU, cost
from tests.leaderboards.builder import NAN, frame, layers, record
from tests.leaderboards.shown import write_pages

WHOLE = {
    "images-per-second": 412.4,
    "best-batch": 32,
    "latency": 4.126,
    "spread": 3.4,
    "waiting": 0.2,
    "peak-memory": 123_456_789,
    "parameters": 1_367_136,
    "gflops": 0.194352,
}


def whole(backbone: str, device: str = CPU):  # type: ignore[no-untyped-def]
    facts = {"backbone": backbone, "layer": -1, "task": "cost", "dataset": device, "pooling": "image"}
    facts |= {"analysis": True, "primary": False, "depth": 2}
    found = [record(**facts, metric=name, value=value) for name, value in WHOLE.items()]
    return [*found, record(**facts, metric="largest-batch", value=NAN, reason="no largest batch: a CPU.")]


@pytest.fixture
def costs() -> pd.DataFrame:
    return frame(
        whole("mini-dino"),
        cost("mini-dino", 1, 2.049, depth=2),
        cost("mini-dino", 2, 14.96, depth=2),
        cost("mini-dino", 2, 33.3, depth=2, pooling="184 x 136"),
        cost("mini-dino", 2, 99.0, depth=2, tap="final"),
        cost("mini-clip", 1, 1.0, family="CLIP", depth=2),
    )


def test_a_backbone_as_a_whole(costs: pd.DataFrame) -> None:
    table = whole_table(costs[costs["value"].notna()]).set_index("backbone")
    assert table.loc["mini-dino"].to_dict() == {
        "input, px": "64",
        "images/s": "412",
        "at batch": "32",
        "largest batch": "",
        "latency, ms": "4.13",
        "spread, %": "3",
        "waiting, %": "0",
        "peak memory, MB": "123",
        "weights": "1.37M",
        "GFLOPs": "0.194",
        "dim": "96",
        "a vector": "384 B",
        "an image's grid": "24.6 kB",
    }
    assert set(table.loc["mini-clip"].drop("input, px")) == {""}


@pytest.mark.parametrize("metric", ["spread", "waiting"])
def test_times_that_other_work_disturbed_are_flagged(costs: pd.DataFrame, metric: str) -> None:
    assert "disturbed the times of" not in markdown_page(cost_page(Board.of(costs, "mini")))
    costs.loc[costs["metric"] == metric, "value"] = 80.0
    text = markdown_page(cost_page(Board.of(costs, "mini")))
    assert f"Other work on the machine disturbed the times of mini-dino on {CPU}" in text
    assert "`layerboard run --tasks cost --again --backbones mini-dino`" in " ".join(text.split())


def test_times_of_every_block(costs: pd.DataFrame) -> None:
    table = up_to_table(
        costs[(costs["metric"] == "ms") & (costs["pooling"] != "184 x 136")], Board.of(costs).labels
    )
    assert table.to_numpy().tolist() == [["mini-clip", "1.00", ""], ["mini-dino", "2.05", "15.0"]]


def test_each_size_of_an_image_has_a_table(costs: pd.DataFrame) -> None:
    text = markdown_page(cost_page(Board.of(costs, "mini")))
    own, larger = text.split("Milliseconds of one image of 184 x 136 pixels, up to each layer:")
    assert "33.3" in larger
    assert "33.3" not in own


def test_each_device_has_a_section_and_what_lacks_a_reason(costs: pd.DataFrame) -> None:
    card = frame(cost("mini-dino", 1, 0.5, "A <Card>", depth=2))
    text = markdown_page(cost_page(Board.of(pd.concat([costs, card], ignore_index=True), "mini")))
    assert [line for line in text.splitlines() if line.startswith("## On")] == [
        "## On A &lt;Card>",
        f"## On {CPU}",
    ]
    assert f"mini-dino: cost on {CPU} (standard), image: no largest batch: a CPU." in text
    assert "mini-clip: cost on A &lt;Card> (standard): not run." in text


def test_costs_have_a_page_of_their_own_that_no_check_reads(costs: pd.DataFrame, tmp_path: Path) -> None:
    scored = frame(layers([1.0, 2.0]))
    records = pd.concat([scored, costs], ignore_index=True)
    (alone,), (beside, page) = (pages_of(Board.of(one, "mini")) for one in (scored, records))
    assert (beside.name, page.name) == ("mini", "mini.cost")
    assert [one.name for one in pages_of(Board.of(costs, "mini"))] == ["mini.cost"]
    assert markdown_page(alone) == markdown_page(beside)  # which names the digest of its numbers
    write_page(alone, tmp_path)
    assert check_pages(records, tmp_path) == []
    write_page(page, tmp_path)
    assert check_pages(scored, tmp_path) == []


def test_images_a_second_over_the_input_size_are_a_curve(tmp_path: Path) -> None:
    facts = {"layer": -1, "task": "cost", "dataset": CPU, "pooling": "image", "analysis": True}
    facts |= {"primary": False, "depth": 2, "metric": "images-per-second"}
    sizes = {64: 400.0, 128: 90.0, 192: 30.0}
    names = {size: f"mini-dino{'' if size == 64 else f'@{size}px'}" for size in sizes}
    curve = [record(**facts, backbone=names[size], input_size=size, value=sizes[size]) for size in sizes]
    records = frame(curve, [record(**facts, backbone="mini-clip", family="CLIP", value=500.0)])
    page = cost_page(Board.of(records))
    (plot,) = (block for block in page.blocks if isinstance(block, Plot))
    assert plot.title == f"Images a second, over the input size, on {CPU}"
    assert plot.frame.to_dict("list") == {"series": ["mini-dino"] * 3, "x": [*sizes], "y": [*sizes.values()]}
    write_pages(records, tmp_path)
    assert [*tmp_path.rglob("*Images-a-second*.svg")]
