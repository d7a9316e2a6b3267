"""Training images from the renderer, rendered once into the cache by several processes."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.benchmark.engines.base import LocalEngine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.engines.progress import Message, Reporter
from layerboard.zoo.atomic import whole_file, write_whole
from layerboard.zoo.errors import InputError
from workshop.list_queue import results_in_order
from workshop.render.facts import MINI_VERSION
from workshop.render.sample import sample_image
from workshop.render.templates import TEMPLATES
from workshop.training.data import Pictures

FORMAT = 2  # version of the files: raise it when they change
CHUNK = 250  # images rendered as one piece; an interrupted rendering loses at most one piece per process
SEEDS = 2**32  # images reserved for each seed
LARGEST = 2048  # maximum side in pixels of rendered pictures
HELD_OUT = 2**31  # number of the first image of a seed that is never used for training


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested images: numbers of a seed, whose images are its own; raises InputError if impossible."""

    seed: int
    first: int
    count: int
    side: int  # in pixels

    def __post_init__(self) -> None:
        if not (0 <= self.seed < SEEDS and 0 < self.count <= HELD_OUT and 16 <= self.side <= LARGEST):
            raise InputError(
                f"expected a seed from 0 to {SEEDS - 1}, 1 to {HELD_OUT} images and at least 16 pixels a "
                f"side, at most {LARGEST}; found seed {self.seed}, {self.count} images and {self.side} pixels"
            )

    @property
    def fingerprint(self) -> str:
        """Digest of everything that determines the files."""
        facts = (FORMAT, MINI_VERSION, self.seed, self.first, self.count, self.side)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


Chunk = tuple[Path, range]  # its file, and the places of its images among the requested ones


def rendered(wanted: Wanted, cache: Path, workers: int, report: Reporter) -> Pictures:
    """Images with labels and captions, class after class, memory-mapped; rendered if they are missing.

    Raises InputError if the cache cannot be written.
    """
    folder = cache / "rendered" / f"images-{wanted.fingerprint}"
    try:
        if not (folder / "facts.json").is_file():
            _render(wanted, folder, workers, report)
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        images = np.load(folder / "images.npy", mmap_mode="r")
        if _checksum(images, facts) != facts["checksum"]:
            raise ValueError("other bytes than were written")
    except OSError as error:
        raise InputError(f"{folder} cannot be used: {error.strerror}; choose another --cache") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} is damaged; remove it and run again") from error
    return Pictures(images, np.array(facts["labels"], np.int64), tuple(facts["captions"]))


def _render(wanted: Wanted, folder: Path, workers: int, report: Reporter) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    starts, every = range(0, wanted.count, CHUNK), range(wanted.count)
    chunks = [(folder / f"chunk-{start // CHUNK:05d}.npz", every[start : start + CHUNK]) for start in starts]
    missing = [chunk for chunk in chunks if not chunk[0].is_file()]
    engine = ProcessEngine(workers, threads=None) if workers > 1 and len(missing) > 1 else LocalEngine()
    with report.bar("rendering", wanted.count, "images") as advance:

        def hand_on(message: Message) -> None:
            """Advance the one bar by what any process has drawn."""
            kind, _, content = message
            if kind == "advance":
                advance(content)
            elif kind == "say":
                report.say(content)

        advance(wanted.count - sum(len(places) for _, places in missing))
        results_in_order(engine, partial(render_chunk, wanted), missing, Reporter(hand_on))
    _join(wanted, [path for path, _ in chunks], folder)


def render_chunk(wanted: Wanted, chunk: Chunk, report: Reporter) -> None:
    """Render the images of a chunk into its file; at module level, so that a spawned process finds it."""
    path, places = chunk
    images = []
    with report.bar("rendering", len(places), "images") as advance:
        for index in places:
            number, size = wanted.seed * SEEDS + wanted.first + index, (wanted.side, wanted.side)
            images.append(sample_image(number, index % len(TEMPLATES), size))
            advance(1)
    pixels = np.stack([image.pixels.transpose(2, 0, 1) for image in images])
    labels, captions = [image.class_index for image in images], [image.caption for image in images]
    with whole_file(path) as draft, draft.open("wb") as file:
        np.savez(file, allow_pickle=False, images=pixels, labels=labels, captions=captions)


def _join(wanted: Wanted, chunks: list[Path], folder: Path) -> None:
    """Make one array of all chunks; facts.json, which is written last, marks completeness."""
    labels: list[int] = []
    captions: list[str] = []
    header = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(np.uint8)),
        "fortran_order": False,
        "shape": (wanted.count, 3, wanted.side, wanted.side),
    }
    # written, not memory-mapped: with a map, a full disk ends the process without an error
    with whole_file(folder / "images.npy") as draft, draft.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in chunks:
            with np.load(chunk) as content:
                file.write(content["images"].tobytes())
                labels += content["labels"].tolist()
                captions += content["captions"].tolist()
    facts: dict[str, object] = {"labels": labels, "captions": captions}
    facts["checksum"] = _checksum(np.load(folder / "images.npy", mmap_mode="r"), facts)
    write_whole(folder / "facts.json", json.dumps(facts))
    for chunk in chunks:
        chunk.unlink(missing_ok=True)


def _checksum(images: NDArray[np.uint8], facts: Mapping[str, object]) -> int:
    """The checksum of images, labels and captions; it takes a second for 50,000 images of 96 pixels."""
    checksum = zlib.crc32(json.dumps([facts["labels"], facts["captions"]]).encode())
    for start in range(0, len(images), CHUNK):
        checksum = zlib.crc32(images[start : start + CHUNK].tobytes(), checksum)
    return checksum
