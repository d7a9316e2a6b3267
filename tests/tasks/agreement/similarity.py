"""CKA against the published minibatch CKA and float64 computations."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from layerboard.tasks.similarity.metric import CkaAccumulator, centred_gram, gram_matrix, normalise
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered

Estimator = Literal["unbiased", "biased"]

CASES = golden.cases("cka")
SINGLE = 2e-5
ESTIMATORS: tuple[Estimator, ...] = ("unbiased", "biased")
KINDS = ("full_unbiased", "full_biased", "batch_64_plain", "batch_64_min_max")
MODES = {"cls": slice(0, 1), "spat": slice(1, None), "all": slice(None)}


def batched(sets: Sequence[Tensor], batch: int, **options: bool) -> Tensor:
    """Minibatch CKA of several feature sets of the same samples."""
    accumulator = CkaAccumulator()
    for start in range(0, len(sets[0]), batch):
        grams = [centred_gram(values[start : start + batch], **options) for values in sets]
        accumulator.add(torch.stack(grams))
    return accumulator.matrix()


def cka(x: Tensor, y: Tensor, estimator: Estimator = "unbiased") -> float:
    """CKA of two representations of the same samples, all taken together."""
    if estimator == "unbiased":
        return float(batched([x, y], len(x))[0, 1])
    grams = torch.stack([gram_matrix(values) for values in (x, y)]).flatten(1)
    return float(normalise(grams @ grams.T)[0, 1])


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    if name == "tokens":
        return gathered(finding for mode in MODES for finding in tokens(mode))
    return gathered(_sets())


def _sets() -> Iterator[Finding]:
    for batch in CASES["sets_256_in_order"]["params"]["batches"]:
        for min_max in (False, True):
            yield from over_batches(batch, min_max)
    for estimator in ESTIMATORS:
        yield full(estimator)
    for kind in KINDS:
        yield invariances(kind)


def over_batches(batch: int, min_max: bool) -> Iterator[Finding]:
    """Three feature sets with each other, over batches, in order."""
    data, expected = _data()
    sets = [torch.from_numpy(data[name]) for name in expected["feature_sets"]]
    values = expected["batch"][str(batch)]
    found = batched([values.double() for values in sets], batch, min_max=min_max)
    kind = "min-max" if min_max else "plain"
    own = values["own_float64_min_max" if min_max else "own_float64_plain"]
    yield exact("every entry is defined", OWN, found.isfinite().numpy(), torch.ones(3, 3).bool().numpy())
    yield close(f"minibatch CKA, {kind}, float64", OWN, found, own, 1e-9)
    single = batched(sets, batch, min_max=min_max)
    yield close(f"minibatch CKA, {kind}, float32", OWN, single, own, SINGLE)
    if min_max:
        yield close("minibatch CKA, min-max", OFFICIAL, found, values["official_min_max"], SINGLE)


def full(estimator: Estimator) -> Finding:
    """Three feature sets with each other, all samples together."""
    data, expected = _data()
    sets = [torch.from_numpy(data[name]).double() for name in expected["feature_sets"]]
    found = [[cka(x, y, estimator) for y in sets] for x in sets]
    own = expected[f"own_float64_full_{estimator}"]
    return close(f"CKA of all samples, {estimator}", OWN, found, own, 1e-9)


def invariances(kind: str) -> Finding:
    """Scaled, shifted, stretched, rotated and reordered features."""
    data, expected = _data()
    a, b, c, pure = (torch.from_numpy(data[name]).double() for name in ("A", "B", "C", "B_pure"))
    others = {
        "A vs A": (a, a),
        "A vs 3 * A": (a, 3 * a),
        "A vs A + 5 in every entry": (a, a + 5),
        "A vs A with column j times (1 + j / 8)": (a, a * (1 + torch.arange(a.shape[1]) / 8)),
        "A vs B_pure (A padded, rotated, times 2; float32)": (a, pure),
        "A vs B": (a, b),
        "B vs A": (b, a),
        "A vs C": (a, c),
        "A vs C, samples of both in reverse order": (a.flip(0), c.flip(0)),
        "A vs C, samples of C in reverse order": (a, c.flip(0)),
    }
    found = [_one(x, y, kind) for x, y in others.values()]
    own = [expected["own_float64_facts"][kind][name] for name in others]
    return close("features scaled, shifted, stretched, rotated, reordered", OWN, found, own, 1e-9)


def tokens(mode: str) -> Iterator[Finding]:
    """Class token, patch tokens, or all of them."""
    case = CASES["tokens"]
    data, expected = golden.build(case), case["expected"][mode]
    x, y = (torch.from_numpy(data[name])[:, MODES[mode]].flatten(1).double() for name in ("X", "Y"))
    batch = case["params"]["batch"]
    plain, scaled = (float(batched([x, y], batch, min_max=value)[0, 1]) for value in (False, True))
    yield close("minibatch CKA, min-max", OFFICIAL, scaled, expected["official_min_max"], SINGLE)
    yield close("minibatch CKA, min-max, float64", OWN, scaled, expected["own_float64_min_max"], 1e-9)
    yield close("minibatch CKA, plain, float64", OWN, plain, expected["own_float64_plain"], 1e-9)
    for kind in ESTIMATORS:
        own = expected[f"own_float64_full_{kind}"]
        yield close(f"CKA of all samples, {kind}", OWN, cka(x, y, kind), own, 1e-9)


def _data() -> tuple[dict[str, Any], dict[str, Any]]:
    case = CASES["sets_256_in_order"]
    return golden.build(case), case["expected"]


def _one(x: Tensor, y: Tensor, kind: str) -> float:
    for estimator in ESTIMATORS:
        if kind == f"full_{estimator}":
            return cka(x, y, estimator)
    return float(batched([x, y], 64, min_max=kind.endswith("min_max"))[0, 1])


AGREEMENT = Agreement(
    title="CKA",
    module="tasks/similarity/metric.py",
    file="cka",
    recipes={
        "sets_256_in_order": "class features with very different lengths, the same turned, doubled and "
        "noisy, and unrelated ones; batches of 64 and of 8, and all samples together",
        "tokens": "tokens of two networks that share part of their signal; class token, patch tokens, all "
        "tokens; batches of 32, and all samples together",
    },
    compare=compare,
    notes=(
        "By choice: the `standard` protocol is the plain unbiased estimator over batches. The published code "
        "first scales every Gram matrix to [0, 1]; only that variant (`min_max`) has official numbers. It "
        "computes in float32, which is why 2e-5 is allowed.",
        "Plain, biased and whole-set CKA were compared with an own computation in float64, not official.",
        "By choice: a batch of fewer than four samples, where the estimator is not defined, is refused; the "
        "official code stops with an assertion. Features that do not vary have no CKA.",
    ),
)
