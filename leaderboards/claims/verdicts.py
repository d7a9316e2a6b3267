"""Verdicts: what the records of a board say about each claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isnan, nan
from typing import Literal, get_args

import pandas as pd

from layerboard.leaderboards.blocks.display import number_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.claims.effects import AbsentError, Effect
from layerboard.leaderboards.claims.entries import CLAIMS, Claim
from layerboard.leaderboards.claims.readings import Readings
from layerboard.zoo.errors import InputError, counted, some

ClaimVerdict = Literal["holds", "fails", "undecided", "not measured"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
NO_INTERVAL = "too few units for an interval"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What records say about a claim; without an effect it is not measured, and ``reason`` says why."""

    claim: Claim
    effect: Effect | None
    reason: str = ""

    @property
    def verdict(self) -> ClaimVerdict:
        """Holds if the interval is above 0, fails if it is below."""
        if self.effect is None:
            return "not measured"
        return "holds" if self.effect.low > 0 else "fails" if self.effect.high < 0 else "undecided"


@lru_cache(maxsize=4)  # the pages and the report of a run ask for the same ones
def judgements_of(board: Board) -> tuple[Judgement, ...]:
    """What the records of a board say about every claim, in order of their numbers."""
    readings = Readings(board)
    return tuple(judge_claim(claim, readings) for claim in CLAIMS)


def chosen_judgements(board: Board, numbers: Sequence[int] = ()) -> tuple[Judgement, ...]:
    """The judgements on some claims, or on all; raises InputError for a number that no claim has."""
    if unknown := sorted({*numbers} - {claim.number for claim in CLAIMS}):
        last = CLAIMS[-1].number
        raise InputError(f"expected numbers of claims, 1 to {last}, found {', '.join(map(str, unknown))}")
    if not numbers:
        return judgements_of(board)
    readings = Readings(board)
    return tuple(judge_claim(claim, readings) for claim in CLAIMS if claim.number in numbers)


def judge_claim(claim: Claim, readings: Readings) -> Judgement:
    """What readings say about a claim, or what it lacks."""
    lacking = [f"`{task}`" for task in claim.tasks if not readings.has(task)]
    groups = [relation.find(readings.networks) for relation in claim.relations]
    lacking += [each.words for each, fitting in zip(claim.relations, groups, strict=True) if not fitting]
    if lacking:
        return Judgement(claim, None, f"needs {some(lacking)}")
    try:
        effect = claim.effect(readings, *groups)
    except AbsentError as error:
        return Judgement(claim, None, str(error))
    return Judgement(claim, effect, NO_INTERVAL if isnan(effect.low) and isnan(effect.high) else "")


def claim_frame(judgements: Sequence[Judgement]) -> pd.DataFrame:
    """One row per claim, with all digits; estimate and interval are NaN where it is not measured."""
    nothing = Effect(nan, nan, nan, "")
    return pd.DataFrame(
        {
            "number": each.claim.number,
            "claim": each.claim.words,
            "verdict": each.verdict,
            "estimate": effect.value,
            "ci_low": effect.low,
            "ci_high": effect.high,
            "unit": effect.unit,
            "subject": effect.subject,
            "reason": each.reason,
            "statistic": each.claim.statistic,
            "tasks": " ".join(each.claim.tasks),
            "source": each.claim.source,
        }
        for each in judgements
        for effect in [each.effect or nothing]
    )


def claim_table(judgements: Sequence[Judgement]) -> pd.DataFrame:
    """The verdicts as text, one row per claim."""
    return pd.DataFrame(
        {
            "no.": str(each.claim.number),
            "verdict": each.verdict,
            "estimate": "" if each.effect is None else number_text(each.effect.value),
            "95 % interval": _ends(each),
            "unit": "" if each.effect is None else each.effect.unit,
            "decided by": each.reason if each.effect is None else each.effect.subject,
            "claim": each.claim.words,
        }
        for each in judgements
    )


def _ends(judgement: Judgement) -> str:
    effect = judgement.effect
    if effect is None:
        return ""
    if isnan(effect.low) and isnan(effect.high):
        return judgement.reason
    return " to ".join("?" if isnan(end) else number_text(end) for end in (effect.low, effect.high))


def counts_text(judgements: Sequence[Judgement]) -> str:
    """How many claims have each verdict, in one sentence."""
    verdicts = [each.verdict for each in judgements]
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in CLAIM_VERDICTS if verdict in verdicts]
    return f"{counted(len(judgements), 'claims')}: {', '.join(parts)}."


def lacking_texts(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """What claims that are not measured need, one sentence for each reason, with their numbers."""
    numbers: dict[str, list[str]] = {}
    for each in judgements:
        if each.effect is None:
            numbers.setdefault(each.reason, []).append(str(each.claim.number))
    return tuple(f"Not measured, {reason}: {', '.join(names)}." for reason, names in numbers.items())
