"""Rows of the table of budgets: what was measured, what it should be, and how the two are written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from tabulate import tabulate


@dataclass(frozen=True, slots=True)
class Budget:
    """What a row should be.

    Attributes:
        limit: In the row's unit.
        at_least: Whether more is better; else the limit is the most.
    """

    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a value is within it."""
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        what: What was measured, beside what.
        value: The median; None where it could not be measured here, and ``note`` says why.
        unit: Of the value: ``x`` for a ratio, ``ms``, ``s``, ``MB``.
        budget: What it should be; None where nothing is demanded.
        figures: Medians behind the value, in milliseconds, by what they are of.
        note: How to read it.
    """

    what: str
    value: float | None
    unit: str = "x"
    budget: Budget | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

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
    """The same for machines."""
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
