"""Label-free criteria for layers. None of them is an accuracy.

Sources: Roy and Vetterli, EUSIPCO 2007, and Garrido et al., ICML 2023 (effective rank); Agrawal et al.,
NeurIPS 2022 (decay of the spectrum); Kornblith et al., ICML 2019, and Nguyen et al., ICLR 2021 (CKA); Huh et
al., ICML 2024 (neighbours in common).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from layerboard.tasks.analyses.base import Tally
from layerboard.tasks.analyses.metrics import effective_rank as ranks
from layerboard.tasks.framework.base import Device, Findings, LayerOutcome, Outcome, Source, digest
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.framework.sources import ProbedImages, mirrored
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import Task, map_in_parallel
from layerboard.tasks.metrics.neighbours import Vectors
from layerboard.tasks.similarity.cka import UNDEFINED, CkaConfig, Grams
from layerboard.tasks.similarity.metric import SMALLEST_BATCH, CkaAccumulator
from layerboard.zoo.spec import Layer


@dataclass(frozen=True, slots=True)
class LabelFreeConfig:
    """Settings of the label-free criteria; the batches are those of their source."""

    neighbours: int  # number of neighbours of each image in the comparison of two views or two layers


class LabelFree(Task):
    """Effective rank, similarity to the last block and agreement of two views, from stored vectors.

    The second view is the first one mirrored horizontally, with a forward pass of its own. Images with an
    unreadable view are left out.
    """

    data: ProbedImages
    config: LabelFreeConfig
    configs: ClassVar = {"standard": LabelFreeConfig(neighbours=10)}

    @cached_property
    def vector_sources(self) -> tuple[Source, ...]:
        return (self.data.probe, mirrored(self.data.probe))

    @cached_property
    def _cka(self) -> Grams:
        """Batches and Gram matrices as in the task CKA, always unscaled."""
        return Grams(self.data, CkaConfig((), min_max=False))

    @cached_property
    def fingerprint(self) -> str:
        return digest("label-free", 2, self.config, self._cka.fingerprint)

    def results(self, backbone: StoredBackbone) -> Findings:
        stored = backbone.vectors
        poolings = next(iter(stored.values())).poolings()
        jobs = [(layer, pooling) for layer in backbone.layers for pooling in poolings]

        def describe(job: tuple[Layer, str]) -> LayerOutcome:
            vectors: dict[str, Vectors] = {name: each.read(*job) for name, each in stored.items()}
            plain = stored[self.data.probe.name]
            last = None if backbone.last is None else plain.read(backbone.last, job[1])
            return LayerOutcome(*job, self.describe(vectors, last, backbone.device))

        size = 2 * sum(each.bytes(*jobs[0]) for each in stored.values()) if jobs else 0
        return Findings(tuple(map_in_parallel(describe, jobs, backbone.workers, size)))

    def describe(
        self, vectors: Mapping[str, Vectors], last: Vectors | None, device: Device = None
    ) -> Outcome:
        """Criteria of one layer and pooling, from both views, and from the last block in the first view.

        ``effective-rank`` of the centred vectors and ``rankme`` of the vectors as they are, 1 to
        min(images, dim); ``spectrum-decay``, by which power of the rank the eigenvalues of their covariance
        fall; ``cka-to-last``, unbiased linear CKA with the last block in the batches of the task
        CKA; ``neighbours-to-last``, percent of the nearest neighbours of an image that it has there, too;
        ``view-neighbours``, the same of both views of one layer; ``view-top1``, percent of images whose
        mirrored view is more like (cosine) their own other view than like that of any other image.
        """
        read = ~np.any([np.isnan(each[:, 0]) for each in vectors.values()], axis=0)
        plain, other = (vectors[source.name][read] for source in self.sources)
        if reason := unusable(plain) or unusable(other):
            return Outcome((), empty=reason)
        tally = Tally([sample.key for sample, ok in zip(self.data.probe.samples, read, strict=True) if ok])
        _add_spectrum(tally, plain, device)
        others = {"view-neighbours": other}
        end = None if last is None else last[read]
        if reason := "the vectors of the last block are not stored" if end is None else unusable(end):
            tally.missing |= {"cka-to-last": reason, "neighbours-to-last": reason}
        elif end is not None:
            self._add_cka(tally, (plain, end), np.flatnonzero(read).tolist(), device)
            others["neighbours-to-last"] = end
        tally.images("view-top1", 100 * ranks.retrieved(plain, other, device))
        k = self.config.neighbours
        if len(plain) < k + 2:
            few = f"{k} neighbours need {k + 2} readable images; there are {len(plain)}"
            tally.missing |= dict.fromkeys(others, few)
        else:
            near = ranks.other_neighbours(plain, k, device)
            for name, same in others.items():
                tally.images(name, 100 * ranks.overlap(near, ranks.other_neighbours(same, k, device)))
        return tally.outcome()

    def _add_cka(
        self, tally: Tally, pair: tuple[Vectors, Vectors], positions: Sequence[int], device: Device
    ) -> None:
        """CKA of two sets of vectors over all batches of the images at those positions."""
        sums = CkaAccumulator(errors=True)
        batches = self._cka.batches(positions)
        for rows in batches:
            both = (torch.from_numpy(each[rows]).to(device or "cpu") for each in pair)
            sums.add(torch.stack([self._cka.centred(self._cka.gram(each)) for each in both]))
        if not batches:
            tally.missing["cka-to-last"] = f"CKA needs a batch of {SMALLEST_BATCH} readable images"
        elif math.isnan(value := float(sums.matrix()[0, 1])):
            tally.missing["cka-to-last"] = UNDEFINED
        else:
            tally.number("cka-to-last", value, error=float(sums.standard_error()[0, 1]))


def _add_spectrum(tally: Tally, plain: Vectors, device: Device) -> None:
    exact = plain.astype(np.float64)
    centred = ranks.singular_values(exact - exact.mean(axis=0), device)
    tally.number("effective-rank", ranks.effective_rank(centred))
    tally.number("rankme", ranks.rankme(ranks.singular_values(exact, device)))
    if math.isnan(decay := ranks.spectrum_decay(centred)):
        needed = 2 * ranks.FEWEST
        tally.missing["spectrum-decay"] = f"vectors vary in fewer than {needed} directions"
    else:
        tally.number("spectrum-decay", decay)
