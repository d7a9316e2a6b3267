"""What the README and docs/explanation/mini.md say of the mini suite holds in the committed tables."""

import re
from pathlib import Path

import pandas as pd
import pytest

from layerboard.leaderboards.writers.build import tables_folder
from tests.leaderboards.shown import committed

PAGE = (Path(__file__).parents[3] / "docs" / "explanation" / "mini.md").read_text(encoding="utf-8")
TABLE = re.compile(r"^\| +(?:family|backbone) .*\n\|[-:| ]+\|\n(?:\|.*\n)+", re.MULTILINE)
SPREAD = re.compile(r" ± [0-9.]+| \([0-9.]+ to [0-9.]+\)")
MEASURED = re.compile(r"^## (?:Which|What).*\n+((?:(?!## ).*\n)*)", re.MULTILINE)
NAMES = tuple(f"mini-{name}" for name in ("fs", "clip", "dino", "moco", "mae", "beit", "resnet"))
GLOBAL = ("knn", "retrieval", "cluster-image")
LOCAL = ("davis", "spair", "cluster-part")
OWN_SHAPE = ("mini-clip", "mini-beit", "mini-resnet")
"""Backbones of another shape than the plain ViTs, whose untrained network is FS's."""


def blocks(suite: str) -> pd.DataFrame:
    """The committed scores of blocks in the primary metrics, numbers as such, the highest first."""
    rows = committed(suite)
    rows = rows[(rows["tap"] == "block") & (rows["other"] == "") & (rows["best"] != "")]
    numbers = rows[["value", "ci_low", "ci_high", "layer"]].apply(pd.to_numeric)
    return rows.assign(**numbers).sort_values("value", ascending=False, kind="stable")


def of(rows: pd.DataFrame, task: str, name: str) -> pd.DataFrame:
    return rows[(rows["task"] == task) & (rows["backbone"] == name)]


def top(rows: pd.DataFrame, task: str, name: str) -> float:
    return float(of(rows, task, name)["value"].iloc[0])


def page(suite: str) -> str:
    return (tables_folder() / f"{suite}.md").read_text(encoding="utf-8")


def cells(text: str) -> list[list[str]]:
    """The cells of the first table of a text, head and rows."""
    table = TABLE.search(text)
    assert table is not None
    lines = table[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


# docs/explanation/mini.md


def claims() -> list[tuple[str, bool]]:
    """Sentences of the page, with numbers from the tables, and whether the tables support each.

    A new sentence under a heading that begins with "Which" or "What" needs a row here, or, if it claims
    nothing, in `METHOD`; so does one with a number anywhere.
    """
    mini, changed, referee = map(blocks, ("mini", "mini-interventions", "mini-referee"))
    raw = sorted({name for name in changed["backbone"] if name.endswith("-untrained")})
    untrained = {task: [top(changed, task, name) for name in raw] for task in ("knn", "davis", "spair")}
    knn, davis, spair = (f"{min(values):.1f} to {max(values):.1f}" for values in untrained.values())
    pixels = [f"{top(mini, task, 'mini-pixels'):.1f}" for task in untrained]
    shown = [top(referee, "segment", name) for name in NAMES]
    mae = of(mini, "spair", "mini-mae")
    maybe = {*mae.loc[mae["maybe_best_of_backbone"] == "True", "layer"]}
    counts = [int(of(mini, task, "mini-fs")["n"].iloc[0]) for task in ("knn", "retrieval", "davis", "spair")]
    counts += [int(of(mini, f"cluster-{kind}", "mini-fs")["n"].iloc[0]) for kind in ("object", "part")]
    images, queries, objects, points, regions, parts = (f"{count:,}" for count in counts)
    return [
        (
            "True masks on the grid of 8 x 8 cells would score 88.1; the highest layers of the backbones "
            f"reach {min(shown):.1f} to {max(shown):.1f}.",
            all(f"{value:.1f} of 88.1:" in page("mini-referee") for value in shown[:-1]),
        ),
        (
            "The highest block of MAE in `spair` is 12, but no block is shown to be worse.",
            mae["layer"].iloc[0] == 12 and maybe == {*range(1, 13)},
        ),
        (
            f"Untrained networks score {knn} on k-NN, {davis} on DAVIS and {spair} on SPair; raw pixels "
            f"{pixels[0]}, {pixels[1]} and {pixels[2]}.",
            True,
        ),
        (
            f"Test sets are small: {images} images, {queries} queries of 12 landmarks, {objects} objects "
            f"in 6 videos, {points} keypoints of 256 pairs, {regions} objects and {parts} parts in 48 images "
            "each.",
            all(f" in {count} independent groups" in page("mini") for count in (12, 6, 256, 48)),
        ),
    ]


METHOD = (
    "Removed skips and data shares repeat experiments of Raghu et al. (2021).",
    "`mini-fs64` is `mini-fs` with 64 channels instead of 96, so that eight trainings of it fit into "
    "the package.",
    "The other seven differ from it in one thing: another seed (`-seed1`); the mean of the patch tokens "
    "before the classifier instead of the class token (`-mean`); a block 6, or 10, without skip connections "
    "around attention and MLP (`-noskip6`, `-noskip10`); 30, 10 or 3 % of the training images of every class "
    "(`-30pct`, `-10pct`, `-3pct`).",
    "mini-referee.md adds segmentation in context, sets of layers and transforms.",
    "The leaderboard compares each variant with `mini-fs64` in every task, and has their CKA block by block.",
    "Each variant has one training, so a difference is of these networks; claims of papers says what one "
    "training can tell.",
)
"""Sentences that say what was done, not what was found."""


def plain(text: str) -> str:
    """The words of Markdown: links by their texts; no tables, headings, topics in bold, or marks."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", TABLE.sub("", text))
    return " ".join(re.sub(r"^#+ .*$|^- |\*\*[^*]+:\*\*|`", "", text, flags=re.MULTILINE).split())


def test_the_tables_support_every_claim_of_the_page_which_claims_nothing_else() -> None:
    every = claims()
    assert [sentence for sentence, supported in every if not supported] == []
    assert [sentence for sentence, _ in every if plain(sentence) not in plain(PAGE)] == []

    def rest(text: str) -> str:
        for sentence in sorted((*(each for each, _ in every), *METHOD), key=len, reverse=True):
            text = text.replace(plain(sentence), "")
        return text.strip()

    assert {rest(plain(section)) for section in MEASURED.findall(PAGE)} == {""}
    assert not re.search(r"(?<![\w-])\d", rest(plain(PAGE)))


def test_the_table_of_the_page_is_that_of_the_leaderboard() -> None:
    (_, *tasks), *rows = cells(PAGE)
    text = page("mini")
    (_, _, *heads), *best = cells(text[text.index("## The best layer of each backbone") :])
    wanted = {
        row[1]: {head.split()[0]: SPREAD.sub("", cell) for head, cell in zip(heads, row[2:], strict=True)}
        for row in best
    }
    assert rows == [[name, *(wanted[name][task] for task in tasks)] for name in NAMES]
    assert tasks == [*GLOBAL, "davis", "spair", "cluster-object", "cluster-part"]


# README.md


@pytest.fixture(scope="module")
def best() -> pd.DataFrame:
    """The best layers of two suites, by backbone and task; what stands on both pages is the same."""
    rows = pd.concat([blocks("mini"), blocks("mini-interventions")], ignore_index=True)
    rows = rows[(rows["best"] == "True") & (rows["backbone"] != "mini-random")]
    rows = rows.drop_duplicates(["backbone", "task", "value", "ci_low", "ci_high", "layer"])
    assert not rows.duplicated(["backbone", "task"]).any()
    return rows.set_index(["backbone", "task"]).sort_index()


def pair(best: pd.DataFrame, name: str, task: str) -> tuple[pd.Series, pd.Series]:
    shape = name if name in OWN_SHAPE else "mini-fs"
    return best.loc[name, task], best.loc[f"{shape}-untrained", task]


@pytest.mark.parametrize("task", GLOBAL)
@pytest.mark.parametrize("name", ["mini-fs", "mini-clip", "mini-dino", "mini-moco", "mini-resnet"])
def test_learning_shows_far_outside_the_intervals(best: pd.DataFrame, name: str, task: str) -> None:
    trained, untrained = pair(best, name, task)
    # Queries of 12 landmarks leave wide intervals: DINO's meet those of the untrained network.
    meets = name == "mini-dino" and task != "knn"
    assert trained["ci_low"] > untrained["value" if meets else "ci_high"]


@pytest.mark.parametrize("task", LOCAL)
@pytest.mark.parametrize("name", ["mini-mae", "mini-beit"])
def test_reconstruction_shows_on_local_tasks(best: pd.DataFrame, name: str, task: str) -> None:
    trained, untrained = pair(best, name, task)
    # Parts and videos are few, and their intervals wide.
    assert trained["ci_low" if task == "spair" else "value"] > untrained["value"]


def test_without_skips_the_class_stays_and_places_are_lost() -> None:
    rows = blocks("mini-interventions")
    rows = rows[(rows["backbone"] == "mini-fs64-noskip6") & rows["pooling"].isin(["cls", "grid"])]
    values = rows.set_index(["task", "layer"])["value"]
    assert values["knn", 6] > 1.1 * values["knn", 5]
    for task in ("davis", "spair"):
        assert values[task, 6] < values[task, 5] / 2


def test_no_task_is_saturated_or_at_the_floor(best: pd.DataFrame) -> None:
    rows = blocks("mini")
    for task in (*GLOBAL, *LOCAL, "cluster-object"):
        assert top(rows, task, "mini-random") * 1.2 < best.xs(task, level="task")["value"].max() < 97
