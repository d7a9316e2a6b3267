"""Files that users bring, byte by byte damaged: pickles, arrays, masks and images for their readers."""

import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from layerboard.benchmark.exported.cka import score_cka
from layerboard.benchmark.exported.davis import score_davis
from layerboard.benchmark.exported.vectors import score_clustering, score_knn, score_retrieval
from layerboard.tasks.datasets.base import PhotoSample
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.datasets.revisitop import ROXFORD5K
from layerboard.tasks.metrics.arrays import VOID
from layerboard.zoo.view.photos import formats
from tests import fakes
from tests.faults.trials import Effort, Trial, problem_of
from workshop.render.masks import write_mask

Way = Callable[[bytes, random.Random], bytes]
"""Makes other content of the content of a file."""

Victim = tuple[Path, Callable[[], object]]
"""A file to be damaged, and what a run or ``score`` would do with it."""


def _flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def flip(content: bytes, draw: random.Random) -> bytes:
    """Turn one bit over."""
    return _flipped(content, draw.randrange(8 * len(content)))


def head(content: bytes, draw: random.Random) -> bytes:
    """Turn over a bit of the first 200 bytes, which say what the rest is."""
    return _flipped(content, draw.randrange(8 * min(200, len(content))))


def scatter(content: bytes, draw: random.Random) -> bytes:
    """Write other bytes at 1 to 64 places."""
    changed = bytearray(content)
    for place in draw.choices(range(len(content)), k=draw.randint(1, 64)):
        changed[place] = draw.randrange(256)
    return bytes(changed)


def truncate(content: bytes, draw: random.Random) -> bytes:
    """Cut the end off."""
    return content[: draw.randrange(len(content))]


def lengthen(content: bytes, draw: random.Random) -> bytes:
    """Put bytes in between."""
    place = draw.randrange(len(content))
    return content[:place] + draw.randbytes(draw.randint(1, 100)) + content[place:]


def empty(content: bytes, draw: random.Random) -> bytes:
    """Leave nothing."""
    del content, draw
    return b""


def replaced(content: bytes, draw: random.Random) -> bytes:
    """Something else altogether."""
    return draw.randbytes(len(content))


WAYS: tuple[Way, ...] = (flip, flip, head, head, scatter, scatter, truncate, lengthen, empty, replaced)


def pickles(folder: Path) -> Iterator[Victim]:
    """The ground truth of a revisited dataset, by the oldest and the newest protocol that is about."""
    for protocol in (2, 5):
        root = folder / f"protocol-{protocol}"
        path = fakes.write_fake_revisited(root) / "gnd_roxford5k.pkl"
        path.write_bytes(pickle.dumps(pickle.loads(path.read_bytes()), protocol=protocol))
        yield path, partial(ROXFORD5K.read, root)


def arrays(folder: Path) -> Iterator[Victim]:
    """Features and labels for ``score``, packed and not, and single arrays."""
    truth = fakes.write_fake_revisited(folder) / "gnd_roxford5k.pkl"
    draw, labels = np.random.default_rng(0), np.arange(24) % 3
    values = draw.normal(size=(24, 8)).astype(np.float32) + labels[:, None]
    knn = {"train": values, "train_labels": labels, "test": values[:6], "test_labels": labels[:6]}
    for name, save in (("knn", np.savez), ("packed", np.savez_compressed)):
        path = folder / f"{name}.npz"
        save(path, **knn)  # type: ignore[operator]
        yield path, partial(score_knn, path, "standard", (3,), 0.07)
    path = folder / "assignments.npz"
    np.savez(path, clusters=labels[::-1], labels=labels.astype(str))
    yield path, partial(score_clustering, None, path, "standard", None)
    path = folder / "features.npy"
    np.save(path, values)
    yield path, partial(score_cka, [path, path], "unbiased", None)
    path = folder / "similarity.npy"
    np.save(path, draw.random((8, 2)))
    yield path, partial(score_retrieval, None, path, truth, "standard")


def masks(folder: Path) -> Iterator[Victim]:
    """Annotations and predictions of DAVIS."""
    root = fakes.write_fake_davis(folder)
    annotations = root / "Annotations" / "480p"
    for path in sorted(annotations.rglob("*.png")):
        mask = read_mask(path)
        target = folder / "predicted" / path.relative_to(annotations)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_mask(target, np.where(mask == VOID, 0, mask).astype(np.uint8))
        for victim in (path, target):
            yield victim, partial(score_davis, root, folder / "predicted")


def images(folder: Path) -> Iterator[Victim]:
    """Images of one's own in the formats that Pillow writes, all of a name that says nothing."""
    folder.mkdir()
    picture = fakes.fake_image(1, (40, 32), np.random.default_rng(0))[0]
    for name in formats():
        path = folder / f"{name}.jpg"
        with suppress(KeyError, OSError, ValueError):  # formats that are read alone
            picture.save(path, format=name)
            yield path, PhotoSample(name, str(path)).open


KINDS: dict[str, Callable[[Path], Iterator[Victim]]] = {
    "pickles of ground truth": pickles,
    "arrays for score": arrays,
    "masks": masks,
    "images": images,
}
"""Files by kind."""


def break_bytes(root: Path, effort: Effort) -> Iterator[Trial]:
    """Damage a random file of each kind, and read it.

    What is wanted: the reader takes it, or says in one sentence what is wrong; soon.
    """
    draw = effort.draw()
    for number, (kind, write) in enumerate(KINDS.items()):
        victims = list(write(root / str(number)))
        for _ in range(effort.times):
            (path, read), way = draw.choice(victims), draw.choice(WAYS)
            content = path.read_bytes()
            path.write_bytes(way(content, draw))
            yield Trial(f"damaged {kind}", f"{way.__name__} {path.relative_to(root)}", problem_of(read))
            path.write_bytes(content)
