"""Few-shot classification: a closed-form linear probe on a few drawn images a class.

Sources: Dosovitskiy et al., ICLR 2021, section 4.1; Raghu et al., NeurIPS 2021, appendices A and F.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.metrics.arrays import Features, Integers
from tasks.metrics.ridge import RidgeProbe


@dataclass(frozen=True, slots=True)
class FewShotRule:
    """The numbers of few-shot classification.

    Attributes:
        shots: Images a class to learn from, that of the primary score first.
        seeds: One draw of the shots for each.
        penalties: Which are tried on shots that are held out; none where `penalty` always counts.
        held_out: One in so many shots of a class is held out, where there are as many.
        penalty: Counts where nothing is held out.
    """

    shots: tuple[int, ...]
    seeds: tuple[int, ...]
    penalties: tuple[float, ...]
    held_out: int
    penalty: float


@dataclass(frozen=True, slots=True)
class FewShotFit:
    """A probe and its penalty.

    Attributes:
        probe: Fitted to all shots.
        penalty: The one that was chosen.
    """

    probe: RidgeProbe
    penalty: float

    def correct(self, features: Tensor, labels: Tensor) -> NDArray[np.bool_]:
        """Whether each of some features [m dim] is given its label: [m]."""
        right: NDArray[np.bool_] = (self.probe.predict(features, (self.penalty,))[0] == labels).cpu().numpy()
        return right


def draw_shots(labels: Integers, classes: int, shots: int, seed: int) -> Integers:
    """Indices of so many drawn images of each class: [classes shots].

    Fewer shots of the same seed are the first columns.

    Args:
        labels: [n], 0 to classes - 1.
        classes: Number of classes.
        shots: Images of each.
        seed: Of one generator, by which the images of each class are permuted in the order of the classes.

    Raises:
        ValueError: A class has fewer images.
    """
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(np.flatnonzero(labels == label))[:shots] for label in range(classes)]
    if min(map(len, drawn), default=0) < shots:
        raise ValueError(f"expected {shots} images of every class, found {min(map(len, drawn), default=0)}")
    return np.stack(drawn).astype(np.int64)


def fit_few_shot(drawn: Tensor, rule: FewShotRule) -> FewShotFit:
    """A probe of the shots of every class.

    With enough shots, those drawn last are held out in each class, one in ``rule.held_out``; the penalty is
    the one that is most often right on them, the strongest of equal ones, and the probe is fitted to all.

    Args:
        drawn: Features [classes shots dim] in the order of the draw.
        rule: Penalties.
    """
    shots = drawn.shape[1]
    held = shots // rule.held_out
    penalty = rule.penalty
    if held and rule.penalties:
        probe = _fit(drawn[:, : shots - held])
        features, labels = _flat(drawn[:, shots - held :])
        right = (probe.predict(features, rule.penalties) == labels).sum(1).tolist()
        penalty = max(zip(right, rule.penalties, strict=True))[1]
    return FewShotFit(_fit(drawn), penalty)


def _flat(drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Features of [classes shots dim] as rows, and their labels."""
    labels = torch.arange(len(drawn), device=drawn.device).repeat_interleave(drawn.shape[1])
    return drawn.flatten(0, 1), labels


def _fit(drawn: Tensor) -> RidgeProbe:
    return RidgeProbe.fit(*_flat(drawn), len(drawn))


def as_tensor(array: Features | Integers | NDArray[np.bool_], device: torch.device | None = None) -> Tensor:
    """An array as a tensor on a device; the CPU if None."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device or "cpu")
