"""Pairs of near-duplicates by vectors, against a loop over all pairs and the share that they make."""

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.tasks.metrics import near_duplicates as module
from layerboard.tasks.metrics.near_duplicates import near_duplicate_pairs, share_with_near_duplicate

Layers = list[NDArray[np.float32]]


def layers_with_copies(images: int = 90, copies: int = 12) -> Layers:
    """Three layers of random vectors, in which the last images are near the first ones; lengths differ."""
    random = np.random.default_rng(images)
    layers = []
    for scale in (0.05, 0.1, 0.4):
        vectors = random.standard_normal((images, 24))
        vectors[-copies:] = vectors[:copies] + scale * random.standard_normal((copies, 24))
        layers.append((vectors * random.uniform(0.5, 9, (images, 1))).astype(np.float32))
    return layers


def looped(layers: Layers) -> dict[tuple[int, int], float]:
    """Near-duplicate pairs with their median cosine, by whole matrices of cosines in float64."""
    relative, cosines = [], []
    for vectors in layers:
        unit = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        cosines.append(unit @ unit.T)
        apart = 1 - cosines[-1] + np.diag(np.full(len(unit), np.inf))
        relative.append(apart / np.median(np.sort(apart, axis=1)[:, min(64, len(unit) // 3) - 1]))
    near, cosine = np.median(relative, axis=0) <= 0.1, np.median(cosines, axis=0)
    return {(a, b): cosine[a, b] for a, b in np.argwhere(near).tolist() if a < b}


@pytest.mark.parametrize("images", [90, 240])
def test_pairs_are_those_of_a_loop_and_make_the_share(images: int) -> None:
    layers = layers_with_copies(images)
    found, expected = near_duplicate_pairs(layers), looped(layers)
    assert (
        [*map(tuple, found.pairs.tolist())] == [*expected] == [(row, images - 12 + row) for row in range(12)]
    )
    assert found.cosine == pytest.approx([*expected.values()])
    assert share_with_near_duplicate(layers) * images == pytest.approx(24)


def test_all_images_of_a_burst_are_pairs_of_each_other() -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((80, 16)).astype(np.float32)
    vectors[[5, 20, 60]] = vectors[40]  # equal ones, too
    layers = [vectors, vectors[:, ::-1].copy()]
    found = near_duplicate_pairs(layers)
    assert found.pairs.tolist() == [[5, 20], [5, 40], [5, 60], [20, 40], [20, 60], [40, 60]]
    assert found.cosine == pytest.approx(1)
    assert share_with_near_duplicate(layers) == 4 / 80


def test_of_many_images_every_one_is_asked_in_the_unit_of_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = layers_with_copies(240)
    every = near_duplicate_pairs(layers)
    monkeypatch.setattr(module, "ASKED", 60)  # each fourth image
    found = near_duplicate_pairs(layers)
    assert found.pairs.tolist() == every.pairs.tolist()
    asked = np.intersect1d(found.pairs, np.arange(0, 240, 4))
    assert share_with_near_duplicate(layers) * 60 == pytest.approx(len(asked)) == pytest.approx(6)
    monkeypatch.setattr(module, "PAIRED", 239)  # the asked images alone, which may be near to any
    sampled = near_duplicate_pairs(layers)
    expected = [pair for pair in every.pairs.tolist() if any(image % 4 == 0 for image in pair)]
    assert sampled.pairs.tolist() == expected
    assert 0 < len(expected) < len(every.pairs)


def test_an_image_that_is_near_to_others_in_each_layer_is_in_a_pair_with_the_nearest() -> None:
    """It counts as having a near-duplicate, although no other image is near to it in most layers."""
    random = np.random.default_rng(3)
    layers = [random.standard_normal((60, 24)).astype(np.float32) for _ in range(3)]
    for number, (layer, distance) in enumerate(zip(layers, (0.02, 0.01, 0.03), strict=True)):
        layer[30 + number] = layer[0] + distance * random.standard_normal(24)
    relative = [1 - np.corrcoef(layer)[0, 30 + number] for number, layer in enumerate(layers)]
    assert max(relative) < 0.01
    found = near_duplicate_pairs(layers)
    (pair,) = found.pairs.tolist()
    assert (pair[0], pair[1] in (30, 31, 32)) == (0, True)
    assert share_with_near_duplicate(layers) == 1 / 60


@pytest.mark.parametrize(
    "layers",
    [[], [np.eye(2, dtype=np.float32)], [np.ones((40, 8), np.float32)]],
    ids=["none", "two", "alike"],
)
def test_where_nothing_is_nearer_than_usual_there_are_no_pairs(layers: Layers) -> None:
    found = near_duplicate_pairs(layers)
    assert (found.pairs.shape, found.cosine.shape) == ((0, 2), (0,))
    assert share_with_near_duplicate(layers) == 0
