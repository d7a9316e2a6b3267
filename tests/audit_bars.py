"""How much of what is wrong with a folder an audit finds, where that is known because it was planted.

    python -m tests.audit_bars FOLDER -b mini-fs mini-clip mini-resnet

Prints Markdown: how many images of the folder as it is are listed; precision and recall of labels made wrong,
2 % of all, evenly drawn, the mean of five draws; and how many copies of each kind are found, of 40 images at
most, or of a tenth. The folder has class folders, perhaps below train and val; nothing in it is changed.
"""

import argparse
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from layerboard.benchmark.audit import audited
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.folder import Folder, own_images, read_vectors
from layerboard.benchmark.forms.request import Request
from layerboard.tasks.audit.audit import Audit, Photo
from layerboard.tasks.audit.finding import DUPLICATE, LABEL, SERIES
from layerboard.tasks.datasets.base import PhotoSample
from layerboard.tasks.datasets.copies import COPIES, CopySample

WRONG, DRAWS, COPIED = 0.02, 5, 40
QUIET = Silent(lambda count: None, lambda line: None)
SAME = "same file"
MARK = "-copy-of-"


def listed(found: Audit, kind: str) -> set[str]:
    return {finding.file for finding in found.of_kind(kind)}


def read(images: Path, backbones: Sequence[str], cache: Path) -> Folder:
    cache.mkdir(parents=True, exist_ok=True)
    request = Request(backbones, images=images, cache=cache, output=cache / "out")
    return read_vectors(own_images(request), QUIET)


def audit(folder: Folder, photos: Sequence[Photo] | None = None) -> Audit:
    """The audit of a folder, perhaps with other labels, at the last layer where there are none."""
    known = folder if photos is None else folder._replace(photos=[*photos])
    layers = {
        name: f"{setup.spec.depth} {'cls' if setup.spec.has_cls else 'mean'}"
        for name, setup in folder.setups.items()
    }
    return audited(known, layers, QUIET).audit


def wrong_labels(photos: Sequence[Photo], seed: int) -> tuple[list[Photo], set[str]]:
    """The images with some labels that are wrong, and whose."""
    random, names = np.random.default_rng(seed), sorted({photo.label for photo in photos})
    changed = list(photos)
    chosen = random.choice(len(photos), round(WRONG * len(photos)), replace=False).tolist()
    for row in chosen:
        others = [name for name in names if name != photos[row].label]
        changed[row] = photos[row]._replace(label=str(random.choice(others)))
    return changed, {photos[row].file for row in chosen}


def found_labels(folder: Folder) -> tuple[float, float]:
    """Precision and recall of wrong labels, over all draws."""
    right = given = planted = 0
    for seed in range(DRAWS):
        photos, wrong = wrong_labels(folder.photos, seed)
        doubtful = listed(audit(folder, photos), LABEL)
        right, given, planted = right + len(doubtful & wrong), given + len(doubtful), planted + len(wrong)
    return right / max(given, 1), right / planted


def with_copies(folder: Folder, images: Path, target: Path) -> Path:
    """The images and copies of some, each kind beside its original."""
    shutil.copytree(images, target)
    files = sorted(folder.samples)
    count = min(COPIED, len(files) // 10)
    for file in np.random.default_rng(0).choice(files, count, replace=False).tolist():
        original, folder_of = images / file, (target / file).parent
        shutil.copyfile(original, folder_of / f"{SAME}{MARK}{original.name}")
        for kind in COPIES:
            copy = CopySample(PhotoSample(file, str(original)), kind).open()
            copy.save(folder_of / f"{kind}{MARK}{original.stem}.png")
    return target


def found_copies(folder: Folder) -> Iterator[tuple[str, float]]:
    """Copies of each kind that are in one cluster with their original, and what else is listed, as shares."""
    found = audit(folder)
    cluster = {photo.file: number for photo, number in zip(found.photos, found.clusters, strict=True)}
    stems = {str(Path(file).with_suffix("")): file for file in cluster if MARK not in file}
    for kind in (SAME, *COPIES):
        hits = []
        for file in (Path(file) for file in cluster if Path(file).name.startswith(f"{kind}{MARK}")):
            original = stems[str(file.parent / file.stem.partition(MARK)[2])]
            hits.append(cluster[str(file)] == cluster[original])
        yield kind, float(np.mean(hits))


def measure(images: Path, backbones: Sequence[str], cache: Path) -> str:
    """The tables of a folder."""
    folder = read(images, backbones, cache)
    clean, count = audit(folder), len(folder.photos)
    spaces = ", ".join(f"{space.name} ({space.accuracy:.0f} %)" for space in clean.spaces)
    lines = [f"{images.name}: {count} images; {spaces}", ""]
    lines += [f"- {kind} listed as it is: {len(listed(clean, kind))}" for kind in (DUPLICATE, LABEL, SERIES)]
    precision, recall = found_labels(folder)
    lines += [f"- wrong labels: precision {precision:.2f}, recall {recall:.2f}"]
    with TemporaryDirectory() as place:
        copied = read(with_copies(folder, images, Path(place) / images.name), backbones, cache)
        lines += [f"- copies found, {kind}: {100 * share:.0f} %" for kind, share in found_copies(copied)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("-b", "--backbones", nargs="+", default=["mini-fs", "mini-clip", "mini-resnet"])
    parser.add_argument("--cache", type=Path, default=Path("build/audit-cache"))
    given = parser.parse_args()
    print(measure(given.images, given.backbones, given.cache))


if __name__ == "__main__":
    main()
