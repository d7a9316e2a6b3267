"""Order and format of tasks, metrics, poolings and numbers in tables."""

import math
import re
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from layerboard.leaderboards.records.files import safe_name
from layerboard.tasks.framework.registry import TASKS, TaskEntry
from layerboard.zoo.errors import shortened

if TYPE_CHECKING:
    from layerboard.tasks.statistics.resolution import Enough

POOLINGS: dict[str, str] = {
    "cls": "class token",
    "mean": "mean of the patch tokens",
    "cls+mean": "class token and mean of the patch tokens, one after the other",
    "gem": "generalised mean of the patch tokens",
    "patchwise": "mean of the grid, blocks of cells moved into channels",
    "grid": "the grid of patch features",
    "patch": "all patch tokens, flattened",
    "all": "all tokens, class token and patches",
    "token": "single patch tokens",
}

UNLIKE = 0.2  # share of an interval's width: halves that differ by more are told by both ends
WIDEST = 40.0  # points on either side of a score, above which its interval says as good as nothing
TOO_FEW = "{units} are too few for an interval"  # of one that is wider, or of none
FURTHEST = 20  # numbers of units are told up to this many times those that are there
PARTS = ("", ".inside", ".cka", ".cost", ".held-out")  # endings of the names of pages and files of one suite
MAX_LOSS = 2.0  # points that a recommended layer is shown to lose at most, unless another limit is asked for
OTHER_PAGES = ("literature",)  # names of pages that may be beside those of suites

NOT_WORSE = "not shown to be worse"  # of what may be the best: the test did not show it to be below it
ON_A_PART = "on a part of the dataset"  # of scores that are marked by †

# what a held-out score is, and what it is not
HELD_OUT = """\
held-out choice of the layer; it does not correct the choice of backbone, pooling, set or transform"""


def task_display(name: str) -> TaskEntry:
    """The entry of a task; a minimal one for a task that is not in the registry."""
    bare = TaskEntry(name=name, role="classification", title=name, data="", metrics=(), asks="", measures="")
    return next((entry for entry in TASKS if entry.name == name), bare)


def page_name(suite: str) -> str:
    """A suite's name as a file name of its page, safe whatever the suite is called."""
    return safe_name(re.sub(r"[^\w.-]+", "-", suite).strip(".-") or "unnamed")


def page_problem(suites: Iterable[str]) -> str:
    """Which of some suites would have the page of another one, or of something else, as a phrase."""
    taken = dict.fromkeys(OTHER_PAGES, "")
    for suite in sorted(suites):
        for part in PARTS:
            if (other := taken.setdefault(f"{page_name(suite)}{part}".casefold(), suite)) != suite:
                owner = f"the suite {other}" if other else "other pages"
                return f"the page of the suite {shortened(suite)} has the name of one of {owner}"
    return ""


def plain_name(name: str) -> str:
    """A suite or dataset in plain words; own images by their folders, without the distinguishing digest."""
    named = re.sub(r"-[0-9a-f]{8}(?![0-9A-Za-z])", "", name.removeprefix("images-"))
    return named.replace("+", " and ") if named != name else name


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sort key by which ``k=9`` comes before ``k=10``."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", text))


def task_rank(name: str) -> tuple[int, str]:
    """Sort key of tasks: order of `TASKS`, then unknown ones by name."""
    names = [task.name for task in TASKS]
    return (names.index(name) if name in names else len(names), name)


def metric_rank(task: str, metric: str) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Sort key of a task's metrics: order of its entry, then unknown ones by name."""
    names = task_display(task).metrics
    return (names.index(metric) if metric in names else len(names), natural(metric))


def pooling_rank(pooling: str) -> tuple[int, str]:
    """Sort key of poolings: order of `POOLINGS`, then unknown ones by name."""
    names = list(POOLINGS)
    return (names.index(pooling) if pooling in names else len(names), pooling)


def pooling_name(pooling: str) -> str:
    """A pooling in words."""
    return POOLINGS.get(pooling, pooling)


def place_text(layer: int, depth: int, pooling: str) -> str:
    """A layer of a backbone and how its vectors are pooled, as tables name it: ``9/12 cls``."""
    return f"{layer}/{depth} {pooling}"


def fixed(value: float, decimals: int) -> str:
    """A number with that many decimals, never ``-0.0``; "" for NaN."""
    return "" if math.isnan(value) else f"{round(value, decimals) + 0.0:.{decimals}f}"


def loss_text(loss: float) -> str:
    """What a score may lose at most, rounded up, so that only what loses nothing is ``0.0``; "" for NaN."""
    return fixed(math.ceil(round(10 * loss, 6)) / 10 if math.isfinite(loss) else loss, 1)


def score_text(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A score as tables show it: percent with one decimal, and its 95 % interval if known and `narrow`."""
    return interval_text(value, low, high, 1) if narrow(low, high) else fixed(value, 1)


def narrow(low: float, high: float) -> bool:
    """Whether the ends of an interval, in points, say something: they are known, and `WIDEST` is kept.

    Pages and prints name a wider one nowhere, but that too few units were sampled.
    """
    return (high - low) / 2 <= WIDEST


def number_text(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A number of an analysis, or a CKA, with its 95 % interval; three decimals below 10."""
    return interval_text(value, low, high, 3 if abs(value) < 10 else 1)


def interval_text(value: float, low: float, high: float, decimals: int) -> str:
    """A number with the ends of its 95 % interval, if known: ``61.2 ± 0.8``, or ``100.0 (92.8 to 100)``.

    Both ends are told where ± would be wrong: if they are unlike, as near 0 or 100, where one is cut.
    """
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        return fixed(value, decimals)
    if abs((high - value) - (value - low)) <= UNLIKE * (high - low):
        return spread_text(value, (high - low) / 2, decimals)
    ends = (f"{end:.0f}" if end in (0, 100) else fixed(end, decimals) for end in (low, high))
    return f"{fixed(value, decimals)} ({' to '.join(ends)})"


def cosine_text(value: float) -> str:
    """A cosine threshold, rounded up, since a lower one is less precise; more digits near 1; "" for NaN."""
    if math.isnan(value):
        return ""
    value, apart = min(value, 1.0), 1 - value  # beyond 1 by rounding
    decimals = max(3, 1 - math.floor(math.log10(apart))) if apart > 1e-9 else 3
    return f"{math.ceil(round(value * 10**decimals, 6)) / 10**decimals:.{decimals}f}"


def ms_text(value: float) -> str:
    """Milliseconds: no decimal from 100 on, one from 10 on, two below; "" if unknown."""
    return fixed(value, 0 if value >= 100 else 1 if value >= 10 else 2)


def count_text(value: float | None) -> str:
    """A number of weights: ``1.4M``; "" if unknown."""
    return "" if value is None else _in_units(value, {"G": 1e9, "M": 1e6, "K": 1e3, "": 1})


def bytes_text(value: float) -> str:
    """A number of bytes in a unit that fits: ``384 B``, ``24.6 kB``; "" if unknown."""
    return _in_units(value, {" TB": 1e12, " GB": 1e9, " MB": 1e6, " kB": 1e3, " B": 1})


def _in_units(value: float, units: dict[str, float]) -> str:
    """A number with three digits in the largest of some units that it reaches, else in the last one."""
    *_, last = units.items()
    unit, size = next((each for each in units.items() if value >= each[1]), last)
    whole = size == 1 or value >= 999.5 * size  # three digits would be 1e+03
    return "" if math.isnan(value) else f"{value / size:{'.0f' if whole else '.3g'}}{unit}"


def signed_text(value: float) -> str:
    """A difference of scores as tables show it: one decimal and a sign, ``0.0`` if it rounds to that."""
    text = fixed(value, 1)
    return f"+{text}" if text not in ("", "0.0") and value > 0 else text


def spread_text(value: float, spread: float, decimals: int) -> str:
    """``value ± spread``, without the spread if there is none, "" without a value."""
    text, around = fixed(value, decimals), fixed(spread, decimals)
    return f"{text} ± {around}" if text and around else text


def enough_text(enough: "Enough", there: float, unit: str) -> str:
    """About how many units would show a difference, and the range of its interval, with two digits.

    ``there`` is the number of units that were measured; beyond `FURTHEST` times as many, nothing is told.
    """
    count, least, most = (
        f"{round(number, 1 - math.floor(math.log10(number))):,.0f}" if number <= FURTHEST * there else ""
        for number in enough
    )
    span = f"{least} to {most}" if most else f"at least {least}"
    number = f"about {count}" if count else f"more than {FURTHEST} times as many"
    return f"{number} {unit} ({span})"


def rank_text(first: int, last: int) -> str:
    """A range of ranks: ``1st to 3rd``, or ``1st``."""
    return ordinal(first) if first == last else f"{ordinal(first)} to {ordinal(last)}"


def ordinal(number: int) -> str:
    """A rank: ``1st``, ``2nd``, ``11th``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 // 10 != 1 else "th"
    return f"{number}{ending}"


def ranges_text(numbers: list[int]) -> str:
    """Whole numbers in words: ``1, 2, 4 to 6``."""
    placed = groupby(enumerate(sorted(set(numbers))), key=lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in run] for _, run in placed]  # of consecutive numbers
    texts = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(number) for number in run] for run in runs]
    return ", ".join(text for run in texts for text in run)
