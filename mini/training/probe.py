"""What features are worth while a network trains: k-NN and a linear probe on held-out labelled images."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mini.training.augment import TrainingView, augment
from mini.training.data import Pictures, seeded
from mini.training.network import vectors
from mini.training.objective import Objective
from zoo.errors import InputError

_BATCH = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """Numbers of the probe."""

    neighbours: int = 20  # of each image, fewer where there are not so many
    temperature: float = 0.07  # of their votes, exp(cosine / temperature)
    ridge: float = 0.1  # weight of the penalty on the linear probe, for standardised features, a sample


def make_probe(
    train: Pictures, test: Pictures, side: int, how: Probing | None = None
) -> Callable[[Objective], dict[str, float]]:
    """A probe of an objective's backbone: accuracies from 0 to 1 by classifier and pooling.

    Args:
        train: Images whose labels the classifiers know.
        test: Images on which they are scored, of the same classes.
        side: Side in pixels at which the network sees them, whole.
        how: Numbers; the usual ones if None.

    Raises:
        InputError: The test images have a class that the others have not.
    """
    rule = how or Probing()
    unknown = sorted(set(test.labels.tolist()) - set(train.labels.tolist()))
    if unknown:
        raise InputError(f"the probe's test images have classes without a training image: {unknown}")

    def probe(objective: Objective) -> dict[str, float]:
        known, asked = (features(objective, pictures, side) for pictures in (train, test))
        labels, truth = (torch.from_numpy(p.labels).to(objective.mean.device) for p in (train, test))
        scores: dict[str, float] = {}
        for pooling, bank in known.items():
            guesses = {
                "knn": nearest_classes(bank, labels, asked[pooling], rule),
                "ridge": ridge_classes(bank, labels, asked[pooling], rule),
            }
            for classifier, guessed in guesses.items():
                scores[f"{classifier}_{pooling}"] = float((guessed == truth).float().mean())
        return scores

    return probe


def features(objective: Objective, pictures: Pictures, side: int) -> dict[str, Tensor]:
    """Vectors of all images by pooling, float32 [images width], from the network in evaluation mode."""
    was_training = objective.training
    objective.eval()
    generator = seeded("probe", device=objective.mean.device)
    vectors_by_pooling: dict[str, list[Tensor]] = {}
    for start in range(0, len(pictures), _BATCH):
        indices = np.arange(start, min(start + _BATCH, len(pictures)))
        pixels = pictures.take(indices).images.to(objective.mean.device)
        images = objective.normalised(augment(pixels, TrainingView(side=side), generator))
        with torch.no_grad():
            for pooling, vector in vectors(objective.backbone, images).items():
                vectors_by_pooling.setdefault(pooling, []).append(vector.float())
    objective.train(was_training)
    return {pooling: torch.cat(parts) for pooling, parts in vectors_by_pooling.items()}


def nearest_classes(bank: Tensor, labels: Tensor, asked: Tensor, how: Probing) -> Tensor:
    """Classes by the weighted vote of the nearest neighbours, int64 [asked]."""
    bank, asked = (nn.functional.normalize(points, dim=1) for points in (bank, asked))
    cosines, nearest = (asked @ bank.T).topk(min(how.neighbours, len(bank)), dim=1)
    votes = torch.zeros(len(asked), int(labels.max()) + 1, device=bank.device)
    votes.scatter_add_(1, labels[nearest], (cosines / how.temperature).exp())
    return votes.argmax(1)


def ridge_classes(bank: Tensor, labels: Tensor, asked: Tensor, how: Probing) -> Tensor:
    """Classes by ridge regression of one-hot labels on standardised features, int64 [asked]."""
    deviation, mean = torch.std_mean(bank, dim=0)
    bank, asked = ((points - mean) / deviation.clamp(min=1e-6) for points in (bank, asked))
    wanted = nn.functional.one_hot(labels).float()
    level = wanted.mean(0)
    penalty = how.ridge * len(bank) * torch.eye(bank.shape[1], device=bank.device)
    weights = torch.linalg.solve(bank.T @ bank + penalty, bank.T @ (wanted - level))
    return torch.as_tensor((asked @ weights + level).argmax(1))
