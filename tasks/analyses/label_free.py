"""Criteria by which layers can be told apart without labels. None of them is an accuracy.

Sources: Roy and Vetterli, EUSIPCO 2007, and Garrido et al., ICML 2023 (effective rank); Agrawal et al.,
NeurIPS 2022 (decay of the spectrum); Kornblith et al., ICML 2019, and Nguyen et al., ICLR 2021 (CKA); Huh et
al., ICML 2024 (neighbours in common).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.analyses.base import Tally
from tasks.base import Device, Findings, LayerOutcome, Outcome, Source, digest
from tasks.checks import unusable
from tasks.cka import UNDEFINED, CkaConfig, Grams
from tasks.metrics.effective_rank import (
    FEWEST,
    effective_rank,
    other_neighbours,
    overlap,
    rankme,
    retrieved,
    singular_values,
    spectrum_decay,
)
from tasks.metrics.similarity import SMALLEST_BATCH, CkaAccumulator
from tasks.sources import ProbedImages, mirrored
from tasks.stored import StoredBackbone
from tasks.task import Task, side_by_side
from zoo.spec import Layer

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LabelFreeConfig:
    """The numbers of the label-free criteria, beside the batches of their source.

    Attributes:
        neighbours: Neighbours of each image that two views, or two layers, are compared by.
    """

    neighbours: int


CONFIGS = {"standard": LabelFreeConfig(neighbours=10)}


@dataclass(frozen=True, eq=False)
class LabelFree(Task):
    """Effective rank, likeness to the last block and agreement of two views, from stored vectors.

    The second view is the first one mirrored, left and right exchanged; it takes a forward of its own.
    Images of which one of the two could not be read are left out.
    """

    data: ProbedImages
    config: LabelFreeConfig
    configs = CONFIGS

    @cached_property
    def vector_sources(self) -> tuple[Source, ...]:
        """The images, and the same images mirrored."""
        return (self.data.probe, mirrored(self.data.probe))

    @cached_property
    def _cka(self) -> Grams:
        """How batches are cut and Gram matrices made: as of the task CKA, always plain."""
        return Grams(self.data, CkaConfig((), min_max=False))

    @cached_property
    def fingerprint(self) -> str:
        return digest("label-free", 2, self.config, self._cka.fingerprint)

    def results(self, backbone: StoredBackbone) -> Findings:
        """Outcomes of every layer and stored pooling, in that order."""
        stored, last = backbone.vectors, backbone.last
        poolings = next(iter(stored.values())).poolings()
        jobs = [(layer, pooling) for layer in backbone.layers for pooling in poolings]

        def read(layer: Layer, pooling: str) -> dict[str, Vectors]:
            return {name: each.read(layer, pooling) for name, each in stored.items()}

        def describe(job: tuple[Layer, str]) -> LayerOutcome:
            end = None if last is None else read(last, job[1])
            return LayerOutcome(*job, self.describe(read(*job), end, backbone.device))

        size = 2 * sum(each.bytes(*jobs[0]) for each in stored.values()) if jobs else 0
        return Findings(tuple(side_by_side(describe, jobs, backbone.workers, size)))

    def describe(
        self, vectors: Mapping[str, Vectors], last: Mapping[str, Vectors] | None, device: Device = None
    ) -> Outcome:
        """What is said of one layer and pooling, beside the last block if its vectors are kept.

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
        samples = zip(self.data.probe.samples, read, strict=True)
        tally, missing = Tally([sample.key for sample, ok in samples if ok]), dict[str, str]()
        _add_spectrum(tally, missing, plain, device)
        end = None if last is None else last[self.data.probe.name][read]
        if reason := "the last block is not kept" if end is None else unusable(end):
            missing.update({"cka-to-last": reason, "neighbours-to-last": reason})
            end = None
        if end is not None:
            self._add_cka(tally, missing, (plain, end), np.flatnonzero(read).tolist(), device)
        tally.images("view-top1", 100 * retrieved(plain, other, device))
        others = {"view-neighbours": other} | ({} if end is None else {"neighbours-to-last": end})
        if len(plain) < self.config.neighbours + 2:
            few = f"{self.config.neighbours} neighbours need {self.config.neighbours + 2} readable images; "
            missing.update(dict.fromkeys(others, f"{few}there are {len(plain)}"))
        else:
            near = other_neighbours(plain, self.config.neighbours, device)
            for name, vectors_of_same in others.items():
                same = other_neighbours(vectors_of_same, self.config.neighbours, device)
                tally.images(name, 100 * overlap(near, same))
        return tally.outcome(missing=missing)

    def _add_cka(
        self,
        tally: Tally,
        missing: dict[str, str],
        pair: tuple[Vectors, Vectors],
        positions: Sequence[int],
        device: Device,
    ) -> None:
        """CKA of two sets of vectors over all batches of the images at those positions."""
        sums = CkaAccumulator(errors=True)
        batches = self._cka.batches(positions)
        for rows in batches:
            both = (torch.from_numpy(each[rows]).to(device or "cpu") for each in pair)
            sums.add(torch.stack([self._cka.centred(self._cka.gram(each)) for each in both]))
        if not batches:
            missing["cka-to-last"] = f"CKA needs a batch of {SMALLEST_BATCH} readable images"
        elif not bool(sums.matrix().defined[0, 1]):
            missing["cka-to-last"] = UNDEFINED
        else:
            error = float(sums.standard_error()[0, 1])
            tally.number("cka-to-last", float(sums.matrix().value[0, 1]), error=error)


def _add_spectrum(tally: Tally, missing: dict[str, str], plain: Vectors, device: Device) -> None:
    """Effective rank and decay of the centred vectors, and RankMe."""
    exact = plain.astype(np.float64)
    centred = singular_values(exact - exact.mean(axis=0), device)
    tally.number("effective-rank", effective_rank(centred))
    tally.number("rankme", rankme(singular_values(exact, device)))
    decay = spectrum_decay(centred)
    if math.isnan(decay):
        missing["spectrum-decay"] = f"a decay needs {2 * FEWEST} directions in which the vectors differ"
    else:
        tally.number("spectrum-decay", decay)
