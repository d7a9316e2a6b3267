"""Real photographs and videos from public repositories, in the layouts that layerboard reads."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from workshop.real.fetch import Repository

TINY_IMAGENET = Repository("https://github.com/seshuad/IMagenet", "153dbc161ab7942a12c99515e80ef6454dd06693")
CLASSES, TRAIN, VAL = 50, 40, 15
"""Classes, and images of each that are learned from and tested."""

DAVIS = Repository("https://github.com/MathLee/EOR-VOS", "1bde4d5f936304c5ad69e301956e9d65082dfbc8")
VIDEOS = ("car-shadow", "dog", "libby")


def write_photographs(to: Path, downloads: Path) -> str:
    """Write photographs of 64 pixels as `train/CLASS/*.JPEG` and `val/CLASS/*.JPEG`; returns what they are.

    Every fourth class of Tiny ImageNet in the order of names, its training images 0 to 39, and of its
    validation images the first 15 in the order of names.
    """
    root = "tiny-imagenet-200"
    lists = [f"{root}/wnids.txt", f"{root}/val/val_annotations.txt"]
    texts = {name: content.decode() for name, content in TINY_IMAGENET.files(lists, downloads)}
    names = sorted(texts[lists[0]].split())
    classes = names[:: len(names) // CLASSES]
    rows = sorted(line.split("\t")[:2] for line in texts[lists[1]].splitlines())
    places = {
        f"{root}/train/{each}/images/{each}_{n}.JPEG": f"train/{each}"
        for each in classes
        for n in range(TRAIN)
    }
    for each in classes:
        tested = [file for file, label in rows if label == each][:VAL]
        places |= {f"{root}/val/images/{file}": f"val/{each}" for file in tested}
    for name, content in TINY_IMAGENET.files([*places], downloads):
        folder = to / places[name]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / Path(name).name).write_bytes(content)
    return f"{len(places)} photographs of {len(classes)} classes from {TINY_IMAGENET}"


def write_videos(to: Path, downloads: Path) -> str:
    """Write videos with the masks of one object each, in the layout of DAVIS-2017; returns what they are.

    The repository has the masks of DAVIS-2016, where the object is white; in DAVIS-2017 it is object 1.
    """
    folders = [f"DAVIS/{kind}/480p/{video}" for kind in ("JPEGImages", "Annotations") for video in VIDEOS]
    for name, content in DAVIS.files(folders, downloads):
        file = to / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".png":
            file.write_bytes(content)
            continue
        with Image.open(io.BytesIO(content)) as picture:
            mask = Image.fromarray((np.asarray(picture.convert("L")) > 127).astype(np.uint8), "P")
        mask.putpalette([0, 0, 0, 128, 0, 0])
        mask.save(file)
    split = to / "DAVIS" / "ImageSets" / "2017" / "val.txt"
    split.parent.mkdir(parents=True, exist_ok=True)
    split.write_text("".join(f"{video}\n" for video in VIDEOS))
    return f"{len(VIDEOS)} videos of DAVIS from {DAVIS}"
