"""Softmax regression by gradient descent: a linear probe on all labels, several learning rates at once."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import threshold

from layerboard.tasks.metrics.arrays import ROUNDING, Floats, Integers

RATED_BATCH = 256  # batch size that learning rates are stated for; they scale with the batch size
NOTHING = 1e-30
"""Probabilities below this are set to 0, since arithmetic with denormal numbers is slow on CPUs."""


@dataclass(frozen=True, slots=True)
class SoftmaxRule:
    """Settings of the linear probes on all labels."""

    epochs: int  # passes over the training images
    batch: int  # largest batch size
    momentum: float  # of stochastic gradient descent, in [0, 1)
    rates: tuple[float, ...]  # candidate learning rates for a batch of `RATED_BATCH`, trained in parallel
    held_out: int  # one in this many training images of a class is held out to choose the rate or penalty
    least: int  # least number of held-out images of a class, but no more than half of it
    seed: int  # of the held-out images and of the order of the others
    penalties: tuple[float, ...]  # candidates of the probe in closed form


@dataclass(frozen=True, slots=True)
class SoftmaxProbe:
    """A trained probe and its learning rate."""

    weights: Tensor  # [dim classes]
    bias: Tensor  # [classes]
    rate: float

    def classified(self, features: Tensor) -> tuple[Integers, Floats]:
        """Predicted class of features [m dim], ties to the lower class, and its probability: [m] each."""
        logits = torch.addmm(self.bias, features, self.weights)
        sure = logits.cpu().double().softmax(1).amax(1).nan_to_num(0.0)  # for logits that are not finite
        return logits.argmax(1).cpu().numpy(), sure.numpy()


def held_out(labels: Integers, classes: int, rule: SoftmaxRule) -> NDArray[np.bool_]:
    """Whether each training image is held out to choose the learning rate or penalty: [n].

    In each class one in ``rule.held_out`` images is held out, rounded, and at least ``rule.least``, but no
    more than half. One generator draws them in the order of the classes.
    """
    generator = np.random.default_rng(rule.seed)
    chosen = np.zeros(len(labels), np.bool_)
    for label in range(classes):
        rows = generator.permutation(np.flatnonzero(labels == label))
        chosen[rows[: min(max(rule.least, round(len(rows) / rule.held_out)), len(rows) // 2)]] = True
    return chosen


def fit_softmax(train: Tensor, labels: Tensor, held: Tensor, classes: int, rule: SoftmaxRule) -> SoftmaxProbe:
    """Probe after the last step, trained with the learning rate that is most accurate on the held-out rows.

    All rates are trained from zero weights, and ties go to the lowest rate. Rates decay to 0 by a cosine
    schedule. Each epoch takes the rows in random order, in the fewest batches of at most ``rule.batch``, of
    as equal size as possible. Features are float32 [n dim], labels [n] are 0 to classes - 1, and ``held`` [n]
    marks the held-out rows.
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
    """Features [n dim] with mean 0 and standard deviation 1 over the training rows, and others likewise.

    It is equivalent to batch normalisation without affine weights. A feature that is constant over the
    training rows becomes 0.
    """
    mean = train.double().mean(0)
    deviation = train.double().std(0, correction=0)
    still = deviation <= ROUNDING * torch.finfo(train.dtype).eps * mean.abs()
    scale = torch.where(still, 0.0, 1 / torch.where(still, 1.0, deviation)).to(train.dtype)
    middle = mean.to(train.dtype)
    return tuple((values - middle) * scale for values in (train, *others))
