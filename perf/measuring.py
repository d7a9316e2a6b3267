"""Candidates that take turns, rows of the table of budgets, and the machine that they were measured on."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import torch
from tabulate import tabulate

from benchmark.engines.choose import device_name
from leaderboards.records.files import VERSION


@dataclass(frozen=True, slots=True)
class Budget:
    """What a row should be."""

    limit: float  # in the row's unit
    at_least: bool = False  # whether more is better; else the limit is the most

    def met(self, value: float) -> bool:
        """Whether a value is within it."""
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str  # what was measured, beside what
    value: float | None  # the median; None where it could not be measured here, and ``note`` says why
    unit: str = "x"  # of the value: ``x`` for a ratio, ``ms``, ``s``, ``MB``
    budget: Budget | None = None  # what it should be; None where nothing is demanded
    # medians behind the value, in milliseconds, by what they are of
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""  # how to read it

    @property
    def met(self) -> bool | None:
        """Whether the budget is met; None where there is none, or nothing was measured."""
        return None if self.budget is None or self.value is None else self.budget.met(self.value)


HEADERS = ("topic", "what", "measured", "budget", "met", "milliseconds and notes")


def as_table(rows: Iterable[tuple[str, Row]], form: str = "simple") -> str:
    """Rows with the names of their topics, as a table of the form that `tabulate` calls so."""
    return tabulate(
        [_cells(topic, row) for topic, row in rows], HEADERS, tablefmt=form, disable_numparse=True
    )


def as_data(rows: Iterable[tuple[str, Row]]) -> list[dict[str, object]]:
    """The rows for machines."""
    return [{"topic": topic, **asdict(row), "met": row.met} for topic, row in rows]


def _cells(topic: str, row: Row) -> Sequence[str]:
    said = [f"{name} {value:,.4g}" for name, value in row.figures.items()]
    words = {True: "yes", False: "NO", None: ""}[row.met]
    measured = "not here" if row.value is None else f"{row.value:,.3g} {row.unit}"
    return topic, row.what, measured, _wanted(row), words, "; ".join([*said, *filter(None, [row.note])])


def _wanted(row: Row) -> str:
    if row.budget is None:
        return ""
    return f"{'at least' if row.budget.at_least else 'at most'} {row.budget.limit:g} {row.unit}"


Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Setting:
    """How it is measured."""

    # where backbones and products run
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32  # of forwards
    rounds: int = 5  # how often everything takes its turn, after one round that warms up
    quick: bool = False  # whether small shapes stand for the true ones: shows that it works, not how fast
    batch: int = 8  # images of a batch of a pass


@dataclass(frozen=True, slots=True)
class Rounds:
    """Seconds of each candidate in each round."""

    seconds: Mapping[str, list[float]]

    def ratio(self, first: str, second: str) -> float:
        """Median of the rounds' ratios: what slows the machine down slows both of a round."""
        pairs = zip(self.seconds[first], self.seconds[second], strict=True)
        return statistics.median(own / other for own, other in pairs)

    def milliseconds(self, name: str) -> float:
        """Median of a candidate."""
        return 1000 * statistics.median(self.seconds[name])

    def figures(self, *names: str) -> dict[str, float]:
        """Medians in milliseconds of some candidates, or of all."""
        return {name: self.milliseconds(name) for name in names or self.seconds}


def take_turns(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    device: torch.device,
    clock: Clock = time.perf_counter,
) -> Rounds:
    """Run all candidates once in each round; the first round warms up and does not count."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        for name, candidate in candidates.items():
            begin = clock()
            candidate()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if number:
                times[name].append(clock() - begin)
    return Rounds(times)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Machine:
    """What numbers were measured on."""

    device: str  # name of the processor with its threads, or of the graphics card
    processors: int  # how many there are
    torch: str  # version of torch
    python: str  # version of Python
    version: str  # version of this package
    dtype: str  # of forwards
    # processes that were running before it began, on the average of a minute; None where it is not known
    load: float | None

    @property
    def busy(self) -> bool:
        """Whether other work ran: ratios hold then, if at all, times do not."""
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
    dtype = str(setting.dtype).removeprefix("torch.")
    name = device_name(setting.device)
    return Machine(name, processors(), torch.__version__, platform.python_version(), VERSION, dtype, load)
