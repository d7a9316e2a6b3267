"""Every sentence of the page that reads the mini leaderboard is supported by the committed tables.

`_claims` holds the sentences, with numbers from the tables, and what of the tables supports each. A new
sentence under a heading that begins with "Which" or "What" needs a row there, or, if it claims nothing, in
`METHOD`; so does one with a number anywhere.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import pandas as pd
import pytest

from layerboard.leaderboards.writers.build import tables_folder
from tests.leaderboards.shown import committed

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "mini.md"
TABLE = re.compile(r"^\| +(?:family|backbone) .*\n\|[-:| ]+\|\n((?:\|.*\n)+)", re.MULTILINE)
SPREAD = re.compile(r" ± [0-9.]+| \([0-9.]+ to [0-9.]+\)")
MEASURED = re.compile(r"^## (?:Which|What).*\n+((?:(?!## ).*\n)*)", re.MULTILINE)
TASKS = ("knn", "retrieval", "cluster-image", "davis", "spair", "cluster-object", "cluster-part")
NAMES = tuple(f"mini-{name}" for name in ("fs", "clip", "dino", "moco", "mae", "beit", "resnet"))
BLOCKS = {*range(1, 13)}


class Tables:
    """The committed numbers of one suite, and the page that marks the best of them."""

    def __init__(self, suite: str) -> None:
        self.page = (tables_folder() / f"{suite}.md").read_text(encoding="utf-8")
        rows = committed(suite)
        rows = rows[(rows["tap"] == "block") & (rows["other"] == "") & (rows["backbone"] != "mini-random")]
        rows = rows[rows["best"] != ""]  # of the primary metrics
        numbers = rows[["value", "ci_low", "ci_high", "loss"]].apply(pd.to_numeric)
        flags = {name: rows[name] == "True" for name in ("best", "maybe_best_of_backbone")}
        self.rows = rows.assign(**numbers, **flags, layer=rows["layer"].astype(int))

    def of(self, task: str, name: str) -> pd.DataFrame:
        """All blocks of a backbone in all poolings, the highest first."""
        rows = self.rows[(self.rows["task"] == task) & (self.rows["backbone"] == name)]
        return rows.nlargest(len(rows), "value")

    def score(self, task: str, name: str) -> float:
        return float(self.of(task, name)["value"].iloc[0])

    @cached_property
    def cells(self) -> dict[str, dict[str, str]]:
        """Cells of the table of best layers without margins of error, by task and backbone."""
        table = TABLE.search(self.page[self.page.index("## The best layer of each backbone") :])
        assert table is not None
        head = [cell.split()[0] for cell in _cells(table[0].splitlines()[0])[2:]]
        rows = [_cells(line) for line in table[1].splitlines()]
        return {
            task: {row[1]: SPREAD.sub("", row[2 + place]) for row in rows} for place, task in enumerate(head)
        }


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _claims() -> Iterator[tuple[str, bool]]:
    """Sentences of the page, and whether the tables support each."""
    mini, changed, referee = map(Tables, ("mini", "mini-interventions", "mini-referee"))

    def untrained(task: str) -> str:
        names = {name for name in changed.cells[task] if name.endswith("-untrained")}
        values = [changed.score(task, name) for name in names]
        return f"{min(values):.1f} to {max(values):.1f}"

    # what further tasks show
    shown = [referee.score("segment", name) for name in NAMES]
    yield (
        f"True masks on the grid of 8 x 8 cells would score 88.1; the highest layers of the backbones reach "
        f"{min(shown):.1f} to {max(shown):.1f}.",
        all(f"{value:.1f} of 88.1:" in referee.page for value in shown[:-1]),
    )
    mae = mini.of("spair", "mini-mae")
    yield (
        "The highest block of MAE in `spair` is 12, but no block is shown to be worse.",
        mae["layer"].iloc[0] == 12 and {*mae.loc[mae["maybe_best_of_backbone"], "layer"]} == BLOCKS,
    )

    # what they rest on
    pixels = [mini.score(task, "mini-pixels") for task in ("knn", "davis", "spair")]
    yield (
        f"Untrained networks score {untrained('knn')} on k-NN, {untrained('davis')} on DAVIS and "
        f"{untrained('spair')} on SPair; raw pixels {pixels[0]:.1f}, {pixels[1]:.1f} and {pixels[2]:.1f}.",
        True,
    )
    units = {
        "knn": "576 images",
        "retrieval": "48 queries of 12 landmarks",
        "davis": "10 objects in 6 videos",
        "spair": "2,058 keypoints of 256 pairs",
        "cluster-object": "165 objects and",
        "cluster-part": "167 parts in 48 images each",
    }
    counts = {task: int(mini.of(task, "mini-fs")["n"].iloc[0]) for task in units}
    yield (
        f"Test sets are small: {', '.join([*units.values()][:4])}, {units['cluster-object']} "
        f"{units['cluster-part']}.",
        all(units[task].startswith(f"{count:,}") for task, count in counts.items())
        and all(f" in {count} independent groups" in mini.page for count in (12, 6, 256, 48)),
    )


def _plain(text: str) -> str:
    """The words of Markdown: links by their texts; no tables, headings, topics in bold, or marks."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", TABLE.sub("", text))
    return " ".join(re.sub(r"^#+ .*$|^- |\*\*[^*]+:\*\*|`", "", text, flags=re.MULTILINE).split())


def _without(text: str, sentences: Iterable[str]) -> str:
    for sentence in sorted(sentences, key=len, reverse=True):
        text = text.replace(_plain(sentence), "")
    return text.strip()


METHOD = (
    "Removed skips and data shares repeat experiments of Raghu et al. (2021).",
    "`mini-fs64` is `mini-fs` with 64 channels instead of 96, so that eight trainings of it fit into "
    "the package.",
    "The other seven differ from it in one thing: another seed (`-seed1`); the mean of the patch "
    "tokens before the "
    "classifier instead of the class token (`-mean`); a block 6, or 10, without skip connections around "
    "attention and MLP (`-noskip6`, `-noskip10`); 30, 10 or 3 % of the training images of every class "
    "(`-30pct`, `-10pct`, `-3pct`).",
    "mini-referee.md adds segmentation in context, sets of layers and transforms.",
    "The leaderboard compares each variant with `mini-fs64` in every task, and has their CKA block by block.",
    "Each variant has one training, so a difference is of these networks; claims of papers says what one "
    "training can tell.",
)
"""Sentences that say what was done, not what was found."""


@pytest.fixture(scope="module")
def claims() -> list[tuple[str, bool]]:
    return [*_claims()]


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_tables_support_every_claim(claims: list[tuple[str, bool]]) -> None:
    assert [sentence for sentence, supported in claims if not supported] == []


def test_the_page_has_each_claim_with_the_numbers_of_the_tables(
    claims: list[tuple[str, bool]], page: str
) -> None:
    text = _plain(page)
    assert [sentence for sentence, _ in claims if _plain(sentence) not in text] == []


def test_the_page_claims_nothing_else(claims: list[tuple[str, bool]], page: str) -> None:
    known = (*(sentence for sentence, _ in claims), *METHOD)
    for section in MEASURED.findall(page):
        assert re.sub(r"\s+", " ", _without(_plain(section), known)) in ("", " ")
    assert not re.search(r"(?<![\w-])\d", _without(_plain(page), known))


def test_the_table_of_the_page_is_that_of_the_leaderboard(page: str) -> None:
    table = TABLE.search(page)
    assert table is not None
    assert _cells(table[0].splitlines()[0]) == ["backbone", *TASKS]
    cells = Tables("mini").cells
    for line in table[1].splitlines():
        name, *row = _cells(line)
        assert row == [cells[task][name] for task in TASKS]
    assert [_cells(line)[0] for line in table[1].splitlines()] == [*NAMES]
