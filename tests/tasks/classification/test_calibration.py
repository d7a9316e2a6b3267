import numpy as np
import pytest

from layerboard.tasks.classification import calibration
from layerboard.tasks.classification.calibration import calibration_gaps, expected_calibration_error

GENERATOR = np.random.default_rng(2)


def test_it_equals_the_obvious_sum_over_bins() -> None:
    confidence = GENERATOR.random(200)
    correct = GENERATOR.random(200) < confidence**2
    order = np.argsort(confidence)
    parts = np.array_split(order, 15)
    expected = sum(len(p) * abs(correct[p].mean() - confidence[p].mean()) for p in parts) / 200
    assert expected_calibration_error(confidence, correct) == pytest.approx(expected, abs=1e-12)


def test_a_classifier_that_is_sure_and_wrong_has_an_error_of_one() -> None:
    assert expected_calibration_error(np.ones(30), np.zeros(30, bool)) == 1
    assert expected_calibration_error(np.ones(30), np.ones(30, bool)) == 0
    assert expected_calibration_error(np.full(40, 0.25), np.arange(40) % 4 == 0) < 1e-12
    assert expected_calibration_error(np.array([0.5]), np.array([True])) == 0.5


def test_the_order_of_equal_confidences_does_not_matter() -> None:
    confidence = np.repeat([0.3, 0.6, 0.9], 20)
    correct = GENERATOR.random(60) < 0.5
    shuffled = np.concatenate([GENERATOR.permutation(part) for part in np.split(correct, 3)])
    errors = [expected_calibration_error(confidence, each) for each in (correct, shuffled)]
    assert errors[0] == pytest.approx(errors[1], abs=1e-12)


@pytest.mark.parametrize("places", [1, 3, 16])
def test_what_items_add_has_the_error_as_its_mean(places: int) -> None:
    confidence = GENERATOR.random(200).round(places)
    correct = GENERATOR.random(200) < confidence**2
    added = calibration_gaps(confidence, correct)
    assert added.mean() == pytest.approx(expected_calibration_error(confidence, correct), abs=1e-12)
    assert abs(added).max() <= 1


def test_what_an_item_adds_is_how_the_error_rises_with_its_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of items whose bins are of one confidence, each so often, and one of them once more."""
    monkeypatch.setattr(calibration, "BINS", 5)
    confidence = np.repeat(np.linspace(0.1, 0.9, 5), 8)
    correct = GENERATOR.random(40) < 0.5
    added, errors, times = calibration_gaps(confidence, correct), [], 300
    for more in ([], [3], [35]):
        rows = np.append(np.repeat(np.arange(40), times), np.array(more, int))
        gaps = (correct - confidence)[rows]
        errors.append(sum(abs(gaps[confidence[rows] == level].sum()) for level in {*confidence}) / len(rows))
    for error, item in zip(errors[1:], (3, 35), strict=True):
        assert (error - errors[0]) * times == pytest.approx((added[item] - errors[0]) / 40, abs=1e-3)
