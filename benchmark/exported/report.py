"""Results of a scorer: JSON for machines, a table for people. Imports no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isnan, nan
from pathlib import Path
from typing import Literal

from layerboard.leaderboards.blocks.display import interval_text
from layerboard.tasks.framework.assess import intervals_of
from layerboard.tasks.framework.base import Outcome
from layerboard.zoo.errors import InputError

Json = str | float | None | Sequence["Json"] | Mapping[str, "Json"]  # a value of a JSON file; never NaN
JsonMap = Mapping[str, Json]  # members of the JSON of a report
Table = Sequence[Sequence[str]]  # rows of cells, the head first
SCHEMA = 1  # version of the keys of `ScoreReport.as_json`
Scale = Literal["percent", "fraction", "own"]  # own: what a task outside of the package defines


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReport:
    """Scores of the given files, and the parameters that produced them."""

    protocol: str  # whose rules apply
    parameters: JsonMap  # files, and every number that decides the scores
    n: int  # number of units behind the scores
    unit: str  # name of the units
    scale: Scale = "percent"  # the scale of the scores
    scores: JsonMap  # numbers by metric, in the scale; None if undefined
    details: JsonMap = field(default_factory=dict)  # intervals, scores of parts, and counts
    notes: tuple[str, ...] = ()  # notes that a reader of the numbers must know
    reason: str = ""  # why a score is None; "" if none is
    tables: tuple[Table, ...]  # for people

    def as_json(self) -> dict[str, Json]:
        """The report as one JSON object; ``reason`` is present only if a number is null.

        ``schema`` is the version of its keys: it rises if one goes or gets another meaning.
        """
        names = [each.name for each in fields(self) if each.name != "tables"]
        values = {name: getattr(self, name) for name in names if name != "reason" or self.reason}
        return {"schema": SCHEMA, **values}

    def with_parts(self, corner: str, name: str, parts: Mapping[str, Mapping[str, float]]) -> "ScoreReport":
        """The report with another table and detail: the scores of each part, such as a class."""
        table = [
            [corner, *next(iter(parts.values()), ())],
            *(
                [part, *(str(each) if isinstance(each, int) else number(each) for each in values.values())]
                for part, values in parts.items()
            ),
        ]
        return replace(self, details={**self.details, name: parts}, tables=(*self.tables, table))


def outcome_report(
    outcome: Outcome,
    path: object,
    *,
    protocol: str,
    parameters: JsonMap,
    more: Mapping[str, float] | None = None,
    notes: tuple[str, ...] = (),
) -> ScoreReport:
    """The report of a task's outcome on a file: scores in percent, with 95 % intervals as in tables of a run.

    ``more`` are scores without an interval. Raises InputError, with the reason, if there is no score.
    """
    if not outcome.scores:
        reason = outcome.empty or next(iter(outcome.missing.values()))
        raise InputError(f"{path} cannot be scored: {reason}")
    every = intervals_of([outcome.items]) if outcome.items else {}
    ends = {metric: pair for metric, (pair,) in every.items() if not isnan(sum(pair))}
    scores = {score.metric: score.value for score in outcome.scores} | {**(more or {})}
    reasons: dict[str, list[str]] = {}
    for metric, why in outcome.missing.items():
        reasons.setdefault(why, []).append(metric)
    rows = [(name, number(value, None, *ends.get(name, (nan, nan)))) for name, value in scores.items()]
    return ScoreReport(
        protocol=protocol,
        parameters=parameters,
        n=outcome.scores[0].n,
        unit=outcome.scores[0].unit,
        scores={**scores, **dict.fromkeys(outcome.missing)},
        details={"intervals": ends},
        notes=notes,
        reason="; ".join(
            why if metrics[0] in why else f"{', '.join(metrics)}: {why}" for why, metrics in reasons.items()
        ),
        tables=([("metric", "score"), *rows],),
    )


def number(value: float, decimals: int | None = None, low: float = nan, high: float = nan) -> str:
    """A number and its 95 % interval as tables of a run show them, with one digit more; "" for NaN."""
    usual = 3 if abs(value) < 1 else 2
    return interval_text(value, low, high, usual if decimals is None else decimals)


def one_of(**options: Path | None) -> tuple[str, Path]:
    """Name and path of the one option that was given; raises InputError for none or several."""
    given = [(name, path) for name, path in options.items() if path is not None]
    if len(given) != 1:
        flags = " or ".join(f"--{name}" for name in options)
        raise InputError(f"expected either {flags}, found {'both' if given else 'neither'}")
    return given[0]
