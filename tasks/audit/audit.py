"""Audit of a folder of images by stored vectors of several backbones: duplicates, doubtful labels, series."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from layerboard.tasks.audit import near_duplicates, series
from layerboard.tasks.audit.finding import DUPLICATE, LABEL, SERIES, Finding
from layerboard.tasks.audit.label_doubt import (
    NeighbourVotes,
    found_of_planted,
    label_doubts,
    neighbour_votes,
    votes_of,
)
from layerboard.tasks.audit.near_duplicates import usual_distance
from layerboard.tasks.audit.threshold import PRECISION, CandidatePairs, DuplicateThreshold
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.metrics.folds import group_numbers, stratified_folds
from layerboard.tasks.metrics.neighbours import Neighbours, Vectors, nearest, unit_vectors

K, TEMPERATURE = 20, 0.07  # of the vote, as in k-NN classification
SEARCHED = 64  # neighbours of each image that are searched
CHOSEN_ON = 2000  # most images, evenly spaced, on which layers are chosen
FEWEST = 3  # a label is judged if its class has at least this many images in other groups


class Photo(NamedTuple):
    """An image of the folder with its label, group and split; "" if it has none."""

    file: str
    label: str = ""
    group: str = ""
    split: str = ""


@dataclass(frozen=True)
class Space:
    """The vectors that represent a backbone: those of its best layer, if there are labels."""

    name: str  # backbone, layer and pooling
    unit: Vectors  # [images dim], of length 1
    accuracy: float  # percent of leave-one-out k-NN; NaN without labels


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit."""

    photos: Sequence[Photo]
    spaces: Sequence[Space]
    findings: Sequence[Finding]  # duplicates, labels and series, the surest of each kind first
    clusters: Integers  # [images] cluster of images that belong together: duplicates, series, groups
    threshold: DuplicateThreshold  # of duplicates
    planted: float  # share of deliberately wrong labels that are listed; NaN if no label is judged

    @cached_property
    def split(self) -> list[str]:
        """Suggested split of each image: a fifth of each class is val, and no cluster is divided."""
        labels = group_numbers(tuple(photo.label for photo in self.photos))
        held_out = stratified_folds(labels, self.clusters) == 0
        lost = np.setdiff1d(labels, labels[~held_out])  # classes that train would lack
        held_out &= ~np.isin(self.clusters, self.clusters[np.isin(labels, lost)])
        return ["val" if held else "train" for held in held_out]

    def of_kind(self, kind: str) -> list[Finding]:
        """The findings of a kind."""
        return [finding for finding in self.findings if finding.finding == kind]


def choose_space(backbone: str, candidates: Iterable[tuple[str, Vectors]], photos: Sequence[Photo]) -> Space:
    """The layer of a backbone with the best leave-one-out k-NN accuracy; ties go to the last layer.

    Raises ValueError without layers.
    """
    some = slice(None, None, -(-len(photos) // CHOSEN_ON))
    labels, groups = group_numbers(tuple(photo.label for photo in photos[some])), _groups(photos[some])
    classes = int(labels.max()) + 1
    chosen: tuple[str, Vectors, float] | None = None
    for name, vectors in candidates:
        accuracy = np.nan
        if classes > 1:
            voting = _voters(nearest(vectors[some], vectors[some], SEARCHED), groups)
            accuracy = 100 * float((votes_of(voting, labels, classes).argmax(axis=1) == labels).mean())
        if chosen is None or not accuracy < chosen[2]:
            chosen = name, vectors, accuracy
    if chosen is None:
        raise ValueError(f"expected a layer of {backbone}, found none")
    return Space(f"{backbone} {chosen[0]}", unit_vectors(chosen[1]), chosen[2])


def audit(
    photos: Sequence[Photo],
    grey: NDArray[np.uint8],
    spaces: Sequence[Space],
    things: Sequence[str] | None = None,
    precision: float = PRECISION,
) -> Audit:
    """Audit a folder, from grey thumbnails of its images, [images 8 9], and vectors.

    Images of one group are not reported as duplicates and do not vote for each other. Without groups, series
    are searched, whose images are duplicates only if their thumbnails are equal. ``things`` say which images
    are known to be copies of each other, and which not: those of one name are, "" is not known; pairs of
    these determine the threshold for the wanted precision.
    """
    every = [nearest(space.unit, space.unit, SEARCHED) for space in spaces]
    groups = _groups(photos)
    doubtful, planted = _doubtful(photos, every, groups)
    runs = [] if any(photo.group for photo in photos) else _series(photos, every)
    serial = [_finding(SERIES, photos[run[0]], photos[run[-1]], len(run)) for run in runs]
    units = groups.copy()  # groups, or series if there are no groups
    for run in runs:
        units[run] = units[run[0]]
    candidates = _candidates(grey, spaces, every, (units, groups))
    threshold = DuplicateThreshold.of([usual_distance(nearby) for nearby in every])
    if things is not None:
        threshold = threshold.labelled(candidates, np.array(things, str), precision)
    listed = candidates.within(threshold.share)
    pairs, nearness, cosine = listed.pairs, 1 - listed.relative, 1 - listed.distance
    order = np.argsort(units, kind="stable")
    chain = np.stack([order[:-1], order[1:]], axis=1)
    chain = chain[np.equal(*units[chain].T)]
    clusters = near_duplicates.clusters_of(len(photos), [pairs, chain])
    copies = _duplicates(photos, pairs, nearness, cosine)
    return Audit(photos, spaces, (*copies, *doubtful, *serial), clusters, threshold, planted)


def _groups(photos: Sequence[Photo]) -> Integers:
    """Group of each image; an image without a group is its own."""
    return group_numbers(tuple(photo.group or f"\0{photo.file}" for photo in photos))


def _voters(found: Neighbours, groups: Integers) -> NeighbourVotes:
    return neighbour_votes(found, groups[found.index] != groups[:, None], K, TEMPERATURE)


def _finding(kind: str, photo: Photo, other: Photo, score: float, **further: object) -> Finding:
    split = ", ".join(sorted({photo.split, other.split} - {""}))
    sides = (photo.file, other.file, photo.label, other.label)
    return Finding(kind, *sides, split, round(score, 4), **further)  # type: ignore[arg-type]


def _series(photos: Sequence[Photo], every: Sequence[Neighbours]) -> list[Integers]:
    """Indices of the files of each series, by the neighbours in a majority of backbones."""
    units = series.named_alike([photo.file for photo in photos], [photo.label for photo in photos])
    unit_of = np.zeros(len(photos), np.int64)
    for number, unit in enumerate(units):
        unit_of[unit] = number
    following = np.arange(len(photos))  # the next file by name
    for unit in units:
        following[unit[:-1]] = unit[1:]
    near = np.stack([series.near_next(nearby, unit_of, following) for nearby in every]).mean(axis=0) > 0.5
    return series.runs(units, [near[unit[:-1]] for unit in units])


def _candidates(
    grey: NDArray[np.uint8],
    spaces: Sequence[Space],
    every: Sequence[Neighbours],
    apart: tuple[Integers, Integers],
) -> CandidatePairs:
    """Pairs that are neighbours in some backbone, or whose thumbnails are copies.

    ``apart`` are the unit and the group of each image: images of one group are no pair, those of one unit,
    such as a series, are one only if their thumbnails are equal.
    """
    copied = near_duplicates.copied_pictures(grey)
    neighbours = [near_duplicates.near_pairs(nearby, np.inf) for nearby in every]
    pairs = near_duplicates.ordered_pairs(np.concatenate([copied, *neighbours]), len(grey))
    kept, other = (np.not_equal(*each[pairs].T) for each in apart)
    serial = np.flatnonzero(other & ~kept)
    kept[serial] = near_duplicates.equal_pictures(grey, pairs[serial])
    pairs = pairs[kept]
    usual = np.array([usual_distance(nearby) for nearby in every])[:, None]
    distances = np.stack([near_duplicates.distances(space.unit, pairs) for space in spaces])
    # if all images are alike, none is nearer than usual
    relative = np.median(np.divide(distances, usual, out=np.ones_like(distances), where=usual > 0), axis=0)
    count = len(grey)
    copies = np.isin(pairs @ [count, 1], copied @ [count, 1])
    return CandidatePairs(pairs, relative, np.median(distances, axis=0), copies)


def _duplicates(photos: Sequence[Photo], pairs: Integers, nearness: Floats, cosine: Floats) -> list[Finding]:
    """The fewest duplicate pairs that connect all duplicates, with pairs across splits or classes first."""
    facts = np.array([(photo.label, photo.split) for photo in photos])[pairs]  # [pairs sides 2]
    labels, splits = (facts[:, 0] == facts[:, 1]).T
    order = np.lexsort((-nearness, labels, splits))  # by splits, then labels
    ranks = coo_array((np.arange(1, len(pairs) + 1), pairs[order].T), shape=(len(photos), len(photos)))
    findings = []
    for rank in np.sort(minimum_spanning_tree(ranks.tocsr()).data).astype(np.int64) - 1:
        row = order[rank]
        second, first = (photos[image] for image in pairs[row])
        cosine_of = round(float(cosine[row]), 4)
        findings.append(_finding(DUPLICATE, first, second, float(nearness[row]), cosine=cosine_of))
    return findings


def _doubtful(
    photos: Sequence[Photo], every: Sequence[Neighbours], groups: Integers
) -> tuple[list[Finding], float]:
    """Labels that neighbours contradict, and the share of deliberately wrong labels that are found."""
    names = sorted({photo.label for photo in photos})
    labels = group_numbers(tuple(photo.label for photo in photos))
    pairs, sizes = np.unique(np.stack([labels, groups]), axis=1, return_inverse=True, return_counts=True)[1:]
    further = np.bincount(labels)[labels] - sizes[pairs.ravel()]
    if len(names) < 2 or not (further >= FEWEST).any():
        return [], np.nan
    searches = [_voters(nearby, groups) for nearby in every]
    doubts, findings = label_doubts(searches, labels, len(names)), []
    for row in doubts.listed:
        near = every[0].index[row]
        other = photos[next((image for image in near if labels[image] == doubts.other[row]), row)]
        findings.append(
            _finding(
                LABEL,
                photos[row],
                other._replace(label=names[doubts.other[row]]),
                float(doubts.probability[row]),
                vote=round(float(doubts.share[row]), 4),
                agreeing=f"{doubts.agreeing[row]} of {len(every)}",
            )
        )
    kept = [each for each, row in zip(findings, doubts.listed, strict=True) if further[row] >= FEWEST]
    return kept, found_of_planted(searches, labels, len(names))
