"""Audit of a folder of images by the stored vectors of backbones: what it finds, in words and as files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.folder import Folder
from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.report.found import Found, FoundPicture, FoundSection
from layerboard.tasks.audit.audit import Audit, audit, choose_space
from layerboard.tasks.audit.finding import DUPLICATE, LABEL, SERIES, Finding
from layerboard.tasks.audit.label_doubt import WRONG
from layerboard.tasks.audit.near_duplicates import SHARE, SMALL
from layerboard.tasks.audit.threshold import PRECISION, DuplicateThreshold
from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.datasets.instances import Instances
from layerboard.zoo.errors import counted

PICTURED = 60  # findings of a kind that are shown with pictures, the surest


class Kind(NamedTuple):
    """How the findings of a kind are shown."""

    title: str
    heads: Mapping[str, str]  # of the columns that are shown

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The columns that are shown and not empty, as texts under their heads."""
        filled = [column for column in self.heads if (rows[column].fillna("") != "").any()]
        return rows[filled].rename(columns=self.heads).fillna("").map(str)


KINDS = {
    DUPLICATE: Kind(
        "Duplicates",
        {"file": "image", "other": "is like", "label": "class", "other_label": "class of that"}
        | {"split": "splits", "cosine": "cosine"},
    ),
    LABEL: Kind(
        "Labels that neighbours contradict",
        {"file": "image", "label": "label", "other_label": "neighbours say", "other": "nearest of these"}
        | {"score": "probability", "vote": "votes", "agreeing": "backbones"},
    ),
    SERIES: Kind(
        "Series", {"file": "first image", "other": "last image", "label": "class", "score": "images"}
    ),
}


class Checked(NamedTuple):
    """A folder and what its audit found."""

    folder: Folder
    audit: Audit

    @property
    def frame(self) -> pd.DataFrame:
        """One row per finding, with the fields of `Finding` as columns."""
        return pd.DataFrame(self.audit.findings, columns=Finding._fields)

    @property
    def groups(self) -> str:
        """A table of labels as CSV: the class, the group and a suggested split of each image."""
        result = self.audit
        first = np.unique(result.clusters, return_index=True)[1][result.clusters]
        alone = np.bincount(result.clusters)[result.clusters] == 1
        rows = [
            (
                photo.file,
                photo.label,
                photo.group or ("" if alone[row] else result.photos[first[row]].file),
                part,
            )
            for row, (photo, part) in enumerate(zip(result.photos, result.split, strict=True))
        ]
        return csv_text(pd.DataFrame(rows, columns=["file", "label", "group", "split"], dtype=object))

    @property
    def page(self) -> Found:
        """What its page shows."""
        sections = []
        for name, kind in KINDS.items():
            findings = self.audit.of_kind(name)
            rows = [self._pictures(kind, finding) for finding in findings[:PICTURED]]
            more = len(findings) - len(rows)
            notes = (f"{more:,} more are in the table beside this page.",) if more else ()
            sections += [FoundSection(f"{kind.title}: {len(findings):,}", notes, rows)] if findings else []
        return Found(f"Duplicates in {self.folder.name.rpartition('-')[0]}", (), sections)

    def _pictures(self, kind: Kind, finding: Finding) -> list[FoundPicture]:
        """Both images of a finding: the first with its label, the second with all that is said of the two."""
        said = {column: str(value) for column, value in finding._asdict().items() if column in kind.heads}
        facts = {column: text for column, text in said.items() if text not in ("", "nan")}
        named = (f"{kind.heads[column]} {facts[column]}" for column in [*facts][2:] if column != "label")
        captions = facts.get("label", ""), ", ".join(named)
        files = finding.file, finding.other
        images = (self.folder.samples[file].open() for file in files)
        return [FoundPicture.of(*each) for each in zip(images, files, captions, strict=True)]


def audited(
    folder: Folder, layers: Mapping[str, str], report: Reporter, precision: float = PRECISION
) -> Checked:
    """Audit a folder by the vectors of its backbones.

    ``layers`` have, by backbone, the layer and pooling of images without classes, such as ``9 cls``.
    """
    things = None
    if isinstance(folder.said, Instances):
        known = {image.sample.key: image.thing or f"\0{image.sample.key}" for image in folder.said.images}
        things = [known.get(key, "") for key in folder.samples]
    photos = [photo._replace(group="") for photo in folder.photos] if things else folder.photos
    labelled = len({photo.label for photo in photos}) > 1
    grey = _greys([*folder.samples.values()], folder.name, report)
    with report.bar(f"{folder.name}  comparing {len(photos):,} images", 1, "folders"):
        spaces = [
            choose_space(
                name, (each for each in folder.layers(name) if labelled or each[0] == layers[name]), photos
            )
            for name in folder.setups
        ]
        return Checked(folder, audit(photos, grey, spaces, things, precision))


def _greys(samples: Sequence[Sample], name: str, report: Reporter) -> NDArray[np.uint8]:
    """Grey thumbnails [images 8 9]."""
    with (
        ThreadPool(os.cpu_count()) as pool,
        report.bar(f"{name}  reading", len(samples), "images") as advance,
    ):
        greys = []
        for grey in pool.imap(_grey, samples, chunksize=8):
            greys.append(grey)
            advance(1)
    return np.stack(greys)


def _grey(sample: Sample) -> NDArray[np.uint8]:
    return np.asarray(sample.open().convert("L").resize(SMALL, Image.Resampling.LANCZOS))


def notes_of(checked: Checked, groups: Path) -> Iterator[str]:
    """The findings in sentences; ``groups`` is the file of `Checked.groups`."""
    result = checked.audit
    duplicates, labels, series = (result.of_kind(kind) for kind in (DUPLICATE, LABEL, SERIES))
    accuracies = [f"{space.name} ({space.accuracy:.0f} %)" for space in result.spaces if space.accuracy >= 0]
    how = f"{', '.join(accuracies) or ', '.join(space.name for space in result.spaces)}"
    which = (
        "by each backbone at its layer of the best leave-one-out k-NN"
        if accuracies
        else "by layer and pooling"
    )
    yield f"{counted(len(result.photos), 'images')}, {which}: {how}."
    across = sum("," in finding.split for finding in duplicates)
    where = f", {across} of them across splits" if across else ""
    yield f"Duplicates: {counted(len(duplicates), 'images')} like another one{where}."
    yield from _threshold_notes(result)
    if not np.isnan(result.planted):
        yield (
            f"Labels: {len(labels)} contradicted by neighbours. If {100 * WRONG:.0f} % of all labels were "
            f"made wrong on purpose, {100 * result.planted:.0f} % of these would be listed."
        )
    if series:
        count = sum(int(finding.score) for finding in series)
        yield (
            f"Series: {count:,} images are in {len(series)} runs of similar files with consecutive names, "
            f"the longest from {series[0].file} to {series[0].other}. Images of one series are not "
            "independent, and are not listed as duplicates."
        )
    yield (
        f"{groups.name} suggests groups (run --groups) and a split (run --labels) that keep related images "
        "together. No image was changed or deleted."
    )


def _threshold_notes(found: Audit) -> Iterator[str]:
    """From which cosine on pairs are listed, and what that rests on."""
    threshold = found.threshold
    cosines = " and ".join(
        f"{_rounded_up(cosine)} ({space.name})"
        for space, cosine in zip(found.spaces, threshold.cosines, strict=True)
    )
    listed = f"Listed are pairs of a cosine of at least {cosines}, and those whose thumbnails are copies."
    if np.isnan(threshold.wanted):
        yield (
            f"{listed} No pairs are labelled, so no precision is known: it rests on a rule, a "
            f"distance of at most {SHARE:g} of the usual one between neighbours here. Look at a pair before "
            "you delete one of it. A table of some copies (--labels FILE, with the columns file and group: "
            "one group for the copies of one image) gives a threshold of the precision that you want."
        )
        return
    if not threshold.judged:
        yield f"{listed} None of these pairs is labelled, so no precision is known."
        return
    yield from _precision_notes(threshold, listed)


def _precision_notes(threshold: DuplicateThreshold, listed: str) -> Iterator[str]:
    """What the labelled pairs say of the precision, after a sentence on what is listed."""
    low, high = (100 * end for end in threshold.interval)
    wanted = 100 * threshold.wanted
    weight = f", where each wrong pair counts {threshold.times:.3g} times, since so many images are here"
    yield (
        f"{listed} Of {counted(threshold.judged, 'labelled pairs')} listed {threshold.right} are copies: "
        f"precision in this folder {100 * threshold.precision:.1f} % ({low:.0f} to {high:.0f} % with 95 %)"
        f"{f'{weight} for each labelled one' if threshold.times > 1 else ''}, if the other images are like "
        f"the labelled ones; {threshold.missed} labelled copies are not listed."
    )
    if threshold.precision < threshold.wanted:
        yield f"No threshold has the precision of {wanted:g} % on the labelled pairs; this is the strictest."
    elif low < wanted:
        takes = f"that takes {threshold.needed:,} independent pairs, all of them copies"
        yield (
            f"That is too few labelled pairs to show a precision of {wanted:g} % with 95 % confidence: "
            f"{takes if threshold.needed else 'no number of pairs shows it'}."
        )
    if threshold.share == 0 and threshold.right and not threshold.missed:
        yield (
            "All labelled copies are found by their thumbnails, so they say no cosine: to have one, label "
            "copies that are cropped or otherwise edited, too."
        )


def _rounded_up(cosine: float) -> str:
    return f"{np.ceil(1e4 * cosine) / 1e4:.4f}"
