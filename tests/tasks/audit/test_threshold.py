"""The threshold of duplicates, by a rule or by labelled pairs."""

from dataclasses import replace

import numpy as np
import pytest

from layerboard.tasks.audit.near_duplicates import SHARE
from layerboard.tasks.audit.threshold import CandidatePairs, DuplicateThreshold


def candidates(relative: list[float], copied: tuple[int, ...] = ()) -> CandidatePairs:
    """Pairs of images 0 and 1, 2 and 3, and so on."""
    count = len(relative)
    marks = np.isin(np.arange(count), copied)
    pairs = np.arange(2 * count).reshape(count, 2)
    return CandidatePairs(pairs, np.array(relative), 0.2 * np.array(relative), marks)


def things(words: str) -> np.ndarray:  # type: ignore[type-arg]
    """Names of both images of each pair: ``s`` the same, ``d`` different ones, ``?`` unknown."""
    names = {"s": ("{0}", "{0}"), "d": ("{0}a", "{0}b"), "?": ("", "{0}")}
    return np.array([name.format(row) for row, word in enumerate(words) for name in names[word]])


def test_without_labels_it_is_the_rule_and_promises_nothing() -> None:
    threshold = DuplicateThreshold.of([0.2, 0.1])
    assert threshold.share == SHARE
    assert threshold.cosines == pytest.approx((1 - SHARE * 0.2, 1 - SHARE * 0.1))
    assert np.isnan(threshold.wanted)
    assert DuplicateThreshold.of([0.2]).labelled(
        candidates([0.1]), things("?"), 0.9
    ) == DuplicateThreshold.of([0.2])


def test_it_is_the_loosest_with_the_wanted_precision() -> None:
    pairs, known = candidates([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), things("ssdss?")
    precise = DuplicateThreshold.of([0.2]).labelled(pairs, known, 0.95)
    assert (precise.share, precise.right, precise.judged, precise.missed) == (0.2, 2, 2, 2)
    assert precise.cosines == pytest.approx((1 - 0.2 * 0.2,))
    loose = DuplicateThreshold.of([0.2]).labelled(pairs, known, 0.75)
    assert (loose.share, loose.right, loose.judged, loose.missed) == (0.5, 4, 5, 0)
    assert pairs.listed(loose.share).tolist() == [True] * 5 + [False]


def test_pairs_whose_thumbnails_are_copies_count_at_any_threshold() -> None:
    pairs = candidates([0.9, 0.8, 0.1], copied=(0, 1))
    threshold = DuplicateThreshold.of([0.2]).labelled(pairs, things("dss"), 0.9)
    assert (threshold.share, threshold.right, threshold.judged) == (0.0, 1, 2)
    assert pairs.within(threshold.share).pairs.tolist() == [[0, 1], [2, 3]]
    assert threshold.interval[1] > 0.9  # the page says that no threshold has the precision


def test_a_tie_with_a_different_pair_is_not_cut() -> None:
    threshold = DuplicateThreshold.of([0.2]).labelled(candidates([0.2, 0.2, 0.1]), things("sds"), 0.9)
    assert (threshold.share, threshold.right, threshold.judged, threshold.missed) == (0.1, 1, 1, 1)


def test_few_pairs_show_little() -> None:
    low, high = DuplicateThreshold(0.3, (0.9,), 0.95, right=10, judged=10, independent=10).interval
    assert (round(low, 3), high) == (0.692, 1.0)
    assert DuplicateThreshold(0.3, (0.9,), 0.95).interval == (0.0, 1.0)


@pytest.mark.parametrize(("wanted", "times"), [(0.95, 1), (0.5, 1), (0.95, 20)])
def test_how_many_pairs_would_do(wanted: float, times: float) -> None:
    threshold = DuplicateThreshold(0.3, (0.9,), wanted, times=times)
    for pairs, shown in ((threshold.needed - 1, False), (threshold.needed, True)):
        every = replace(threshold, right=pairs, judged=pairs, independent=pairs)
        assert (every.interval[0] >= wanted) == shown
    assert DuplicateThreshold(0.3, (0.9,), 1.0).needed == 0


def test_a_wrong_pair_counts_as_often_as_the_folder_is_larger_than_the_table() -> None:
    words = "s" * 40 + "d"
    pairs, known = candidates([*np.linspace(0.1, 0.2, 40), 0.05]), things(words)
    whole = DuplicateThreshold.of([0.2]).labelled(pairs, known, 0.9)
    assert (whole.times, whole.right, whole.judged) == (1.0, 40, 41)
    larger = np.append(known, [""] * 9 * len(known))
    folder = DuplicateThreshold.of([0.2]).labelled(pairs, larger, 0.9)
    assert (folder.times, folder.right, folder.judged, folder.share) == (10.0, 0, 0, 0.0)
    loose = DuplicateThreshold.of([0.2]).labelled(pairs, larger, 0.8)
    assert loose.precision == pytest.approx(40 / 50)
    assert loose.interval[0] < whole.interval[0] - 0.3


def test_pairs_of_one_thing_are_no_independent_evidence() -> None:
    ends = np.array([(first, second) for first in range(6) for second in range(first)])
    same = CandidatePairs(ends, np.full(15, 0.1), np.full(15, 0.02), np.zeros(15, np.bool_))
    threshold = DuplicateThreshold.of([0.2]).labelled(same, np.full(6, "cat"), 0.9)
    assert (threshold.right, threshold.judged, threshold.independent) == (15, 15, 1.0)
    assert threshold.interval[0] == pytest.approx(0.025)
    apart = DuplicateThreshold.of([0.2]).labelled(candidates([0.1] * 15), things("s" * 15), 0.9)
    assert apart.independent == 15
    assert apart.interval[0] == pytest.approx(0.782, abs=1e-3)
