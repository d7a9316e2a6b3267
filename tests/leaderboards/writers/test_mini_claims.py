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

from layerboard.leaderboards.blocks.blocks import MAYBE
from layerboard.leaderboards.blocks.csv import read_numbers
from layerboard.leaderboards.blocks.display import ranges_text
from layerboard.leaderboards.board.tidy import TIDY
from layerboard.leaderboards.writers.build import tables_folder

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "mini.md"
TABLE = re.compile(r"^\| +(?:family|backbone) .*\n\|[-:| ]+\|\n((?:\|.*\n)+)", re.MULTILINE)
SPREAD = re.compile(r" ± [0-9.]+| \([0-9.]+ to [0-9.]+\)")
MEASURED = re.compile(r"^## (?:Which|What).*\n+((?:(?!## ).*\n)*)", re.MULTILINE)
TASKS = ("knn", "retrieval", "cluster-image", "davis", "spair", "cluster-object", "cluster-part")
NAMES = tuple(f"mini-{name}" for name in ("fs", "clip", "dino", "moco", "mae", "beit", "resnet"))
TRANSFORMERS = NAMES[:-1]
BLOCKS = {*range(1, 13)}


class Tables:
    """The committed numbers of one suite, and the page that marks the best of them."""

    def __init__(self, suite: str) -> None:
        self.page = (tables_folder() / f"{suite}.md").read_text(encoding="utf-8")
        rows = read_numbers(tables_folder() / f"{suite}.csv", TIDY)
        rows = rows[(rows["tap"] == "block") & (rows["other"] == "") & (rows["backbone"] != "mini-random")]
        rows = rows[rows["best"] != ""]  # of the primary metrics
        numbers = rows[["value", "ci_low", "ci_high", "loss"]].apply(pd.to_numeric)
        flags = {name: rows[name] == "True" for name in ("best", "maybe_best")}
        self.rows = rows.assign(**numbers, **flags, layer=rows["layer"].astype(int))

    def of(self, task: str, name: str) -> pd.DataFrame:
        """All blocks of a backbone, in all poolings."""
        return self.rows[(self.rows["task"] == task) & (self.rows["backbone"] == name)]

    def row(self, task: str, name: str, layer: int | None = None, pooling: str = "") -> "pd.Series[float]":
        """A block of a backbone; without a number the highest, of one pooling or of all."""
        rows = self.of(task, name)
        rows = rows[(rows["pooling"] == pooling) | (pooling == "")]
        rows = rows[rows["layer"] == layer] if layer else rows.nlargest(1, "value")
        (found,) = rows.iterrows()
        return found[1]

    def score(self, task: str, name: str, layer: int | None = None, pooling: str = "") -> str:
        return f"{self.row(task, name, layer, pooling)['value']:.1f}"

    def interval(self, task: str, name: str) -> str:
        row = self.row(task, name)
        return f"{row['ci_low']:.1f} to {row['ci_high']:.1f}"

    def highest(self, task: str, name: str) -> int:
        return int(self.row(task, name)["layer"])

    def maybe(self, task: str, name: str) -> set[int]:
        """Blocks that in some pooling are not shown to be worse than the best of their backbone."""
        rows = self.of(task, name)
        return {*rows.loc[rows["maybe_best"], "layer"]}

    def rivals(self, task: str) -> set[str]:
        """Backbones that are not shown to be worse than the best of a column, without the highest one."""
        return {name for name, cell in self.cells[task].items() if cell.endswith(MAYBE)}

    def first(self, task: str) -> str:
        """The backbone with the highest score."""
        (name,) = (name for name, cell in self.cells[task].items() if cell.startswith("**"))
        return name

    def apart(self, task: str, upper: str, lower: str) -> bool:
        """Whether the interval of the highest block of one is above those of all blocks of another."""
        return bool(self.row(task, upper)["ci_low"] > self.of(task, lower)["ci_high"].max())

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


def _step(backbone: str, choice: str) -> tuple[float, str]:
    """Score and change, with its interval, of one choice at the best layer by the first protocol."""
    page = tables_folder() / "mini-referee.decompose-spair-standard-paper.md"
    part = page.read_text(encoding="utf-8").replace("\\", "").split(f"## {backbone}\n")[1]
    part = part.split("### The best layer by standard, in every step")[1].split("\n## ")[0]
    (row,) = (cells for cells in map(_cells, part.splitlines()) if cells[0] == choice)
    change, low, high = re.findall(r"[-+][0-9.]+", row[5])
    return max(
        float(low), -float(high)
    ), f"{change.lstrip('+-')} points ({high.lstrip('+-')} to {low.lstrip('+-')})"


def _claims() -> Iterator[tuple[str, bool]]:
    """Sentences of the page, and whether the tables support each."""
    mini, changed, referee = map(Tables, ("mini", "mini-interventions", "mini-referee"))
    score, highest, maybe, rivals, first = mini.score, mini.highest, mini.maybe, mini.rivals, mini.first

    def untrained(task: str) -> str:
        names = {name for name in changed.cells[task] if name.endswith("-untrained")}
        values = sorted(changed.row(task, name)["value"] for name in names)
        return f"{values[0]:.1f} to {values[-1]:.1f}"

    def worse(task: str, name: str) -> str:
        return ranges_text(sorted(BLOCKS - maybe(task, name)))

    # which layers
    yield (
        "The last block of the ResNet is shown to be its best on k-NN.",
        maybe("knn", "mini-resnet") == {12},
    )
    also = {name: ranges_text(sorted(maybe("knn", name) - {12})) for name in ("mini-fs", "mini-clip")}
    yield (
        f"FS and CLIP are highest after their last block, too, but blocks {also['mini-fs']} of FS and "
        f"{also['mini-clip']} of CLIP are not shown to be worse.",
        all(highest("knn", name) == 12 for name in also),
    )
    yield (
        "The best block of MoCo on k-NN is shown to be one of "
        f"{ranges_text(sorted(maybe('knn', 'mini-moco')))}.",
        maybe("knn", "mini-moco") <= {10, 11, 12},
    )
    for name, title in (("mini-clip", "CLIP"), ("mini-resnet", "The ResNet")):
        yield (
            f"{title} is highest at block {highest('spair', name)} ({score('spair', name)}), and its "
            "last block "
            f"({score('spair', name, 12)}) is shown to be worse.",
            12 not in maybe("spair", name),
        )
    local = {"davis": "DAVIS", "spair": "SPair", "cluster-part": "parts"}
    at = [f"{highest(task, 'mini-moco')} on {title}" for task, title in local.items()]
    yield (
        f"MoCo is highest at block {at[0]}, {at[1]} and {at[2]}, but its last block is not shown to "
        "be worse.",
        all(12 in maybe(task, "mini-moco") for task in local),
    )
    yield (
        "Any block may be the best of FS and MAE on DAVIS, and of every backbone on the clustering of parts.",
        all(maybe("davis", name) == BLOCKS for name in ("mini-fs", "mini-mae"))
        and all(maybe("cluster-part", name) == BLOCKS for name in NAMES),
    )
    yield (
        f"DINO is highest on DAVIS after block {highest('davis', 'mini-dino')}, BEiT after block "
        f"{highest('davis', 'mini-beit')}, and MAE on SPair after block "
        f"{highest('spair', 'mini-mae')}, but block "
        "4 of DINO, block 2 of BEiT and all blocks of MAE are not shown to be worse.",
        4 in maybe("davis", "mini-dino")
        and 2 in maybe("davis", "mini-beit")
        and maybe("spair", "mini-mae") == BLOCKS,
    )

    # which backbones
    yield (
        f"The ResNet is shown to be the best on k-NN ({score('knn', 'mini-resnet')}).",
        first("knn") == "mini-resnet" and not rivals("knn") and mini.row("knn", "mini-resnet")["loss"] == 0,
    )
    yield (
        f"The interval of FS ({mini.interval('knn', 'mini-fs')}) is above those of all layers of the other "
        f"transformers, of which MoCo is the highest ({score('knn', 'mini-moco')}).",
        all(mini.apart("knn", "mini-fs", name) for name in TRANSFORMERS[1:])
        and max(TRANSFORMERS[1:], key=lambda name: mini.row("knn", name)["value"]) == "mini-moco",
    )
    yield (
        f"On SPair MoCo is highest ({score('spair', 'mini-moco')}); only the ResNet "
        f"({score('spair', 'mini-resnet')}) is not shown to be worse.",
        first("spair") == "mini-moco" and rivals("spair") == {"mini-resnet"},
    )
    yield (
        f"On the clustering of images and objects the ResNet is highest "
        f"({score('cluster-image', 'mini-resnet')} and {score('cluster-object', 'mini-resnet')}); "
        "only FS is not "
        "shown to be worse.",
        all(first(task) == "mini-resnet" for task in ("cluster-image", "cluster-object"))
        and all(rivals(task) == {"mini-fs"} for task in ("cluster-image", "cluster-object")),
    )
    clip = mini.row("retrieval", "mini-clip")
    yield (
        f"On retrieval CLIP is highest ({clip['value']:.1f}), but may be up to {clip['loss']:.1f} "
        "points below the "
        "best: FS, MoCo and the ResNet are not shown to be worse.",
        first("retrieval") == "mini-clip" and rivals("retrieval") == {"mini-fs", "mini-moco", "mini-resnet"},
    )
    yield (
        f"On DAVIS the ResNet is highest ({score('davis', 'mini-resnet')}); CLIP, DINO, MoCo and BEiT "
        "are not shown "
        "to be worse.",
        first("davis") == "mini-resnet"
        and rivals("davis") >= {"mini-clip", "mini-dino", "mini-moco", "mini-beit"},
    )
    yield (
        f"The untrained ResNet scores {changed.score('davis', 'mini-resnet-untrained')} there.",
        float(changed.row("davis", "mini-resnet-untrained")["value"])
        >= mini.row("davis", "mini-resnet")["value"],
    )
    yield (
        "On the clustering of parts no backbone is shown to be worse than another.",
        rivals("cluster-part") == {*NAMES} - {first("cluster-part")},
    )
    yield (
        f"Without labels or captions, MoCo is as high as CLIP on k-NN ({score('knn', 'mini-moco')} and "
        f"{score('knn', 'mini-clip')}), and their intervals overlap.",
        not mini.apart("knn", "mini-moco", "mini-clip")
        and mini.row("knn", "mini-moco")["value"] >= mini.row("knn", "mini-clip")["value"],
    )
    yield (
        f"The interval of DINO on k-NN ({mini.interval('knn', 'mini-dino')}) is below those of FS, "
        "CLIP and MoCo; on "
        "retrieval it overlaps all of them.",
        all(mini.apart("knn", name, "mini-dino") for name in ("mini-fs", "mini-clip", "mini-moco"))
        and not any(
            mini.apart("retrieval", name, "mini-dino") for name in ("mini-fs", "mini-clip", "mini-moco")
        ),
    )

    # what interventions show
    pair = ("mini-fs64", "mini-fs64-seed1")
    moved = {
        task: abs(changed.row(task, pair[1])["value"] - changed.row(task, pair[0])["value"])
        for task in ("knn", "retrieval", "cluster-object")
    }
    yield (
        f"Another seed changes k-NN by {moved['knn']:.1f} points, retrieval by "
        f"{moved['retrieval']:.1f} and the "
        f"clustering of objects by {moved['cluster-object']:.1f}, and neither training is shown to be "
        "worse than the "
        "best.",
        all({*pair} <= {*changed.rivals(task), changed.first(task)} for task in moved),
    )
    skip, plain = "mini-fs64-noskip6", "mini-fs64"
    fall = {task: [changed.score(task, skip, layer) for layer in (5, 6)] for task in ("davis", "spair")}
    yield (
        f"From block 5 to block 6 of `-noskip6`, DAVIS falls from {' to '.join(fall['davis'])} and "
        "SPair from "
        f"{' to '.join(fall['spair'])}: all blocks from 6 on are shown to be worse.",
        all(changed.maybe(task, skip) <= {1, 2, 3, 4, 5} for task in fall),
    )
    yield (
        "In `mini-fs64` block 6 is not shown to be worse than the best on either.",
        all(6 in changed.maybe(task, plain) for task in fall),
    )
    rise = [changed.score("knn", skip, layer, "mean") for layer in (5, 6)]
    yield (
        "Class information is kept: k-NN with the mean of the patch tokens rises from "
        f"{' to '.join(rise)} in the "
        "same block, which may be the best, and block 5 is shown to be worse.",
        6 in changed.maybe("knn", skip) and 5 not in changed.maybe("knn", skip),
    )

    def loser(name: str, pooling: str) -> bool:
        rows = changed.of("knn", name)
        return not rows.loc[rows["pooling"] == pooling, "maybe_best"].any()

    mean = "mini-fs64-mean"
    yield (
        f"Trained on the mean, k-NN accuracy is {changed.score('knn', mean, None, 'mean')} with the "
        "mean of the patch "
        f"tokens and {changed.score('knn', mean, None, 'cls')} with the class token; trained on the "
        "class token, it "
        f"is {changed.score('knn', plain, None, 'mean')} and {changed.score('knn', plain, None, 'cls')}.",
        loser(mean, "cls") and loser(plain, "mean"),
    )
    yield "The lower one is shown to be worse in both.", loser(mean, "cls") and loser(plain, "mean")
    tenth = "mini-fs64-10pct"
    yield (
        f"Training on a tenth of the images gives {changed.score('knn', tenth)} on k-NN, where "
        "`mini-fs64` has "
        f"{changed.score('knn', plain)}, and its interval is below.",
        changed.apart("knn", plain, tenth),
    )
    yield (
        "On DAVIS, SPair and the clustering of parts it is not shown to be worse than the best.",
        all(tenth in changed.rivals(task) for task in local),
    )

    # what protocols show
    shown = [referee.row("segment", name)["value"] for name in NAMES]
    yield (
        f"True masks on the grid of 8 x 8 cells would score 88.1; the highest layers of the backbones reach "
        f"{min(shown):.1f} to {max(shown):.1f}.",
        all(f"{value:.1f} of 88.1:" in referee.page for value in shown[:-1]),
    )
    least, text = _step("mini-mae", "search")
    yield f"At the highest layer of MAE, that the padding is not searched is worth {text}.", least > 0
    yield (
        "The highest block of MAE moves from 12 with `standard` to 6 with `paper`, but with "
        "`standard` no block is "
        "shown to be worse.",
        highest("spair", "mini-mae") == 12 and maybe("spair", "mini-mae") == BLOCKS,
    )

    # what they rest on
    yield (
        f"Untrained networks score {untrained('knn')} on k-NN, {untrained('davis')} on DAVIS and "
        f"{untrained('spair')} on SPair; raw pixels {score('knn', 'mini-pixels')}, "
        f"{score('davis', 'mini-pixels')} "
        f"and {score('spair', 'mini-pixels')}.",
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
    counts = {task: int(mini.row(task, "mini-fs")["n"]) for task in units}
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
    "The experiment is that of Raghu et al. (2021).",
    "`mini-fs64` is `mini-fs` with 64 channels instead of 96, so that six trainings of it fit into "
    "the package.",
    "The other five differ from it in one thing: another seed (`-seed1`); the mean of the patch "
    "tokens before the "
    "classifier instead of the class token (`-mean`); a block 6 without skip connections around "
    "attention and MLP "
    "(`-noskip6`); a tenth, or 3 %, of the training images of every class (`-10pct`, `-3pct`).",
    "mini-referee.md adds segmentation in context, sets of layers and transforms, and there is one "
    "decomposition.",
    "Each variant has one training: what follows is of these networks.",
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
    assert not re.search(r"(?<![\w-])\d", _without(_plain(page), known).replace("95 %", ""))


def test_the_table_of_the_page_is_that_of_the_leaderboard(page: str) -> None:
    table = TABLE.search(page)
    assert table is not None
    assert _cells(table[0].splitlines()[0]) == ["backbone", *TASKS]
    cells = Tables("mini").cells
    for line in table[1].splitlines():
        name, *row = _cells(line)
        assert row == [cells[task][name] for task in TASKS]
    assert [_cells(line)[0] for line in table[1].splitlines()] == [*NAMES]
