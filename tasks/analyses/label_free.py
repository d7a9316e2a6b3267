"""Criteria by which layers can be told apart without labels. None of them is an accuracy.

Sources: Roy and Vetterli, EUSIPCO 2007, and Garrido et al., ICML 2023 (effective rank); Agrawal et al.,
NeurIPS 2022 (decay of the spectrum); Kornblith et al., ICML 2019, and Nguyen et al., ICLR 2021 (CKA); Huh et
al., ICML 2024 (neighbours in common).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.base import Device, Items, Outcome, Score, Source, Statistic, digest
from tasks.checks import unusable
from tasks.cka import UNDEFINED, CkaProblem, CkaRule
from tasks.metrics.effective_rank import FEWEST, effective_rank, rankme, singular_values, spectrum_decay
from tasks.metrics.similarity import SMALLEST_BATCH, CkaAccumulator
from tasks.metrics.views import other_neighbours, overlap, retrieved
from tasks.sources import ProbeSources, mirrored

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelFreeRule:
    """The numbers of the label-free criteria, beside the batches of their source.

    Attributes:
        neighbours: Neighbours of each image that two views, or two layers, are compared by.
    """

    neighbours: int


@dataclass(frozen=True)
class LabelFree:
    """Effective rank, likeness to the last block and agreement of two views, from stored vectors.

    The second view is the first one mirrored, left and right exchanged; it takes a forward of its own.
    Images of which one of the two could not be read are left out.
    """

    where: ProbeSources
    rule: LabelFreeRule

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The images, and the same images mirrored."""
        return (self.where.probe, mirrored(self.where.probe))

    @cached_property
    def _cka(self) -> CkaProblem:
        """How batches are cut and Gram matrices made: as of the task CKA, always plain."""
        return CkaProblem(self.where, CkaRule((), min_max=False))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule and of how the images are cut into batches."""
        return digest("label-free", 2, self.rule, self._cka.fingerprint)

    def describe(
        self, vectors: Mapping[str, Vectors], last: Mapping[str, Vectors] | None, device: Device = None
    ) -> Outcome:
        """What is said of one layer and pooling.

        ``effective-rank`` of the centred vectors and ``rankme`` of the vectors as they are, 1 to
        min(images, dim); ``spectrum-decay``, by which power of the rank the eigenvalues of their covariance
        fall; ``cka-to-last``, unbiased linear CKA with the last block in the batches of the task
        CKA; ``neighbours-to-last``, percent of the nearest neighbours of an image that it has there, too;
        ``view-neighbours``, the same of both views of one layer; ``view-top1``, percent of images whose
        mirrored view is more like (cosine) their own other view than like that of any other image.

        Args:
            vectors: For each source name [images dim]; rows of images that could not be read are NaN.
            last: The same of the last block; None where its vectors are not kept.
            device: Where large products may run.
        """
        shown = ~np.any([np.isnan(one[:, 0]) for one in vectors.values()], axis=0)
        plain, other = (vectors[source.name][shown] for source in self.sources)
        if reason := unusable(plain) or unusable(other):
            return Outcome((), empty=reason)
        found = _Said([], {"view-top1": 100 * retrieved(plain, other, device)}, {})
        _add_spectrum(found, plain, device)
        end = None if last is None else last[self.where.probe.name][shown]
        if reason := "the last block is not kept" if end is None else unusable(end):
            found.missing.update({"cka-to-last": reason, "neighbours-to-last": reason})
            end = None
        self._add_neighbours(found, plain, {"view-neighbours": other, "neighbours-to-last": end}, device)
        if end is not None:
            self._add_cka(found, (plain, end), shown, device)
        return self._outcome(found, shown)

    def _add_neighbours(
        self, found: "_Said", plain: Vectors, others: Mapping[str, Vectors | None], device: Device
    ) -> None:
        """Neighbours in common with each of some other vectors of the same images."""
        k, count = self.rule.neighbours, len(plain)
        there = {name: one for name, one in others.items() if one is not None}
        if count < k + 2:
            few = f"{k} neighbours need {k + 2} readable images; there are {count}"
            found.missing.update(dict.fromkeys(there, few))
            return
        near = other_neighbours(plain, k, device)
        for name, one in there.items():
            found.values[name] = 100 * overlap(near, other_neighbours(one, k, device))

    def _add_cka(
        self, found: "_Said", pair: tuple[Vectors, Vectors], shown: NDArray[np.bool_], device: Device
    ) -> None:
        """CKA of two sets of vectors over all batches."""
        sums = CkaAccumulator(errors=True)
        batches = self._cka.batches(np.flatnonzero(shown).tolist())
        for rows in batches:
            both = (torch.from_numpy(one[rows]).to(device or "cpu") for one in pair)
            sums.add(torch.stack([self._cka.centred(self._cka.gram(one)) for one in both]))
        if not batches:
            found.missing["cka-to-last"] = f"CKA needs a batch of {SMALLEST_BATCH} readable images"
        elif not bool(sums.matrix().defined[0, 1]):
            found.missing["cka-to-last"] = UNDEFINED
        else:
            value, error = (float(one[0, 1]) for one in (sums.matrix().value, sums.standard_error()))
            found.scores.append(Score("cka-to-last", value, len(pair[0]), "images", error=error))

    def _outcome(self, found: "_Said", shown: NDArray[np.bool_]) -> Outcome:
        """All of it, with an interval over the images of what has a value for each."""
        samples = self.where.probe.samples
        keys = tuple(sample.key for sample, ok in zip(samples, shown, strict=True) if ok)
        means = (Score(name, float(one.mean()), len(one), "images") for name, one in found.values.items())
        statistics = {name: Statistic(name) for name in found.values}
        items = Items("images", keys, keys, ("",) * len(keys), found.values, statistics)
        return Outcome((*found.scores, *means), items, missing=found.missing)


@dataclass(frozen=True, slots=True)
class _Said:
    """What is said so far: scores of no items, values of items by metric, why others are missing."""

    scores: list[Score]
    values: dict[str, Floats]
    missing: dict[str, str]


def _add_spectrum(found: _Said, plain: Vectors, device: Device) -> None:
    """Effective rank and decay of the centred vectors, and RankMe."""
    exact = plain.astype(np.float64)
    centred = singular_values(exact - exact.mean(axis=0), device)
    spectrum = {"effective-rank": effective_rank(centred), "rankme": rankme(singular_values(exact, device))}
    decay = spectrum_decay(centred)
    if math.isnan(decay):
        found.missing["spectrum-decay"] = f"a decay needs {2 * FEWEST} directions in which the vectors differ"
    else:
        spectrum["spectrum-decay"] = decay
    found.scores.extend(Score(name, value, len(plain), "images") for name, value in spectrum.items())
