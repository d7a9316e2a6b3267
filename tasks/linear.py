"""Linear probe: how far a trained linear layer gets on a layer's vectors.

Source: Walmer et al., CVPR 2023, section E.4 and Table 6, which leave the recipe open; it is ours
(`tasks.protocols`), on stored vectors, so images are not augmented.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Outcome, digest
from tasks.checks import unlearnable
from tasks.labelled import LabelledTask
from tasks.metrics.few_shot import as_tensor
from tasks.metrics.softmax import SoftmaxRule, fit_softmax, held_out, standardised

CONFIGS = {
    "standard": SoftmaxRule(
        epochs=20,
        batch=1024,
        momentum=0.9,
        rates=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        held_out=100,
        least=4,
        seed=0,
    ),
}
"""By name of the protocol."""


@dataclass(frozen=True, eq=False)
class LinearTask(LabelledTask):
    """Validation images classified by soft-max regressions that saw all training images."""

    config: SoftmaxRule
    configs = CONFIGS
    all_tokens = True

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule and of all labels."""
        return digest("linear", self.config, self.images.train.labels, self.images.val.labels)

    @property
    def products(self) -> int:
        """Products of the forward and the backward pass of all epochs."""
        train = self.images.train
        return 3 * len(self.config.rates) * self.config.epochs * len(train.labels) * len(train.classes)

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        """Top-1 in percent of the vectors as they are (``top1``) and standardised (``top1-bn``)."""
        found, classes = self.labelled(vectors), len(self.images.train.classes)
        if reason := unlearnable(found.train, found.labels) or unlearnable(found.test):
            return Outcome((), empty=reason)
        held = held_out(found.labels, classes, self.config)
        labels, truth, chosen = (as_tensor(one, device) for one in (found.labels, found.truth, held))
        train, test = (as_tensor(one, device) for one in (found.train, found.test))
        correct = {}
        for metric, (shown, asked) in {
            "top1": (train, test),
            "top1-bn": standardised(train, test),
        }.items():
            probe = fit_softmax(shown, labels, chosen, classes, self.config)
            correct[metric] = probe.correct(asked, truth).astype(np.float64)
        return found.outcome(correct)
