"""The page of claims: its commands can be typed and carried out, and what it says is shown is on pages."""

import re
import shlex

import pytest

from layerboard.benchmark.commands.app import command_line, repeat_options
from layerboard.benchmark.plan.suites import SUITES
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import find_tasks
from layerboard.zoo.registry.find import find
from tests.test_house import ROOT
from workshop.site.pages import DOCS

PAGES = [DOCS / "explanation" / f"{name}.md" for name in ("claims", "scale")]
TEXT = PAGES[0].read_text(encoding="utf-8")
CALL = re.compile(r"(?:`|^layerboard )(run [^`\n]+)", re.MULTILINE)
CALLS = {call for page in PAGES for call in CALL.findall(page.read_text(encoding="utf-8"))}

TABLES = sorted((ROOT / "leaderboards" / "tables").glob("*.md"))
WRITTEN = "\n".join(path.read_text(encoding="utf-8") for path in TABLES)
FIGURES = {
    "entropy of the class token": "![Attention of the class token.",
    "walls of average maps": "![Attention maps of the class token.",
    "maps of single images beside average": "![Attention maps of single images.",
    "attention by offset": "![Attention maps relative to the query patch.",
    "kind of each head": "![Examples of each kind of head.",
    "mean attention distance": "![Mean attention distance.",
    "heads sorted by distance": "![Heads sorted by attention distance.",
    "every head": "![Every head. attention-distance over block",
    "IoU of the best head": "![Overlap of attention from patch tokens with objects.",
    "maps of rollout": "![Rollout.",
    "norm of skip over branch": "![Skip norm over branch norm.",
    "CKA of skip and branch": "![cka-skip-branch within each block",
    "maps of trainings": "![Blocks of mini-fs64 and its other trainings.",
    "maps of CKA with patches": "![CKA of a token with input patches.",
    "how often one token": "![How often one token finds the class.",
    "CKA map of each backbone": "![Layers of each backbone:",
    "CKA map": "![Layers of each two backbones:",
    "CKA over distance": "![Heads that look near, and a ConvNet's blocks.",
    "receptive fields": "![Receptive fields.",
    "fields of": "![Receptive fields. Maps; rows: attention, mid, mlp, block;",
    "CKA of last blocks": "CKA between the last blocks of all backbones",
    "CKA of the same block": "![Same blocks of mini-fs64:",
    "CKA of a block and the next": "![Layers of each backbone:",
    "purity by layer": "![cluster-image on mini-imagenet (standard): purity, %.",
    "best layer of each backbone": "## The best layer of each backbone",
    "score by layer": "### davis on mini-davis",
    "ranks": "## Ranks that the data allow",
    "accuracy by layer": "![fewshot on mini-imagenet (standard): top1-10shot, %.",
    "filters": "![Patch embedding filters.",
    "similarity of positions": "![Similarity of position embeddings.",
    "how much place": "![Position decoded from tokens",
}
"""By the first words of what is shown: what the committed pages call it."""


@pytest.mark.parametrize("call", sorted(CALLS))
def test_each_command_is_read_by_the_product(call: str) -> None:
    words = repeat_options(shlex.split(call))
    params = command_line().commands["run"].make_context("layerboard", words[1:]).params
    assert find_tasks(params["tasks"] or ["knn"])
    assert params["suite"] in {None, *(suite.name for suite in SUITES)}
    assert all(map(find_protocol, ",".join(params["protocol"] or ["standard"]).split(",")))
    named = [name for name in params["backbones"] or () if not name.startswith("timm:")]
    assert not named or find(named)


def rows() -> list[list[str]]:
    lines = (line for line in TEXT.splitlines() if line.startswith("|") and "`run" in line)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_each_claim_has_a_place_a_command_a_figure_and_what_it_is_about() -> None:
    assert len(rows()) >= 45
    assert [row for row in rows() if len(row) != 5 or not all(row)] == []
    kinds = ("networks", "methods", "sizes", "depth", "twins", "nothing here")
    assert all(f"\n| {kind} | " in TEXT for kind in kinds)
    assert [row for row in rows() if not row[-1].startswith(kinds)] == []


def test_what_is_said_to_be_shown_is_on_committed_pages() -> None:
    """Of two protocols on real data, and of a GPU, there are none."""
    lacking = []
    for shown in {row[3] for row in rows()} - {"one column a protocol", "`largest-batch`, on a GPU"}:
        titles = [title for words, title in FIGURES.items() if shown.startswith(words)]
        titles += re.findall("`(.+?)`", shown)
        known = titles or shown.startswith("the same")
        lacking += [shown] if not known or not all(title in WRITTEN for title in titles) else []
    assert lacking == []
