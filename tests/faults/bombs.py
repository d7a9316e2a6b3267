"""Files that are small and cost much, and files of other formats by the names of images."""

import json
import multiprocessing
import os
import pickle
import random
import resource
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image

from layerboard.benchmark.exported.cka import score_cka
from layerboard.benchmark.exported.vectors import score_knn
from layerboard.leaderboards.records.arrays import read_arrays
from layerboard.tasks.datasets.base import PhotoSample
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.datasets.reading.safe_pickle import restricted_load
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.files import locate
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec.origin import TRANSFORMERS
from tests.faults.trials import SECONDS, Effort, Trial, problem_of

MOST_MEMORY = 2**30
"""Bytes that an answer may take beside what the process has."""

MERSENNE = 2**61 - 1
"""Whole numbers have it as their modulus when they are hashed."""


Bomb = tuple[str, Callable[[], object]]
"""Its name, and what a run or ``score`` would do with it."""


def blow_up(root: Path, effort: Effort) -> Iterator[Trial]:
    """Read each bomb in a process of its own.

    What is wanted: the reader takes it, or says in one sentence what is wrong; soon, and within the memory.
    """
    for number, (kind, write) in enumerate(BOMBS.items()):
        folder = root / str(number)
        folder.mkdir(parents=True)
        for place, (name, read) in enumerate(write(folder), start=number):
            if place % effort.every == 0:
                yield Trial("bombs", f"{kind}, {name}", _bounded(read))
        shutil.rmtree(folder)


def _bounded(read: Callable[[], object]) -> str:
    """What is wrong with how a reader answers in a process of bounded memory."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(read, theirs))
    process.start()
    theirs.close()
    try:
        return str(ours.recv()) if ours.poll(2 * SECONDS) else f"stuck for {2 * SECONDS} seconds"
    except EOFError:
        return "the process died"
    finally:
        process.kill()
        process.join()


def _answer(read: Callable[[], object], to: Connection) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    begin, mapped = _kilobytes("VmHWM"), _kilobytes("VmSize")
    limit = 1024 * mapped + 4 * MOST_MEMORY  # a net: what is mapped need not be used
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    problem = problem_of(read)
    took = 1024 * (_kilobytes("VmHWM") - begin)
    to.send(problem or (f"took {took / 2**20:.0f} MiB" if took > MOST_MEMORY else ""))


def _kilobytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def archives(folder: Path) -> Iterator[Bomb]:
    """Arrays that say, or are, far more than is stored."""
    zeros = folder / "zeros.npz"
    shape = "(4000000, 128)"
    with (
        zipfile.ZipFile(zeros, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("train.npy", "w", force_zip64=True) as member,
    ):
        member.write(_head(shape))
        for _ in range(125):
            member.write(bytes(4000000 * 128 * 4 // 125))
    many = folder / "many.npz"
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(50_000):
            archive.writestr(f"{number}.npy", b"")
    said = folder / "said.npz"
    with zipfile.ZipFile(said, "w") as archive:
        archive.writestr("train.npy", _head("(1000000000000, 128)"))
    for path in (zeros, many, said):
        yield f"{path.stem} of score", partial(score_knn, path, "standard", (3,), 0.07)
        yield f"{path.stem} of records", partial(_records, path)
    for name, shape in (
        ("very many", "(1000000000000, 128)"),
        ("beyond all", f"({10**30}, 8)"),
        ("of nothing", f"({2**62}, 0)"),
        ("of many axes", f"({'1, ' * 3000})"),
        ("of many brackets", "(" * 5000 + ")" * 5000),
        ("below none", "(-1, 8)"),
    ):
        path = folder / f"{name}.npy"
        path.write_bytes(_head(shape) + bytes(64))
        yield name, partial(score_cka, [path, path], "unbiased", None)


def _head(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text


def _records(path: Path) -> None:
    try:
        read_arrays(path)
    except (OSError, ValueError) as error:  # which those who read records take
        raise InputError("damaged") from error


def weights(folder: Path) -> Iterator[Bomb]:
    """Lists of tensors that are long, deep or false."""
    (spec,) = find(["mini-resnet"])
    tensor = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    lists = {
        "many tensors": json.dumps({f"t{number}": tensor for number in range(300_000)}).encode(),
        "some tensors": json.dumps({f"t{number}": tensor for number in range(30_000)}).encode(),
        "a deep list": b"[" * 1_000_000 + b"]" * 1_000_000,
        "a long name": json.dumps({"x" * 3_000_000: tensor}).encode(),
        "much said": json.dumps({"t": tensor | {"shape": [2**40], "data_offsets": [0, 2**42]}}).encode(),
        "shapes beyond all": json.dumps({"t": tensor | {"shape": [2**32, 2**32]}}).encode(),
        "many axes": json.dumps({"t": tensor | {"shape": [1] * 100_000 + [0]}}).encode(),
    }
    for name, text in lists.items():
        place = folder / name
        shutil.copytree(locate(spec, None).weights[0].parent, place)
        path = place / "model.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text)
        own = replace(spec, repository=str(place), origin=TRANSFORMERS)
        read = partial(load_backbone, own, device=torch.device("cpu"), cache_dir=folder)
        yield name, read
    path.write_bytes(struct.pack("<Q", 2**62) + b"{}")
    yield "a list without end", read


def pickles(folder: Path) -> Iterator[Bomb]:
    """Ground truth whose keys collide, that is deep, or refers to itself."""
    doubling = b"\x80\x02]q\x00" + b"".join(b"]q\x01(h\x00h\x00eq\x00" for _ in range(100_000)) + b"."
    numbers = range(1, 100_000)
    alike = [odd * 2.0 ** (61 * power) for odd in range(1, 20_000, 2) for power in range(-16, 16)]
    contents = {
        "keys that collide": pickle.dumps({number * MERSENNE: 0 for number in range(20_000)}),
        "items that collide": pickle.dumps({number * MERSENNE for number in range(20_000)}),
        "keys that end alike": pickle.dumps({number << 40: 0 for number in numbers}),
        "fractions that collide": pickle.dumps(dict.fromkeys(alike, 0)),
        "many keys that are tuples": pickle.dumps({(number * MERSENNE,): 0 for number in range(2000)}),
        "many keys that are no number": b"\x80\x02}("
        + (b"G\x7f\xf8" + bytes(6) + b"K\x00") * 100_000
        + b"u.",
        "doubling": doubling,
        "deep": b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b".",
        "a long number": b"\x80\x02\x8b" + struct.pack("<i", 2**24) + b"\xff" * 2**24 + b".",
        "a long number in digits": b"I" + b"9" * 2_000_000 + b"\n.",
        "a text that is not there": b"\x80\x04\x8d" + struct.pack("<Q", 2**40) + b".",
        "bytes that are not there": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b".",
        "a frame that is not there": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"N.",
        "many marks": b"\x80\x02" + b"(" * 5_000_000 + b".",
    }
    for name, content in contents.items():
        path = folder / f"{name}.pkl"
        path.write_bytes(content)
        yield name, partial(restricted_load, path)


def pictures(folder: Path) -> Iterator[Bomb]:
    """Images of very many pixels or frames, with texts and profiles that unpack to much."""
    for name, side, mode in (("large", 20_000, 1), ("beyond all", 2**31 - 1, 8)):
        path = folder / f"{name}.png"
        rows = bytes(1 + side // 8) * side if mode == 1 else b""
        path.write_bytes(_png(side, mode, _chunk(b"IDAT", zlib.compress(rows, 1))))
        yield from _both(name, path)
    packed = zlib.compress(bytes(2**29), 1)
    pixel = _chunk(b"IDAT", zlib.compress(bytes(2)))
    for kind, start in ((b"zTXt", b"a\0\0"), (b"iTXt", b"a\0\1\0\0\0"), (b"iCCP", b"a\0\0")):
        path = folder / f"{kind.decode()}.png"
        path.write_bytes(_png(1, 8, _chunk(kind, start + packed) + pixel))
        yield from _both(kind.decode(), path)
    path = folder / "more-rows.png"
    path.write_bytes(_png(1, 8, _chunk(b"IDAT", packed)))
    yield from _both("more rows than said", path)
    large = struct.pack("<HH", 65535, 65535)
    for name, content in {
        "gif": b"GIF89a" + large + bytes(3) + b"," + bytes(4) + large + b"\0\x08\x02\x4c\x01\0;",
        "bmp": b"BM" + struct.pack("<IIIIiiHHIIiiII", 60, 0, 54, 40, 60000, 60000, 1, 24, *bytes(6)),
        "tga": bytes((0, 0, 10)) + bytes(9) + large + b"\x18\0",
        "ppm": b"P6 60000 60000 255\n",
        "ppm of digits": b"P6 " + b"9" * 1_000_000 + b" 1 255\n",
        "pcx": bytes((10, 5, 1, 8)) + bytes(4) + large + bytes(53) + b"\1\xff\xff" + bytes(58),
        "sgi": struct.pack(">hBBHHHH", 474, 1, 1, 3, 65535, 65535, 3) + bytes(500),
        "dds": b"DDS " + struct.pack("<IIII", 124, 0x1007, 60000, 60000) + bytes(108),
        "qoi": b"qoif" + struct.pack(">IIBB", 60000, 60000, 4, 0) + b"\xfd" * 1000,
        "psd": b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 60000, 60000, 8, 3) + bytes(14),
        "webp": b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(4) + b"\xff\xff\0\xff\xff\0",
        "xpm": b'/* XPM */\nstatic char *a[] = {\n"60000 60000 1 1",\n"a c #000000",\n',
    }.items():
        path = folder / f"{name}.jpg"
        path.write_bytes(content)
        yield from _both(name, path)
    path = folder / "frames.tiff"
    frame = Image.new("L", (8, 8))
    frame.save(path, save_all=True, append_images=[frame] * 3000)
    yield from _both("many frames", path)
    path = folder / "packed.tiff"
    Image.new("1", (30_000, 30_000)).save(path, compression="tiff_adobe_deflate")
    yield from _both("packed", path)


def _both(name: str, path: Path) -> Iterator[Bomb]:
    """An image as one that is looked at, and as a mask."""
    yield name, PhotoSample(name, str(path)).open
    yield f"{name} as a mask", partial(read_mask, path)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _png(side: int, bits: int, chunks: bytes) -> bytes:
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, bits, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunks + _chunk(b"IEND", b"")


BOMBS: dict[str, Callable[[Path], Iterator[Bomb]]] = {
    "arrays": archives,
    "weights": weights,
    "pickles": pickles,
    "images": pictures,
}
"""Bombs by kind."""

SCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
BOXES = b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41\0\0\0\x08free\0\0\0\x08mdat"

FOREIGN: dict[str, bytes] = {
    "PostScript": SCRIPT,
    "PostScript of DOS": b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 30, len(SCRIPT)) + bytes(18) + SCRIPT,
    "PostScript behind a JPEG's mark": b"\xff\xd8\xff\xe0" + SCRIPT,
    "PDF": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n",
    "SVG": b'<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>',
    "a page": b"<!DOCTYPE html><html><title>404</title></html>",
    "a pointer of LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    "IPTC": b"\x1c\x02\x78\0\x04abcd\x1c\x03\x3c\0\x02\1\1\x1c\x08\x0a\0\x04" + SCRIPT,
    "WMF": b"\xd7\xcd\xc6\x9a\0\0" + bytes(4) + b"\x09\0\x09\0\x48\0" + bytes(6) + b"\1\0\x09\0" + bytes(14),
    "EMF": b"\1\0\0\0\x6c\0\0\0" + bytes(32) + b" EMF" + bytes(64),
    "a film": BOXES,
    "MPEG": b"\0\0\1\xb3\x01\x00\x10\x13\xff\xff\xe0\x18",
    "GRIB": b"GRIB\0\0\0\1",
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "BUFR": b"BUFR\0\0\0\4",
    "FPX": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1024),
    "gzip": b"\x1f\x8b\x08\0" + bytes(20),
    "zip": b"PK\3\4" + bytes(60),
    "tar": b"notes".ljust(257, b"\0") + b"ustar\x0000" + bytes(248),
    "a program": b"\x7fELF\2\1\1" + bytes(60),
    "a script": b"#!/bin/sh\ntouch ran\n",
    "a pickle": pickle.dumps([1]),
    "an array": _head("(1,)") + bytes(4),
    "parquet": b"PAR1" + bytes(20) + b"PAR1",
    "text": "猫\n".encode(),
    "text in 16 bits": "text".encode("utf-16"),
}
"""What no image is, by name."""


def rename_foreign(root: Path, effort: Effort) -> Iterator[Trial]:
    """Read each foreign format by each ending of an image, with programs about that would draw it.

    What is wanted: one sentence, and no program is started.
    """
    root.mkdir()
    for program in ("gs", "gswin64c", "inkscape", "rsvg-convert", "pdftoppm"):
        (root / program).write_text(f"#!/bin/sh\ntouch '{root}/ran'\n")
        (root / program).chmod(0o755)
    cases = [(kind, ending) for kind in FOREIGN for ending in ("jpg", "png", "tif", "gif", "webp", "eps")]
    random.Random(0).shuffle(cases)
    for kind, ending in cases[:: effort.every]:
        path = root / f"image.{ending}"
        path.write_bytes(FOREIGN[kind])
        for what, read in _both(kind, path):
            with patch.dict(os.environ, {"PATH": f"{root}:{os.environ['PATH']}"}):
                problem = problem_of(partial(_refused, read))
            if (root / "ran").exists():
                (root / "ran").unlink()
                problem = "a program was started"
            yield Trial("foreign formats named as images", f"{what}.{ending}", problem)
        path.unlink()


def _refused(read: Callable[[], object]) -> None:
    value = read()
    shape = np.asarray(value).shape
    raise AssertionError(f"it was taken as an image of {shape}")
