"""Few-shot classification: how linearly readable a layer's classes are with a few labelled images.

Sources: Dosovitskiy et al., ICLR 2021, section 4.1; Raghu et al., NeurIPS 2021, appendices A and F.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Outcome, digest
from tasks.checks import unlearnable
from tasks.labelled import Labelled, LabelledTask
from tasks.metrics.few_shot import FewShotRule, as_tensor, draw_shots, fit_few_shot

STANDARD = FewShotRule(
    shots=(10, 1, 5, 25),
    seeds=(0, 1, 2),
    penalties=tuple(2.0**power for power in range(-6, 21, 2)),
    held_out=5,
    penalty=2.0**10,
)


CONFIGS = {
    "standard": STANDARD,
    "paper": replace(STANDARD, penalties=()),
}
"""By name of the protocol."""


@dataclass(frozen=True, eq=False)
class FewShotTask(LabelledTask):
    """Validation images classified by closed-form probes of a few training images a class."""

    config: FewShotRule
    configs = CONFIGS
    all_tokens = True

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule and of all labels."""
        return digest("fewshot", self.config, self.images.train.labels, self.images.val.labels)

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        """Top-1 in percent for each number of shots, the mean of the draws."""
        found, classes = self.labelled(vectors), len(self.images.train.classes)
        if reason := unlearnable(found.train, found.labels) or unlearnable(found.test):
            return Outcome((), empty=reason)
        fewest = int(np.bincount(found.labels, minlength=classes).min())
        correct, missing = {}, {}
        for shots in self.config.shots:
            if shots > fewest:
                missing[metric_of(shots)] = too_few(shots, fewest)
            else:
                correct[metric_of(shots)] = self._correct(found, shots, device)
        return found.outcome(correct, missing)

    def _correct(self, found: Labelled, shots: int, device: Device) -> NDArray[np.float64]:
        """For each test image the share of the draws whose probe is right."""
        test, truth = as_tensor(found.test, device), as_tensor(found.truth, device)
        classes, right = len(self.images.train.classes), []
        for seed in self.config.seeds:
            drawn = found.train[draw_shots(found.labels, classes, shots, seed)]
            right.append(fit_few_shot(as_tensor(drawn, device), self.config).correct(test, truth))
        return np.asarray(np.mean(right, axis=0), np.float64)


def metric_of(shots: int) -> str:
    """Name of the metric of so many shots."""
    return f"top1-{shots}shot"


def too_few(shots: int, fewest: int) -> str:
    """Why there is no score of so many shots."""
    return f"{shots} shots need {shots} readable training images of every class; one class has {fewest}"
