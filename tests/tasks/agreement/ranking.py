"""Retrieval against the official evaluation of revisited Oxford and Paris."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.retrieval.ranking import Difficulty, rank, revisited
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, Agreement, Finding, close, exact, gathered

CASES = golden.cases("retrieval")
NAMES: dict[str, Difficulty] = {"E": "easy", "M": "medium", "H": "hard"}


def compare(name: str) -> list[Finding]:
    """Findings of one case over the three difficulties."""
    return gathered(finding for split in NAMES for finding in _of_split(name, split))


def _of_split(name: str, split: str) -> Iterator[Finding]:
    """Findings of one case at one difficulty, E, M or H."""
    data, expected = golden.build(CASES[name]), CASES[name]["expected"][split]
    easy, hard, junk = _truth(CASES[name], data)
    scores = revisited(rank(_similarities(data)), easy, hard, junk, NAMES[split])
    ap = np.array([np.nan if value is None else value for value in expected["AP_per_query"]])
    counted = expected.get("queries_counted", np.isfinite(ap).sum())
    yield close("AP of each query", OFFICIAL, scores["mAP"], ap, 1e-12)
    yield close("mAP", OFFICIAL, np.nanmean(scores["mAP"]), expected["mAP"], 1e-12)
    precision = [np.nanmean(scores[f"mP@{k}"]) for k in expected["mP"]]
    yield close("mP@1, 5, 10", OFFICIAL, precision, list(expected["mP"].values()), 1e-12)
    yield exact("queries that count", OFFICIAL, int(np.isfinite(scores["mAP"]).sum()), counted)


def _truth(case: dict[str, Any], data: dict[str, NDArray[Any]]) -> list[list[NDArray[np.int64]]]:
    """Easy, hard and junk images of each query."""
    if "relevance" in data:
        return [[np.flatnonzero(column == kind) for column in data["relevance"].T] for kind in (1, 2, 3)]
    queries = case["recipe"].get("queries")
    if queries is None:
        queries = json.loads((golden.FOLDER / case["recipe"]["gnd_file"]).read_text())["queries"]
    return [[np.array(query[kind], np.int64) for query in queries] for kind in ("easy", "hard", "junk")]


def _similarities(data: dict[str, NDArray[Any]]) -> NDArray[np.floating]:
    if "scores" in data:
        return data["scores"]
    unit = [data[key] / np.linalg.norm(data[key], axis=1, keepdims=True) for key in ("database", "queries")]
    return np.asarray(unit[0] @ unit[1].T)


AGREEMENT = Agreement(
    title="Retrieval",
    module="tasks/retrieval/ranking.py",
    file="retrieval",
    recipes={
        "roxford5k_structured": "the real index lists of ROxford and drawn similarities without ties, "
        "raised for easy, hard and junk images",
        "tiny_edge_cases": "written-out rankings: a query without a positive, junk at the first two places, "
        "no hard image, a positive at the last place",
        "features_200x32": "drawn vectors of unequal length, ranked by cosine, with a drawn ground truth",
    },
    compare=compare,
    notes=(
        "Easy, medium and hard are compared, all with their own list of ignored images.",
        "By choice: equal similarities are ordered by their place in the database; the official ranking "
        "leaves them to an unstable sort. No case has ties.",
        "The images of the datasets are not part of the comparison: it starts from similarities or vectors.",
    ),
)
