"""k-NN classification against the official classifier."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from layerboard.tasks.metrics.neighbours import nearest, top_k_correct, vote
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered

CASES = golden.cases("knn")


def compare(name: str) -> list[Finding]:
    """Findings of one case over all of its k, searched by faiss and by torch."""
    measure = _ties if name == "duplicates" else _plain
    searches = product(CASES[name]["params"]["k"], (None, torch.device("cpu")))
    return gathered(finding for k, device in searches for finding in measure(name, k, device))


def _classified(
    name: str, k: int, device: torch.device | None
) -> tuple[NDArray[np.int64], tuple[int, int], int]:
    """Ranked classes, how many queries are right at top-1 and top-5, and how many there are."""
    params, data = CASES[name]["params"], golden.build(CASES[name])
    found = nearest(data["train"], data["test"], max(params["k"]), device=device)
    ranked = vote(found, data["train_labels"], k, params["num_classes"], params["temperature"])
    one, five = (int(top_k_correct(ranked, data["test_labels"], places).sum()) for places in (1, 5))
    return ranked, (one, five), len(data["test"])


def _plain(name: str, k: int, device: torch.device | None) -> Iterator[Finding]:
    ranked, (one, five), n = _classified(name, k, device)
    expected = CASES[name]["expected"][str(k)]
    official, own = expected.get("official"), expected["own_float64"]
    repeated = expected.get("official_with_every_query_repeated")
    yield close("top-1, percent", OFFICIAL, 100 * one / n, (official or repeated)["top1"], 1e-9)
    if official:
        yield close("top-5, percent", OFFICIAL, 100 * five / n, official["top5"], 1e-9)
        top = own["predicted_class_first_20_queries"]
        yield exact("best class of the first 20 queries", OWN, ranked[:20, 0], top)
    yield exact("queries right at top-1", OWN, one, own["top1_correct"])
    counted = own["top5_correct_without_zero_score_classes"]
    yield exact("queries right at top-5, no class without a neighbour", OWN, five, counted)


def _ties(name: str, k: int, device: torch.device | None) -> Iterator[Finding]:
    ranked, (one, five), _ = _classified(name, k, device)
    expected = CASES[name]["expected"][str(k)]
    own = expected["own_float64_stable"]
    yield exact("queries right at top-1, ties by index", OWN, one, own["top1_correct"])
    yield exact("queries right at top-5, ties by index", OWN, five, own["top5_correct"])
    yield exact(
        "best class of the first 20 queries", OWN, ranked[:20, 0], own["predicted_class_first_20_queries"]
    )
    low, high = expected["official_over_25_train_orders"]["top1_correct"]
    admissible = expected["admissible_top1_correct"]
    span = "top-1 within what any order of equal neighbours admits"
    yield exact(span, OWN, one, np.clip(one, *admissible))
    what = "top-1 within what the official code gives over 25 orders of the bank"
    yield exact(what, OFFICIAL, one, np.clip(one, low, high))


AGREEMENT = Agreement(
    title="k-NN classification",
    module="tasks/metrics/neighbours.py",
    file="knn",
    recipes={
        "blobs_3000x64": "20 Gaussian classes of unequal size, vectors of unequal length; k of 1 to 100",
        "fewer_than_100_queries": "six classes, 37 queries: the official code stops below 100, so it was "
        "given every query three times; k of 1, 5 and 20",
        "duplicates": "unit vectors with entries of 0 and ±0.5, many of them repeated with other labels, so "
        "that similarities tie exactly; k of 1 to 100",
    },
    compare=compare,
    notes=(
        "By choice: equal similarities are ordered by their place in the bank, equal votes by class number. "
        "The official order of ties is that of an unstable sort, so with ties only ranges can be compared.",
        "By choice: a class without a neighbour is never counted for top-5. The official code may count one: "
        "of the 37 queries it calls 37 right at k = 5, of which 36 have their class among the neighbours. "
        "Where it matters, top-5 is therefore compared with an own computation in float64.",
        "By choice: any number of queries is taken, and k beyond the bank means all of the bank.",
    ),
)
