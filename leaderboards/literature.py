"""Published numbers that a run can be compared with: the tables below ``published/``, one file a source."""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Literal, cast, get_args

from leaderboards.display import POOLINGS, task_display
from tasks.registry import TASKS
from zoo.errors import InputError
from zoo.spec import Tap

SOURCES: dict[str, str] = {
    "teaching-matters": (
        "Walmer et al., Teaching Matters: Investigating the Role of Supervision in Vision Transformers, "
        "CVPR 2023, arXiv:2212.03862"
    ),
    "dino-readme": "facebookresearch/dino, README",
    "dino": (
        "Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021, "
        "arXiv:2104.14294"
    ),
    "vit": (
        "Dosovitskiy et al., An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale, "
        "ICLR 2021, arXiv:2010.11929"
    ),
    "dinov2-readme": "facebookresearch/dinov2, README",
    "revisitop-readme": "filipradenovic/revisitop, README",
    "spair-others": "results on SPair-71k as third parties tell them",
    "aim-readme": "apple/ml-aim, aim-v1/README.md, commit bd9e068",
    "capi-readme": "facebookresearch/capi, README, commit 98b4fa1",
    "dino-threads": "facebookresearch/dino, authors in threads of issues",
    "dinov3-card": "facebookresearch/dinov3, MODEL_CARD.md, commit 6876159",
    "franca-readme": "valeoai/Franca, README, commit 24f8c60",
    "hummingbird-readme": "vpariza/open-hummingbird-eval, README, commit 5e79da2",
    "insid3-readme": "visinf/INSID3, README, commit f1c9622",
    "pe-readme": "facebookresearch/perception_models, apps/pe/README.md, commit 3e352cc",
    "radio-report": "NVlabs/RADIO, RADIOv2.5_tech_report.md, commit c0f3701",
    "tips-readme": "google-deepmind/tips, README, commit 4db271d",
}
"""Where the published numbers come from: for each file below ``published/`` the publication."""

PublishedProtocol = Literal[
    "standard",
    "paper",
    "probe3d",
    "geoaware",
    "sd-dino",
    "insid3",
    "dift",
    "dino",
    "dinov3",
    "hummingbird",
    "capi",
    "none",
]
Rule = Literal["best", "layer", "last", "final", "draws"]
Printed = Literal["percent", "fraction"]

INPUT_SIZE = 224  # side in pixels of the backbones' input in every source of ours; views scale with it
SIZE = "input_size"  # column of the input size, which few sources need
FURTHER = (SIZE, "transform", "claim")  # columns that a file may have after the others, in this order


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One published number, and what a run must be to be compared with it."""

    source: str  # key of its source in `SOURCES`
    table: str  # where in the source it stands
    backbone: str  # our name of the backbone, whether or not the registry has it
    task: str  # our name of the task; of a task that we lack where nothing is comparable
    dataset: str  # our name of the dataset
    protocol: PublishedProtocol  # the protocol of a comparable run; ``none`` where there is none
    metric: str  # our name of the metric
    pooling: str  # ``cls``, ``mean`` or ``grid``
    tap: Tap  # ``block`` or ``final``
    # whose score it is: the ``best`` block's, that of the block ``layer``, of the ``last`` block, of the
    # ``final`` norm, or the mean over the random floor's ``draws``
    rule: Rule
    # the block of the rule ``layer``, or the best one, counted from 1; None where not published
    layer: int | None
    # decimals to which the source rounded percents before it chose the best block; None where it chose on
    # what it computed
    chosen_decimals: int | None
    value: float  # percent
    decimals: int  # decimals of the percent that were printed
    printed: Printed  # as what the source printed it
    second_hand: bool  # whether it was read from a third party's transcription
    not_comparable: str  # why no run of ours can be compared with it; "" where one can
    conditions: str  # how it was measured, as far as the protocol does not say so, or differs
    # side in pixels of the backbone's input, as records tell it: 224 where the protocol says how large images
    # are
    input_size: int = INPUT_SIZE
    transform: str = ""  # what was done to the features before, as records tell it; "" for nothing
    # what is said to be measured, where other numbers of the same claim are published that it may disagree
    # with, whatever their protocols; "" for nothing that others measured
    claim: str = ""

    @property
    def comparable(self) -> bool:
        """Whether a run of ours can be compared with it."""
        return not self.not_comparable

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit, in percent: how far off the printed number may be."""
        return 0.5 * 10.0**-self.decimals


COLUMNS = tuple(field.name for field in fields(Published) if field.name not in FURTHER)
"""Columns of a file, in order; `FURTHER` may follow."""

UNIQUE = ("table", "backbone", "task", "dataset", "protocol", "metric", "pooling", "rule", "conditions")
"""What no two numbers of a source have in common."""


def published_folder() -> Path:
    """Where the tables are."""
    return Path(__file__).parent / "published"


@cache
def all_published() -> tuple[Published, ...]:
    """Every published number, in the order of `SOURCES` and of the files."""
    return tuple(
        number for source in SOURCES for number in read_published(published_folder() / f"{source}.csv")
    )


def read_published(path: Path, *, own: bool = False) -> tuple[Published, ...]:
    """The numbers of one source.

    Args:
        path: A CSV file with the columns `COLUMNS`, called after its source; `FURTHER` may follow them.
        own: Whether the source is the user's and need not be one of `SOURCES`.

    Raises:
        InputError: It cannot be read, or a row says something that cannot be.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read the published numbers in {path}: {error}") from error
    if not _known_columns(tuple(reader.fieldnames or ())):
        raise InputError(f"{path}, line 1: expected the columns {', '.join(COLUMNS)}")
    numbers: list[Published] = []
    lines: dict[tuple[object, ...], int] = {}
    for line, row in rows:
        where = f"{path}, line {line}"
        number = _parse(row, where, (path.stem,) if own else tuple(SOURCES))
        if number.source != path.stem:
            raise InputError(
                f"{where}: expected the source {path.stem} of the file's name, not {number.source}"
            )
        first = lines.setdefault(tuple(getattr(number, column) for column in UNIQUE), line)
        if first != line:
            raise InputError(f"{where}: says the same as line {first}; keep one of them")
        numbers.append(number)
    return tuple(numbers)


def _known_columns(names: tuple[str, ...]) -> bool:
    """Whether a file has the columns that it needs, and then none but some of the further ones, in order."""
    further = names[len(COLUMNS) :]
    return names == (*COLUMNS, *(name for name in FURTHER if name in further))


def _parse(row: Mapping[str, str], where: str, sources: tuple[str, ...]) -> Published:
    """One row, checked; its source is one of some."""
    if any(not isinstance(text, str) for text in row.values()) or set(row) - {*FURTHER} != {*COLUMNS}:
        raise InputError(f"{where}: expected {len(COLUMNS)} cells")
    empty = [name for name in (*UNIQUE, "value") if not row[name].strip()]
    if empty:
        raise InputError(f"{where}: {', '.join(empty)} may not be empty")
    decimals = _whole(row, "decimals", where)
    number = Published(
        source=_one_of(row, "source", sources, where),
        table=row["table"],
        backbone=row["backbone"],
        task=row["task"],
        dataset=row["dataset"],
        protocol=cast("PublishedProtocol", _one_of(row, "protocol", get_args(PublishedProtocol), where)),
        metric=row["metric"],
        pooling=_one_of(row, "pooling", tuple(POOLINGS), where),
        tap=cast("Tap", _one_of(row, "tap", get_args(Tap), where)),
        rule=cast("Rule", _one_of(row, "rule", get_args(Rule), where)),
        layer=_whole(row, "layer", where),
        chosen_decimals=_whole(row, "chosen_decimals", where),
        value=_percent(row["value"], decimals, where),
        decimals=decimals or 0,
        printed=cast("Printed", _one_of(row, "printed", get_args(Printed), where)),
        second_hand=_one_of(row, "second_hand", ("yes", "no"), where) == "yes",
        not_comparable=row["not_comparable"],
        conditions=row["conditions"],
        input_size=(_whole(row, SIZE, where) if SIZE in row else None) or INPUT_SIZE,
        transform=row.get("transform", ""),
        claim=row.get("claim", ""),
    )
    _require_comparable(number, where)
    _require_layer(number, where)
    return number


def _require_comparable(number: Published, where: str) -> None:
    """Raise InputError unless a protocol, a task and a metric of ours are named where a run is comparable."""
    if (number.protocol == "none") == number.comparable:
        raise InputError(
            f"{where}: expected a protocol, or the protocol none and the reason in not_comparable; found the "
            f"protocol {number.protocol} and the reason {number.not_comparable!r}"
        )
    known = [task.name for task in TASKS]
    if number.comparable and number.task not in known:
        raise InputError(f"{where}: there is no task {number.task!r}; known tasks: {', '.join(known)}")
    metrics = task_display(number.task).metrics
    if number.comparable and number.metric not in metrics:
        raise InputError(
            f"{where}: {number.task} has no metric {number.metric!r}; it has {', '.join(metrics)}"
        )


def _require_layer(number: Published, where: str) -> None:
    """Raise InputError unless tap and layer fit the rule."""
    if (number.tap == "final") != (number.rule == "final"):
        raise InputError(
            f"{where}: tap and rule are both final or neither is; found {number.tap}, {number.rule}"
        )
    if number.rule == "layer" and number.layer is None:
        raise InputError(f"{where}: the rule layer needs the number of the block in the column layer")
    if number.rule not in ("best", "layer") and number.layer is not None:
        raise InputError(f"{where}: the rule {number.rule} takes no layer; found {number.layer}")


def _one_of(row: Mapping[str, str], column: str, choices: tuple[str, ...], where: str) -> str:
    """A cell that is one of some words."""
    if row[column] not in choices:
        raise InputError(f"{where}: {column} must be one of {', '.join(choices)}, not {row[column]!r}")
    return row[column]


def _whole(row: Mapping[str, str], column: str, where: str) -> int | None:
    """A cell that is a whole number, None where it is empty."""
    text = row[column]
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise InputError(f"{where}: {column} must be a whole number or empty, not {text!r}")
    return int(text)


def _percent(text: str, decimals: int | None, where: str) -> float:
    """A percentage with exactly so many decimals."""
    digits = re.fullmatch(r"[0-9]+(?:\.([0-9]+))?", text)
    if digits is None or not 0 <= float(text) <= 100:
        raise InputError(f"{where}: the value must be a percentage from 0 to 100, not {text!r}")
    if len(digits[1] or "") != decimals:
        raise InputError(f"{where}: the value {text} has not the decimals that are given: {decimals}")
    return float(text)
