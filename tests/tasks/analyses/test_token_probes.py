"""Probes of single tokens: raw pixels that show the class in one patch, and what is kept of grids."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.tasks.analyses.token_probes import TokenProbes, kept_cells
from layerboard.tasks.framework.base import Group, Measurements
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.zoo.spec import Layer
from tests.tasks.framework.test_sources import VIEW, classification, probed, sources

CLASSES, EACH = 4, 13
TRAIN = np.repeat(np.arange(CLASSES), EACH)
DATA = classification(TRAIN, TRAIN[:4])
WHERE = sources(DATA, np.arange(len(TRAIN)), size=8)
LABELS = TRAIN[WHERE.probe_order]
PROBED = probed(DATA, WHERE)
TASK = TokenProbes(PROBED, config_of(STANDARD, "fewshot"))
PLACE = 1, 2


def pixels(rows: int = 3, columns: int = 3, noise: float = 0.1) -> NDArray[np.float32]:
    """Grids [images rows columns 4] of probe images, in order, that show their class at one place only."""
    grids = np.random.default_rng(0).standard_normal((len(LABELS), rows, columns, 4))
    grids[:, *PLACE] = np.eye(CLASSES)[LABELS] + noise * grids[:, *PLACE]
    return grids.astype(np.float32)


def measured(
    grids: Mapping[Layer, NDArray[np.float32]], read: Sequence[int] = tuple(range(len(TRAIN)))
) -> dict[Layer, list[Measurements]]:
    """What measurers leave behind that see a group in pieces of three images, of those that can be read."""
    found: dict[Layer, list[Measurements]] = {layer: [] for layer in grids}
    start = 0
    for group in WHERE.probe.groups:
        measurer = TASK.measure(Group(group.key, group.samples), VIEW)
        places = [place for place in range(len(group.samples)) if start + place in read]
        for piece in range(0, len(places), 3):
            for layer, whole in grids.items():
                part = places[piece : piece + 3]
                measurer.update(layer, part, torch.from_numpy(whole[[start + place for place in part]]))
        for layer in grids:
            found[layer].append({name: one.numpy() for name, one in measurer.finish(layer).items()})
        start += len(group.samples)
    return found


def test_the_one_patch_that_shows_the_class_is_found() -> None:
    found = TASK.findings(measured({Layer(1): pixels(), Layer(2): pixels(noise=1.0)}))
    accuracy = found.arrays["token_accuracy"]
    assert accuracy.shape == (2, 9)
    place = PLACE[0] * 3 + PLACE[1]
    assert accuracy[0, place] == 100
    others = np.delete(accuracy[0], place)
    assert others.mean() == pytest.approx(100 / CLASSES, abs=10)  # chance
    assert others.max() < 60
    assert accuracy[1, place] < 100
    assert found.arrays["token"][0, place].tolist() == list(PLACE)
    assert found.arrays["grid"].tolist() == [[3, 3], [3, 3]]
    assert found.arrays["layer"].tolist() == ["1", "2"]
    (first, _) = found.outcomes
    assert (first.layer, first.pooling) == (Layer(1), "token")
    mean, corner = first.outcome.scores
    assert (mean.metric, corner.metric) == ("fewshot-10", "fewshot-10-first")
    assert mean.value == pytest.approx(accuracy[0].mean(), abs=1e-4)
    assert corner.value == pytest.approx(accuracy[0, 0], abs=1e-4)


def test_images_are_tested_by_probes_that_did_not_see_them() -> None:
    outcome = TASK.findings(measured({Layer(1): pixels()})).outcomes[0].outcome
    assert outcome.items is not None
    tested = [score.n for score in outcome.scores]
    assert tested == [len(outcome.items.keys)] * 2
    # 3 of 13 images a class are tested in each of three draws, at most 9 in any
    assert CLASSES * 3 < tested[0] <= CLASSES * 9
    assert all(sample in {s.key for s in WHERE.probe.samples} for sample in outcome.items.keys)


def test_an_image_that_cannot_be_read_is_left_out() -> None:
    assert measured({Layer(1): pixels()})[Layer(1)][0]["tokens"].dtype == np.float16
    whole = tuple(range(len(TRAIN)))
    lost = whole[5]
    outcome = TASK.findings(measured({Layer(1): pixels()}, [one for one in whole if one != lost])).outcomes[0]
    assert outcome.outcome.items is not None
    assert WHERE.probe.samples[lost].key not in outcome.outcome.items.keys
    assert outcome.outcome.scores


def test_too_few_images_and_features_that_are_not_finite_are_reasons() -> None:
    few = [place for place in range(len(TRAIN)) if LABELS[place] or place % 2][:40]
    found = TASK.findings(measured({Layer(1): pixels()}, few))
    assert "11 shots need 11 readable training images of every class" in found.outcomes[0].outcome.empty
    assert not found.arrays
    large = TASK.findings(measured({Layer(1): 1e6 * pixels()}))  # beyond half precision
    assert large.outcomes[0].outcome.empty == "features are not finite"


def test_grids_of_layers_may_differ() -> None:
    found = TASK.findings(measured({Layer(1): pixels(4, 4), Layer(2): pixels(2, 3)}))
    accuracy = found.arrays["token_accuracy"]
    assert np.isfinite(accuracy[0]).all()
    assert np.isfinite(accuracy[1]).tolist() == [True] * 6 + [False] * 10
    assert (found.arrays["token"][1, 6:] == -1).all()


def test_a_large_grid_is_probed_at_an_even_sub_grid() -> None:
    assert kept_cells(8, 8).tolist() == [[row, column] for row in range(8) for column in range(8)]
    cells = kept_cells(14, 14)
    assert len(cells) == 49
    assert cells[:7].tolist() == [[0, column] for column in (0, 2, 4, 6, 9, 11, 13)]
    assert cells[-1].tolist() == [13, 13]
    assert len(kept_cells(3, 40)) == 3 * 7
