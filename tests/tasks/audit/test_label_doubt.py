"""Labels that neighbours contradict, where it is known which are wrong."""

import numpy as np
import pytest
from scipy.special import softmax

from layerboard.tasks.audit import label_doubt
from layerboard.tasks.audit.label_doubt import (
    NeighbourVotes,
    found_of_planted,
    label_doubts,
    neighbour_votes,
    votes_of,
)
from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.neighbours import Neighbours, nearest

CLASSES, EACH = 4, 40


def searches(labels: Integers, *spreads: float) -> list[NeighbourVotes]:
    """A search in vectors of the true classes for each spread, none of an image for itself."""
    random = np.random.default_rng(0)
    found = []
    for spread in spreads:
        centres = random.normal(size=(CLASSES, 16))
        vectors = (centres[labels] + spread * random.normal(size=(len(labels), 16))).astype(np.float32)
        near = nearest(vectors, vectors, 40)
        found.append(neighbour_votes(near, near.index != np.arange(len(labels))[:, None], 20, 0.07))
    return found


TRUE = np.repeat(np.arange(CLASSES), EACH)


def test_wrong_labels_are_listed_first_and_no_others() -> None:
    labels = TRUE.copy()
    labels[[3, 77, 130]] = [2, 3, 0]
    doubts = label_doubts(searches(TRUE, 0.4, 0.6), labels, CLASSES)
    assert sorted(doubts.listed) == [3, 77, 130]
    assert doubts.other[[3, 77, 130]].tolist() == TRUE[[3, 77, 130]].tolist()
    assert (doubts.agreeing[[3, 77, 130]] == 2).all()
    assert (np.diff(doubts.probability[doubts.listed]) <= 0).all()


def test_labels_that_are_right_are_not_doubted() -> None:
    assert not len(label_doubts(searches(TRUE, 0.4, 0.6), TRUE, CLASSES).listed)


def test_a_search_that_tells_nothing_has_little_say() -> None:
    labels = TRUE.copy()
    labels[[3, 77, 130]] = [2, 3, 0]
    good, useless = searches(TRUE, 0.4, 100.0)
    assert sorted(label_doubts([good, useless, useless], labels, CLASSES).listed) == [3, 77, 130]


def test_the_probability_is_that_of_bayes() -> None:
    """Written out for one image: a label is noise, drawn from all classes, or else the true class."""
    (found,) = searches(TRUE, 1.0)
    doubts = label_doubts([found], TRUE, CLASSES)
    evidence = np.log(votes_of(found, TRUE, CLASSES) + label_doubt.SMOOTHING)
    (scale,) = label_doubt._weights(evidence[None], TRUE)
    odds = softmax(scale * evidence[5])
    noise = label_doubt.WRONG / CLASSES
    expected = odds[doubts.other[5]] * noise / ((1 - label_doubt.WRONG) * odds[TRUE[5]] + noise)
    assert doubts.probability[5] == pytest.approx(expected, abs=1e-12)


def test_who_may_not_vote_does_not() -> None:
    near = Neighbours(np.array([[1.0, 0.9, 0.8]], np.float32), np.array([[0, 1, 2]]))
    voting = neighbour_votes(near, np.array([[False, True, True]]), 2, 0.1)
    assert voting.index.tolist() == [[1, 2]]
    weights = np.exp([0.0, -1.0])
    assert voting.weight[0] == pytest.approx(2 * weights / weights.sum(), abs=1e-5)
    nobody = neighbour_votes(near, np.zeros((1, 3), bool), 2, 0.1)
    assert votes_of(nobody, np.zeros(3, np.int64), 2).tolist() == [[0, 0]]


def test_what_planted_labels_say_is_between_nothing_and_all() -> None:
    assert found_of_planted(searches(TRUE, 0.3), TRUE, CLASSES) > 0.9
    assert found_of_planted(searches(TRUE, 50.0), TRUE, CLASSES) < 0.2


def test_one_class_cannot_be_doubted() -> None:
    with pytest.raises(ValueError, match="at least 2 classes"):
        label_doubts(searches(TRUE, 0.3), np.zeros_like(TRUE), 1)
