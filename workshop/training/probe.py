"""Quality of features during training: k-NN and a linear probe on held-out labelled images."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from layerboard.tasks.metrics.neighbours import nearest, vote
from layerboard.zoo.errors import InputError
from workshop.training.augment import TrainingView, augment
from workshop.training.data import Pictures, seeded
from workshop.training.network import pooled_vectors
from workshop.training.objective import Objective

BATCH = 128
NEIGHBOURS = 20  # of each image, fewer where there are not so many
TEMPERATURE = 0.07  # of their votes, exp(cosine / temperature)
RIDGE = 0.1  # weight of the penalty on the linear probe, for standardised features, a sample

Features = NDArray[np.float32]


def make_probe(train: Pictures, test: Pictures, side: int) -> Callable[[Objective], dict[str, float]]:
    """A probe of an objective's backbone: accuracies from 0 to 1 by classifier and pooling.

    The network sees the images whole, at a side in pixels. Raises InputError: the test images have a class
    that the training images, whose labels the classifiers know, have not.
    """
    unknown = sorted(set(test.labels.tolist()) - set(train.labels.tolist()))
    if unknown:
        raise InputError(f"the probe's test images have classes without a training image: {unknown}")

    def probe(objective: Objective) -> dict[str, float]:
        known, asked = (vectors_by_pooling(objective, pictures, side) for pictures in (train, test))
        scores: dict[str, float] = {}
        for pooling, bank in known.items():
            for name, classify in (("knn", nearest_classes), ("ridge", ridge_classes)):
                guessed = classify(bank, train.labels, asked[pooling])
                scores[f"{name}_{pooling}"] = float((guessed == test.labels).mean())
        return scores

    return probe


def vectors_by_pooling(objective: Objective, pictures: Pictures, side: int) -> dict[str, Features]:
    """Vectors of all images by pooling, [images width], from the network in evaluation mode."""
    was_training = objective.training
    objective.eval()
    generator = seeded("probe", device=objective.mean.device)
    by_pooling: dict[str, list[Features]] = {}
    for indices in np.split(np.arange(len(pictures)), range(BATCH, len(pictures), BATCH)):
        pixels = pictures.take(indices).images.to(objective.mean.device)
        images = objective.normalised(augment(pixels, TrainingView(side=side), generator))
        with torch.no_grad():
            for pooling, vector in pooled_vectors(objective.backbone, images).items():
                by_pooling.setdefault(pooling, []).append(vector.float().cpu().numpy())
    objective.train(was_training)
    return {pooling: np.concatenate(parts) for pooling, parts in by_pooling.items()}


def nearest_classes(bank: Features, labels: NDArray[np.int64], asked: Features) -> NDArray[np.int64]:
    """Classes by the weighted vote of the nearest neighbours, [asked]."""
    neighbours = nearest(bank, asked, NEIGHBOURS)
    return vote(neighbours, labels, NEIGHBOURS, int(labels.max()) + 1, TEMPERATURE)[:, 0]


def ridge_classes(bank: Features, labels: NDArray[np.int64], asked: Features) -> NDArray[np.int64]:
    """Classes by ridge regression on standardised features, [asked]."""
    classifier = make_pipeline(StandardScaler(), RidgeClassifier(alpha=RIDGE * len(bank)))
    return np.asarray(classifier.fit(bank, labels).predict(asked))
