"""What the pixels of the user's own images tell: their digest, the range of their values, blank ones.

Each image is decoded once. What was found is kept in the cache by a digest of the bytes of its file, so that
a file that is replaced, even under its name, size and time, is another image, and a copied one is the same.

A file of 16 bits may hold values of 12 bits, as of many cameras and microscopes, or of 8. Only the values say
it, and only all images together: a dark image of a dataset uses few of its bits.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple, TypeVar

import PIL

from layerboard.tasks.datasets.base import Data, PhotoSample, Sample, images_of, with_samples
from layerboard.tasks.datasets.hub import TableSample
from layerboard.tasks.datasets.packs.pack import content_digest
from layerboard.zoo.errors import InputError, counted, some
from layerboard.zoo.reading import read_regular
from layerboard.zoo.view.photos import as_seen, bits_used, decoding, open_file

DARK = 4  # an image that uses so many bits less than the dataset looks black, or nearly so
SAID = "of more than 8 bits a channel"  # in the remark on the range
BLANK = "of one colour"  # in what is said of images without content
PLAIN, LOST = 1, 2  # an image of one colour, and one that has it because transparent pixels become white
VERSION = 1  # changes when other facts would be found
_LINE = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{32}) ([0-9]{1,2}) ([012])\n")
Own = PhotoSample | TableSample
D = TypeVar("D", bound=Data)


class PixelFacts(NamedTuple):
    """What the pixels of an image tell."""

    pixels: str  # digest of the RGB pixels as people see them; of an unreadable image, of the file
    bits: int  # that values of more than 8 bits a channel use; 0 for an image of at most 8
    blank: int  # whether all pixels have one colour: 0, or `PLAIN` or `LOST`


def with_facts(data: D, cache: Path | None = None) -> D:
    """The user's own data, with images that know the digest of their pixels and are read by one range.

    That range is the one which the values of all images use. The coverage says what was found: the range, and
    images that are nearly black or of one colour. Facts are kept below ``cache``. Unreadable images are left
    as they are.
    """
    own = sorted({each for each in images_of(data) if isinstance(each, Own)}, key=lambda sample: sample.key)
    by_sample = dict(zip(own, _facts_of(own, cache), strict=True))
    bits = max((facts.bits for facts in by_sample.values()), default=0)
    pixels: dict[Sample, str] = {each: f"{facts.pixels}|{facts.bits}" for each, facts in by_sample.items()}
    changed: dict[Sample, Sample] = {}
    for sample, facts in by_sample.items():
        deep = {"bits": bits} if facts.bits else {}
        changed[sample] = replace(sample, pixels=pixels[sample], **deep)  # type: ignore[arg-type]
    coverage = data.coverage
    if used := {sample.key: facts.bits for sample, facts in by_sample.items() if facts.bits}:
        scaled = "read as they are" if bits == 8 else f"scaled to 8, white is {2**bits - 1:,}"
        said = f"{counted(len(used), 'images')} {SAID}: values use {bits} bits, {scaled}"
        coverage = coverage.remarked(said)
        if dark := [key for key, few in used.items() if few <= bits - DARK]:
            black = f"{counted(len(dark), 'images')} of these nearly black"
            coverage = coverage.noted(f"{black}, of {bits - DARK} bits at most ({some(dark)})")
    if lost := [sample.key for sample, facts in by_sample.items() if facts.blank == LOST]:
        said = f"{counted(len(lost), 'images')} {BLANK} once transparent pixels are white"
        coverage = coverage.noted(f"{said} ({some(lost)}): put them on another colour")
    if blank := [sample.key for sample, facts in by_sample.items() if facts.blank == PLAIN]:
        coverage = coverage.remarked(f"{counted(len(blank), 'images')} {BLANK} ({some(blank)})")
    coverage = coverage.noted(*_shared(data, pixels))
    return replace(with_samples(data, changed), coverage=coverage)  # type: ignore[no-any-return]


def _shared(data: Data, pixels: Mapping[Sample, str]) -> Iterator[str]:
    """Notes on images whose pixels are in two parts of the data that should share none."""
    for known_name, known, asked_name, asked in data.held_apart():
        of_pixels, images = {pixels[image]: image.key for image in known}, [*asked]
        pairs = [f"{each.key} and {of_pixels[pixels[each]]}" for each in images if pixels[each] in of_pixels]
        if pairs:
            number = f"{len(pairs):,} of {counted(len(images), f'{asked_name} images')}"
            yield f"pixels of {number} are in {known_name}, too ({some(pairs, 2)})"


def _facts_of(samples: list[Own], cache: Path | None) -> list[PixelFacts]:
    """Facts of images, read from the cache where it has those of the same bytes."""
    if not samples:
        return []
    path = cache and cache / "facts" / f"{VERSION}-pillow-{PIL.__version__}.txt"
    known = _read(path) if path else {}
    with ThreadPool(os.cpu_count()) as pool:
        results = pool.map(partial(_of_sample, known), samples, chunksize=4)
    new = {mark: facts for mark, facts, is_lasting in results if is_lasting and mark not in known}
    if path and new:
        lines = (f"{mark} {facts.pixels} {facts.bits} {facts.blank}\n" for mark, facts in new.items())
        with suppress(OSError):  # of a cache that cannot be written the facts are found again
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:  # one write, so that processes do not mix their lines
                file.write("".join(lines).encode())
    return [facts for _, facts, _ in results]


def _read(path: Path) -> dict[str, PixelFacts]:
    """Facts by digests of the bytes; lines that a full disk or a killed process cut are left out."""
    with suppress(OSError, UnicodeDecodeError):
        return {
            mark: PixelFacts(pixels, int(bits), int(blank))
            for mark, pixels, bits, blank in _LINE.findall(path.read_text(encoding="ascii"))
        }
    return {}


def _of_sample(known: Mapping[str, PixelFacts], sample: Own) -> tuple[str, PixelFacts, bool]:
    """Digest of the bytes of an image, its facts, and whether they will be the same in every process."""
    try:
        source = sample.path if isinstance(sample, PhotoSample) else sample.source
        content = source.getvalue() if isinstance(source, BytesIO) else read_regular(source)
    except (OSError, InputError):  # it may be readable later
        return "", PixelFacts(content_digest(sample.key.encode(errors="surrogatepass")), 0, 0), False
    mark = content_digest(content)
    if mark in known:
        return mark, known[mark], True
    try:
        return mark, _facts(content), True
    except InputError:
        return mark, PixelFacts(mark, 0, 0), False


def _facts(content: bytes) -> PixelFacts:
    """Facts of an image; raises InputError if it cannot be decoded."""
    with decoding("cannot decode it"):
        with open_file(BytesIO(content)) as image:
            lost, bits = image.has_transparency_data, bits_used(image)
            seen = image if bits else as_seen(image)
        if bits:  # measuring has decoded it, without the lower bits of colour
            with open_file(BytesIO(content)) as image:
                seen = as_seen(image)
    pixels = content_digest(repr(seen.size).encode() + seen.tobytes())
    corners = seen.getpixel((0, 0)), seen.getpixel((seen.width - 1, seen.height - 1))
    is_blank = corners[0] == corners[1] and all(low == high for low, high in seen.getextrema())  # type: ignore[misc]
    return PixelFacts(pixels, bits, (LOST if lost else PLAIN) if is_blank else 0)
