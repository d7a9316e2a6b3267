"""Files that users bring, byte by byte damaged: pickles, arrays, masks and images for their readers."""

import pickle
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
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
from tests.faults.broken_fields import problem_of
from tests.faults.counts import Count
from tests.faults.damage import flip, truncate
from workshop.render.masks import write_mask

SECONDS = 20
"""After which an answer is too late."""

Way = Callable[[Path, random.Random], None]


def scatter(path: Path, draw: random.Random) -> None:
    """Write other bytes at 1 to 64 places."""
    payload = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 64)):
        payload[draw.randrange(len(payload))] = draw.randrange(256)
    path.write_bytes(payload)


def head(path: Path, draw: random.Random) -> None:
    """Flip a bit among the first 200 bytes, which say what the rest is."""
    payload = bytearray(path.read_bytes())
    place = draw.randrange(min(200, len(payload)))
    payload[place] ^= 1 << draw.randrange(8)
    path.write_bytes(payload)


def lengthen(path: Path, draw: random.Random) -> None:
    """Put bytes in between."""
    payload = path.read_bytes()
    place = draw.randrange(len(payload))
    path.write_bytes(payload[:place] + draw.randbytes(draw.randint(1, 100)) + payload[place:])


def empty(path: Path, draw: random.Random) -> None:
    """Leave nothing."""
    del draw
    path.write_bytes(b"")


def replaced(path: Path, draw: random.Random) -> None:
    """Something else altogether."""
    path.write_bytes(draw.randbytes(path.stat().st_size))


WAYS: tuple[Way, ...] = (flip, flip, head, head, scatter, scatter, truncate, lengthen, empty, replaced)


@dataclass(frozen=True)
class Victim:
    """A file to be damaged, and what a run or ``score`` would do with it."""

    path: Path
    read: Callable[[], object]


def pickles(folder: Path) -> Iterator[Victim]:
    """The ground truth of a revisited dataset, by the oldest and the newest protocol that is about."""
    for protocol in (2, 5):
        root = folder / f"protocol-{protocol}"
        path = fakes.write_fake_revisited(root) / "gnd_roxford5k.pkl"
        path.write_bytes(pickle.dumps(pickle.loads(path.read_bytes()), protocol=protocol))
        yield Victim(path, partial(ROXFORD5K.read, root))


def arrays(folder: Path) -> Iterator[Victim]:
    """Features and labels for ``score``, packed and not, and single arrays."""
    truth = fakes.write_fake_revisited(folder) / "gnd_roxford5k.pkl"
    draw, labels = np.random.default_rng(0), np.arange(24) % 3
    values = draw.normal(size=(24, 8)).astype(np.float32) + labels[:, None]
    knn = {"train": values, "train_labels": labels, "test": values[:6], "test_labels": labels[:6]}
    for name, save in (("knn", np.savez), ("packed", np.savez_compressed)):
        path = folder / f"{name}.npz"
        save(path, **knn)  # type: ignore[operator]
        yield Victim(path, partial(score_knn, path, "standard", (3,), 0.07))
    path = folder / "assignments.npz"
    np.savez(path, clusters=labels[::-1], labels=labels.astype(str))
    yield Victim(path, partial(score_clustering, None, path, "standard", None))
    path = folder / "features.npy"
    np.save(path, values)
    yield Victim(path, partial(score_cka, [path, path], "unbiased", None))
    path = folder / "similarity.npy"
    np.save(path, draw.random((8, 2)))
    yield Victim(path, partial(score_retrieval, None, path, truth, "standard"))


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
            yield Victim(victim, partial(score_davis, root, folder / "predicted"))


def images(folder: Path) -> Iterator[Victim]:
    """Images of one's own in the formats that Pillow writes, all of a name that says nothing."""
    folder.mkdir()
    picture = fakes.fake_image(1, (40, 32), np.random.default_rng(0))[0]
    for name in formats():
        path = folder / f"{name}.jpg"
        with suppress(KeyError, OSError, ValueError):  # formats that are read alone
            picture.save(path, format=name)
            yield Victim(path, PhotoSample(name, str(path)).open)


KINDS: dict[str, Callable[[Path], Iterator[Victim]]] = {
    "pickles of ground truth": pickles,
    "arrays for score": arrays,
    "masks": masks,
    "images": images,
}
"""Files by kind."""


def break_bytes(root: Path, times: int, seed: int = 0) -> list[Count]:
    """Damage one random file of each kind so many times, and read it.

    What is wanted: the reader takes it, or says in one sentence what is wrong; soon.
    """
    draw, counts = random.Random(seed), []
    for number, (kind, write) in enumerate(KINDS.items()):
        count, victims = Count(f"damaged {kind}"), list(write(root / str(number)))
        for _ in range(times):
            victim, way = draw.choice(victims), draw.choice(WAYS)
            payload = victim.path.read_bytes()
            way(victim.path, draw)
            if victim.path.read_bytes() == payload:
                continue
            count.note(f"{way.__name__} {victim.path.relative_to(root)}", problem_in_time(victim.read))
            victim.path.write_bytes(payload)
        counts.append(count)
    return counts


class TooLateError(BaseException):
    """No answer in time; nothing that readers catch."""


def _too_late(*_: object) -> None:
    raise TooLateError


def problem_in_time(read: Callable[[], object]) -> str:
    """What is wrong with how a file is answered; "" for a sentence, or where it does no harm."""
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(SECONDS)
    try:
        return problem_of(read)
    except TooLateError:
        return f"no answer in {SECONDS} seconds"
    finally:
        signal.alarm(0)
