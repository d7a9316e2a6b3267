"""Training images: what fits together, which images a step takes, and shares of a dataset."""

import numpy as np
import pytest
import torch

from layerboard.zoo.errors import InputError
from tests.workshop.training.toys import SHAPES, shapes
from workshop.training.data import Pictures, TrainingBatches, require_batch, seeded, step_indices


def test_a_batch_holds_what_was_asked_for() -> None:
    data = shapes(60)
    batch = TrainingBatches(data, torch.device("cpu")).of(np.array([7, 3]))
    assert torch.equal(batch.images[1], torch.from_numpy(data.images[3]))
    assert batch.labels.tolist() == [1, 3]
    assert batch.captions == (data.captions[7], data.captions[3])


@pytest.mark.parametrize(
    ("images", "labels", "captions", "text"),
    [
        (np.zeros((2, 8, 8, 3), np.uint8), [0, 1], 2, r"uint8 \[images 3 height width\]; found uint8 \[2, 8"),
        (np.zeros((2, 3, 8, 8), np.float32), [0, 1], 2, "found float32"),
        (np.zeros((2, 3, 8, 8), np.uint8), [0], 2, "found 2 images, 1 labels and 2 captions"),
        (np.zeros((0, 3, 8, 8), np.uint8), [], 0, "found 0 images"),
        (np.zeros((2, 3, 8, 8), np.uint8), [0, -1], 2, "labels count from 0; found -1"),
    ],
)
def test_what_does_not_fit_together(images: np.ndarray, labels: list[int], captions: int, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Pictures(images, np.array(labels, np.int64), ("a caption",) * captions)


def test_every_epoch_is_another_permutation() -> None:
    steps = [step_indices(step, 10, 3, seed=0) for step in range(6)]
    epochs = np.concatenate(steps[:3]), np.concatenate(steps[3:])
    assert all(len(set(epoch.tolist())) == 9 for epoch in epochs)
    assert not np.array_equal(*epochs)
    assert np.array_equal(step_indices(1, 10, 3, seed=0), steps[1])
    assert not np.array_equal(step_indices(1, 10, 3, seed=1), steps[1])


@pytest.mark.parametrize("batch_size", [0, 11])
def test_a_batch_must_fit(batch_size: int) -> None:
    with pytest.raises(InputError, match=f"a batch of {batch_size} cannot be drawn from 10 training images"):
        require_batch(batch_size, 10)


def test_a_share_has_every_class() -> None:
    data = shapes(120)
    part = data.part(0.1, seed=0)
    assert np.bincount(part.labels).tolist() == [2] * len(SHAPES)
    assert np.array_equal(part.images, data.part(0.1, seed=0).images)
    assert not np.array_equal(part.images, data.part(0.1, seed=1).images)
    assert len(data.part(0.001, seed=0)) == len(SHAPES)
    assert data.part(1, seed=0) is data


@pytest.mark.parametrize("share", [0, -1, 1.5])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(InputError, match="must be above 0 and at most 1"):
        shapes(12).part(share, seed=0)


def test_draws_follow_from_the_words() -> None:
    draws = [torch.rand(2, generator=seeded(*words)) for words in (("a", 1), ("a", 1), ("a", 2), ("b", 1))]
    assert torch.equal(draws[0], draws[1])
    assert len({tuple(draw.tolist()) for draw in draws}) == 3
