"""Pictures of the committed report and of `look` in README and docs.

``python -m workshop.site.gallery`` draws them. Each carries a digest of the numbers that it shows, and a test
says which are out of date: those are drawn again, or all with ``--all``. It takes Chromium.
"""

import base64
import gzip
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import ExifTags, Image

import layerboard
from layerboard.mini.checkpoints import SUMS, WEIGHTS
from layerboard.mini.packs import packaged_data
from layerboard.tasks.datasets.reading.files import read_bytes
from workshop.render.facts import MINI_VERSION

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
REPORT = ROOT / "docs" / "mini-report.html"
LOOKED = ("mini-dino", "mini-moco", "mini-mae")  # backbones of the picture of `look`
FRAMES = {  # of mini-davis, by the names that are shown
    "dog": "dog-meadow/00000",
    "dog-later": "dog-meadow/00007",
    "horse-giraffe": "horse-giraffe/00000",
    "heron": "heron-lake/00000",
}
MARGIN = 8  # pixels around a part of a page
WIDEST = 1240  # pixels of a picture
SHOWS = "numbers of digest "  # before the digest, in the description of a picture
QUALITY = 82  # of WebP

Size = tuple[int, int]  # width and height of the window in pixels
Tab = Any  # a page of playwright, which is not installed for every test


def of_report() -> str:
    """Digest of the scores of the committed report."""
    data = re.search(r'<script type="text/plain" id="data">(.*?)</script>', REPORT.read_text("utf-8"), re.S)
    assert data
    numbers = json.loads(gzip.decompress(base64.b64decode(data[1])))["frames"]
    return _digest(json.dumps(numbers["scores"]))


def of_looked() -> str:
    """Digest of the pictures and weights that `look` shows, which its maps follow from."""
    return _digest(MINI_VERSION, *((WEIGHTS / name / SUMS).read_text("utf-8") for name in LOOKED))


# what a reader of a picture would want to click
CONTROLS = ".legend li > button:nth-child(2), .view .tools, figcaption small { display: none }"


def report_part(tab: Tab, parts: tuple[str, ...] = ()) -> bytes:
    """Screenshot of parts of the report, from the first to the last; of its first screen without any."""
    tab.goto(REPORT.as_uri())
    tab.wait_for_selector("html[data-ready]")
    if not parts:
        tab.wait_for_selector("#view-advice svg")
        return bytes(tab.screenshot())
    tab.add_style_tag(content=CONTROLS)
    for part in parts:  # a chart is drawn when it comes into view
        tab.locator(part).first.scroll_into_view_if_needed()
        if part.startswith("#view-"):
            tab.wait_for_selector(f"{part} svg")
    tab.evaluate("scrollTo(0, 0)")
    boxes = [tab.locator(part).first.bounding_box() for part in parts]
    left, top = boxes[-1]["x"] - MARGIN, boxes[0]["y"] - MARGIN
    height = boxes[-1]["y"] + boxes[-1]["height"] + MARGIN - top
    clip = {"x": left, "y": top, "width": boxes[-1]["width"] + 2 * MARGIN, "height": height}
    return bytes(tab.screenshot(full_page=True, clip=clip))


def looked(tab: Tab) -> bytes:
    """Screenshot of a page of `look` with layers as columns."""
    videos = packaged_data() / "DAVIS" / "JPEGImages" / "480p"
    with TemporaryDirectory() as folder:
        images = [Path(folder, f"{name}.jpg") for name in FRAMES]
        for frame, image in zip(FRAMES.values(), images, strict=True):
            image.write_bytes(read_bytes(videos / f"{frame}.jpg"))
        page = Path(folder, "look.html")
        layerboard.look(images, backbones=LOOKED, layers="1,2,4,6,8,10,12,final", to=page, device="cpu")
        tab.goto(f"{page.as_uri()}#columns=layers&picture=2")
        tab.wait_for_selector("html[data-ready]")
        return bytes(tab.screenshot())


PICTURES: Mapping[str, tuple[Callable[[], str], Size, Callable[[Tab], bytes]]] = {
    "report-first": (of_report, (1400, 1000), report_part),
    "report-layers": (
        of_report,
        (1230, 800),
        partial(report_part, parts=("#task-section .legend", "#view-curves", "#view-panels")),
    ),
    "report-cost": (of_report, (1230, 800), partial(report_part, parts=("#view-tradeoff",))),
    "look": (of_looked, (1240, 965), looked),
}
"""By name the digest of what a picture shows today, its window, and how it is drawn."""


def shown(path: Path) -> str:
    """The digest of the numbers that a picture says it shows; "" if it says none."""
    with Image.open(path) as image:
        said = str(image.getexif().get(ExifTags.Base.ImageDescription, ""))
    return said.removeprefix(SHOWS) if said.startswith(SHOWS) else ""


def outdated() -> list[str]:
    """Names of pictures that show other numbers than those of today."""
    return [name for name, (digest, *_) in PICTURES.items() if shown(FOLDER / f"{name}.webp") != digest()]


@contextmanager
def browser() -> Iterator[Callable[[Size], Tab]]:
    """Opens tabs of a given size in the system's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield lambda size: opened.new_page(
            viewport={"width": size[0], "height": size[1]}, color_scheme="light"
        )
        opened.close()


def draw(names: list[str]) -> None:
    """Write pictures with the digest of the numbers that they show."""
    with browser() as tab_of:
        for name in names:
            digest, size, drawn = PICTURES[name]
            image = Image.open(BytesIO(drawn(tab_of(size)))).convert("RGB")
            image.thumbnail((WIDEST, WIDEST), Image.Resampling.LANCZOS)
            exif = Image.Exif()
            exif[ExifTags.Base.ImageDescription] = SHOWS + digest()
            image.save(FOLDER / f"{name}.webp", quality=QUALITY, method=6, exif=exif)
            print(FOLDER / f"{name}.webp")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


if __name__ == "__main__":
    draw([*PICTURES] if "--all" in sys.argv[1:] else outdated())
