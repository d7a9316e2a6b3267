"""Candidates that take turns, rows of the table of budgets, and the machine of the measurement."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from tabulate import tabulate

from layerboard.benchmark.engines.choose import device_name
from layerboard.leaderboards.records.files import VERSION
from layerboard.zoo.spec import Dtype


@dataclass(frozen=True, slots=True)
class Budget:
    """The limit of a row in its unit: a maximum, or a minimum."""

    limit: float
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str  # what was measured, against what
    value: float | None  # the median; None if it could not be measured here, and ``note`` says why
    unit: str = "x"  # of the value: ``x`` for a ratio, ``ms``, ``s``, ``MB``
    budget: Budget | None = None  # None without a budget
    # medians behind the value, in milliseconds, by name
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""  # how to read it

    @property
    def met(self) -> bool | None:
        """Whether the budget is met; None without a budget, or if nothing was measured."""
        if self.budget is None or self.value is None:
            return None
        return self.value >= self.budget.limit if self.budget.at_least else self.value <= self.budget.limit


def as_data(rows: Iterable[tuple[str, Row]]) -> list[dict[str, Any]]:
    """Rows with the names of their topics, for JSON."""
    return [{"topic": topic, **asdict(row), "met": row.met} for topic, row in rows]


def as_table(rows: Iterable[Mapping[str, Any]], form: str = "simple") -> str:
    """Rows from `as_data` as a table in a format of `tabulate`."""
    headers = ("topic", "what", "measured", "budget", "met", "milliseconds and notes")
    return tabulate(map(_cells, rows), headers, tablefmt=form, disable_numparse=True)


def _cells(row: Mapping[str, Any]) -> Sequence[str]:
    value, unit, budget = row["value"], row["unit"], row["budget"]
    measured = "not here" if value is None else f"{value:,.3g} {unit}"
    wanted = ""
    if budget is not None:
        wanted = f"{'at least' if budget['at_least'] else 'at most'} {budget['limit']:g} {unit}"
    said = [f"{name} {median:,.4g}" for name, median in row["figures"].items()]
    met = {True: "yes", False: "NO", None: ""}[row["met"]]
    return row["topic"], row["what"], measured, wanted, met, "; ".join([*said, *filter(None, [row["note"]])])


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings of a measurement."""

    # device of backbones and products
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: Dtype = "float32"  # of forward passes
    rounds: int = 5  # number of rounds in which all candidates take turns, after one warm-up round
    quick: bool = False  # whether small shapes replace the real ones, to show that it works, not how fast
    batch: int = 8  # batch size of a pass

    @property
    def card(self) -> torch.device | None:
        """The device if it is a GPU, else None."""
        return self.device if self.device.type == "cuda" else None


@dataclass(frozen=True, slots=True)
class Rounds:
    """Seconds of each candidate in each round."""

    seconds: Mapping[str, list[float]]

    def ratio(self, first: str, second: str) -> float:
        """Median of the ratios of rounds: what slows the machine down affects both candidates of a round."""
        pairs = zip(self.seconds[first], self.seconds[second], strict=True)
        return statistics.median(own / other for own, other in pairs)

    def milliseconds(self, name: str) -> float:
        """Median of a candidate."""
        return 1000 * statistics.median(self.seconds[name])

    def row(
        self, what: str, ratio: tuple[str, str], budget: Budget | None = None, note: str = "", *shown: str
    ) -> Row:
        """The ratio of one candidate over another, with the medians of those in ``shown``, or of all."""
        figures = {name: self.milliseconds(name) for name in shown or self.seconds}
        return Row(what, self.ratio(*ratio), budget=budget, figures=figures, note=note)


def take_turns(
    setting: Setting,
    candidates: Mapping[str, Callable[[], object]],
    times: float = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Rounds:
    """Run all candidates in turn for ``times`` the rounds of the setting, after one warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(1 + max(1, int(times * setting.rounds))):
        for name, candidate in candidates.items():
            begin = clock()
            candidate()
            if setting.card:
                torch.cuda.synchronize(setting.card)
            if number:
                seconds[name].append(clock() - begin)
    return Rounds(seconds)


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of a measurement."""

    device: str  # name of the processor with its threads, or of the GPU
    processors: int
    torch: str  # version
    python: str  # version
    version: str  # of this package
    dtype: str  # of forward passes
    # running processes before the start, averaged over a minute; None if unknown
    load: float | None

    @property
    def busy(self) -> bool:
        """Whether other work was running: then ratios may hold, but times do not."""
        return self.load is not None and self.load > 0.5

    def __str__(self) -> str:
        load = "" if self.load is None else f"; load before it began {self.load:.1f}"
        return (
            f"{self.device} (of {self.processors}); torch {self.torch}, {self.dtype}; Python {self.python}; "
            f"layerboard {self.version}{load}"
        )


def this_machine(setting: Setting) -> Machine:
    """The machine of this process."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    name = device_name(setting.device)
    return Machine(
        name, processors(), torch.__version__, platform.python_version(), VERSION, setting.dtype, load
    )
