"""LOES without labels against its formulas, written out from its source."""

import numpy as np
import pytest

from layerboard.tasks.metrics.loes import isotropy, label_free_order, redundancy


def layers(seed: int, count: int = 6, images: int = 40) -> list[np.ndarray]:
    """Layers of different widths and spectra, the second nearly a copy of the first."""
    random = np.random.default_rng(seed)
    made = [
        random.normal(size=(images, dim)) * random.uniform(0.2, 3, dim) + 1 for dim in range(5, 5 + count)
    ]
    made[1] = made[0] + 0.01 * random.normal(size=made[0].shape)
    return made


def original(vectors: list[np.ndarray], count: int) -> list[int]:
    """The selection as its source states it: the lowest 1 - isotropy + redundancy / 2 comes next."""

    def cost(index: int, chosen: list[int]) -> float:
        centred = vectors[index] - vectors[index].mean(axis=0)
        eigenvalues = np.linalg.eigvalsh(centred.T @ centred / len(centred))
        repeats = [
            np.linalg.norm(vectors[index].T @ vectors[other])
            / (np.linalg.norm(vectors[index]) * np.linalg.norm(vectors[other]))
            for other in chosen
        ]
        return 1 - eigenvalues.mean() / eigenvalues.std() + max(repeats, default=0) / 2

    chosen: list[int] = []
    for _ in range(count):
        left = [index for index in range(len(vectors)) if index not in chosen]
        chosen.append(min(left, key=lambda index: cost(index, chosen)))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_that_of_the_source(seed: int) -> None:
    vectors = layers(seed)
    assert [index for index, _ in label_free_order(vectors, 4)] == original(vectors, 4)


def test_isotropy_and_redundancy() -> None:
    ring = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert isotropy(ring) == pytest.approx(0.5 / 1e-6)  # eigenvalues do not differ
    assert isotropy(ring * [3, 1]) == pytest.approx((9 + 1) / (9 - 1), rel=1e-5)
    assert isotropy(7 * (ring * [3, 1]) + 5) == pytest.approx((9 + 1) / (9 - 1), rel=1e-5)
    one, other = np.eye(4)[:, :1], np.eye(4)[:, 1:2]
    assert redundancy(one @ one.T, one @ one.T) == pytest.approx(1)
    assert redundancy(one @ one.T, other @ other.T) == 0
    assert redundancy(0 * one @ one.T, one @ one.T) == 0


def test_fewer_layers_than_asked_for() -> None:
    assert len(label_free_order(layers(0, count=2), 5)) == 2
