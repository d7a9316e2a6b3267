"""Soft-max regression by gradient descent: a linear probe on all labels, several learning rates at once."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import threshold

from layerboard.tasks.metrics.arrays import ROUNDING, Floats, Integers

RATED_BATCH = 256  # images of a batch that learning rates are stated for; they grow with the batch
NOTHING = 1e-30
"""Probabilities below it count as 0: products of numbers near the smallest ones are slow on processors."""


@dataclass(frozen=True, slots=True)
class SoftmaxRule:
    """The numbers of a linear probe that is trained."""

    epochs: int  # how often each image is seen
    batch: int  # images of a batch at most
    momentum: float  # of stochastic gradient descent, in [0, 1)
    rates: tuple[float, ...]  # learning rates for a batch of `RATED_BATCH`, which are tried at once
    held_out: int  # one in so many training images of a class chooses the rate
    least: int  # so many of a class at least, but no more than half of it
    seed: int  # of the held-out images, and of the order of the others


@dataclass(frozen=True, slots=True)
class SoftmaxProbe:
    """A trained probe, with the learning rate that was chosen."""

    weights: Tensor  # [dim classes]
    bias: Tensor  # [classes]
    rate: float

    def classified(self, features: Tensor) -> tuple[Integers, Floats]:
        """The class of features [m dim], of equal scores the lower, and its probability: [m] each."""
        logits = torch.addmm(self.bias, features, self.weights)
        sure = logits.cpu().double().softmax(1).amax(1).nan_to_num(0.0)  # of logits that are not finite
        return logits.argmax(1).cpu().numpy(), sure.numpy()


def held_out(labels: Integers, classes: int, rule: SoftmaxRule) -> NDArray[np.bool_]:
    """Which training images choose the learning rate: [n].

    Of each class one in ``rule.held_out`` images, rounded, and at least ``rule.least``, but no more than
    half; which ones is drawn by one generator in the order of the classes.
    """
    generator = np.random.default_rng(rule.seed)
    chosen = np.zeros(len(labels), np.bool_)
    for label in range(classes):
        rows = generator.permutation(np.flatnonzero(labels == label))
        chosen[rows[: min(max(rule.least, round(len(rows) / rule.held_out)), len(rows) // 2)]] = True
    return chosen


def fit_softmax(train: Tensor, labels: Tensor, held: Tensor, classes: int, rule: SoftmaxRule) -> SoftmaxProbe:
    """Train from weights of zero with every learning rate; the one that is best on the held-out rows.

    Rates fall to 0 as half a cosine. Each epoch shows the rows in a drawn order, in the fewest batches that
    are small enough, as equal as they can be. The probe is that of the last step, of equal rates the lowest.
    Features are float32 [n dim], labels [n] 0 to classes - 1, and ``held`` [n] says which rows choose the
    rate and are not trained on.
    """
    chosen, kept = torch.nonzero(held).flatten(), torch.nonzero(~held).flatten()
    weights, bias = _train(train, labels, kept, classes, rule)
    logits = torch.addmm(bias, train[chosen], weights).view(-1, len(rule.rates), classes)
    right = (logits.argmax(2) == labels[chosen, None]) & logits.isfinite().all(2)
    best = right.sum(0).tolist()
    best_index = best.index(max(best))
    part = slice(best_index * classes, (best_index + 1) * classes)
    return SoftmaxProbe(weights[:, part].clone(), bias[part].clone(), rule.rates[best_index])


def _train(
    train: Tensor, labels: Tensor, kept: Tensor, classes: int, rule: SoftmaxRule
) -> tuple[Tensor, Tensor]:
    """Weights [dim rates * classes] and bias [rates * classes] after the last step."""
    device, tried = train.device, len(rule.rates)
    steps = -(-len(kept) // rule.batch)
    total = rule.epochs * steps
    rates = torch.tensor(rule.rates, device=device).repeat_interleave(classes)
    rates *= len(kept) / steps / RATED_BATCH
    weights = torch.zeros(train.shape[1], tried * classes, device=device)
    bias = torch.zeros(tried * classes, device=device)
    moved, moved_bias = torch.zeros_like(weights), torch.zeros_like(bias)
    generator = np.random.default_rng(rule.seed)
    for epoch in range(rule.epochs):
        order = kept[torch.from_numpy(generator.permutation(len(kept))).to(device)]
        for step, rows in enumerate(order.tensor_split(steps), start=epoch * steps):
            shown = train[rows]
            wrong = torch.addmm(bias, shown, weights).view(-1, tried, classes).softmax(2)
            wrong = threshold(wrong, NOTHING, 0.0)
            wrong[torch.arange(len(rows), device=device), :, labels[rows]] -= 1
            wrong = wrong.flatten(1) / len(rows)
            moved.mul_(rule.momentum).addmm_(shown.T, wrong)
            moved_bias.mul_(rule.momentum).add_(wrong.sum(0))
            share = -0.5 * (1 + math.cos(math.pi * step / total))
            weights.addcmul_(moved, rates, value=share)
            bias.addcmul_(moved_bias, rates, value=share)
    return weights, bias


def standardised(train: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Features [n dim] with mean 0 and deviation 1 over the training rows, and others in the same way.

    It is what a batch norm without weights comes to. A feature that does not vary over the training rows
    becomes 0.
    """
    mean = train.double().mean(0)
    deviation = train.double().std(0, correction=0)
    still = deviation <= ROUNDING * torch.finfo(train.dtype).eps * mean.abs()
    scale = torch.where(still, 0.0, 1 / torch.where(still, 1.0, deviation)).to(train.dtype)
    middle = mean.to(train.dtype)
    return tuple((values - middle) * scale for values in (train, *others))
