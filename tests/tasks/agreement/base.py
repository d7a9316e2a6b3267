"""A comparison with a reference: what was compared, with which tolerance, and the largest difference."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

OFFICIAL = "official"
OWN = "own float64"
ITSELF = "itself"


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison.

    Attributes:
        what: What was compared, in words.
        against: ``OFFICIAL`` code, an ``OWN`` computation in float64, which is not official, or ``ITSELF``.
        difference: The largest one seen; for counts and names, how many differ.
        tolerance: The test holds while the difference is at most this; 0 for exact.
    """

    what: str
    against: str
    difference: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the difference is within the tolerance; a NaN is not."""
        return bool(self.difference <= self.tolerance)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Everything about one scorer that the page tells.

    Attributes:
        title: The scorer.
        module: Where it is.
        file: The reference file with its cases.
        recipes: For each compared case, what it is, in words.
        compare: Findings of one case by its name.
        notes: What was not compared with official code, and where our rule differs by choice.
        sources: Repositories of the reference and their commits, where the cases do not name them.
    """

    title: str
    module: str
    file: str
    recipes: Mapping[str, str]
    compare: Callable[[str], list[Finding]]
    notes: tuple[str, ...]
    sources: tuple[str, ...] = ()


def exact(what: str, against: str, found: ArrayLike, expected: ArrayLike) -> Finding:
    """Counts how many of some numbers or names differ."""
    one, two = np.asarray(found), np.asarray(expected)
    different = np.count_nonzero(one != two) if one.shape == two.shape else np.inf
    return Finding(what, against, float(different), 0.0)


def close(what: str, against: str, found: ArrayLike, expected: ArrayLike, tolerance: float) -> Finding:
    """Largest absolute difference; infinite where only one of the two has a value."""
    one, two = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    if one.shape != two.shape or (np.isnan(one) != np.isnan(two)).any():
        return Finding(what, against, np.inf, tolerance)
    difference = np.abs(one - two)[~np.isnan(one)]
    return Finding(what, against, float(difference.max(initial=0.0)), tolerance)


def gathered(findings: Iterator[Finding]) -> list[Finding]:
    """One finding for each thing compared: the largest difference of several."""
    worst: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = finding.what, finding.against
        if key not in worst or not finding.difference <= worst[key].difference:
            worst[key] = finding
    return list(worst.values())
