"""Real checkpoints on the real datasets give the published numbers.

Needs the Hub and the datasets: LAYERBOARD_NETWORK_TESTS=1 HF_HUB_OFFLINE=0 LAYERBOARD_DATA=DIR.
"""

import os
from pathlib import Path

import pytest

import layerboard
from layerboard.leaderboards.findings.reproduce import reproduce
from layerboard.leaderboards.published.literature import all_published

TOLERANCE = {"knn": 0.5, "davis": 1.5}
"""Points of a score that other decoders, resizers and interpolations of position embeddings may make."""

PROTOCOL = {"knn": "standard", "davis": "dino"}

NAMES = ("dino-s16", "dino-s8", "dino-b16", "dino-b8", "dinov2-s14", "dinov2-b14")


pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(
        os.environ.get("LAYERBOARD_NETWORK_TESTS") != "1" or "LAYERBOARD_DATA" not in os.environ,
        reason="downloads checkpoints and reads the real datasets; see its docstring",
    ),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("task", sorted(TOLERANCE))
def test_a_real_checkpoint_gives_its_published_numbers(name: str, task: str, tmp_path: Path) -> None:
    wanted = [
        one
        for one in all_published()
        if (one.backbone, one.task, one.protocol) == (name, task, PROTOCOL[task]) and one.rule == "final"
    ]
    if not wanted:
        pytest.skip(f"no comparable number of {name} on {task} is published")
    records = layerboard.run(
        [name],
        [task],
        data=os.environ["LAYERBOARD_DATA"],
        output=tmp_path,
        layers="final",
        floor=False,
        protocol=PROTOCOL[task],
    )
    compared = reproduce(records.frame, wanted)
    assert compared["measured"].notna().all(), compared["reason"].tolist()
    assert (compared["difference"].abs() <= TOLERANCE[task]).all(), compared.to_string()
