"""Find an image, or a region of one, in a folder of images: the command `find` and `layerboard.find`."""

from dataclasses import KW_ONLY
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, ended_by_signals, say_files
from layerboard.benchmark.commands.load import layer
from layerboard.benchmark.commands.result import PageFiles
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import OnePath, Option, Plain, of_form
from layerboard.benchmark.forms.request import (
    BACKBONES,
    Backbones,
    Images,
    MachineOptions,
    Request,
    ResultsOptions,
)
from layerboard.zoo.errors import InputError, some

if TYPE_CHECKING:
    from PIL import Image

    from layerboard.benchmark.commands.known_layer import KnownLayer
    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.benchmark.find import Matches
    from layerboard.leaderboards.report.found import FoundSection
    from layerboard.zoo.spec import BackboneSpec
    from layerboard.zoo.view.geometry import Box

USUAL = "mini-dino"  # of the packaged networks
TOY = (
    "{name} is a toy network, trained on synthetic images, that comes with the package; -b names a real one, "
    "such as dinov2-s14."
)
CELLS = 32  # across the longer side of an image that is searched for a region, at least
COLUMNS = ("image", "score", "x", "y", "width", "height")


class SearchOptions(ResultsOptions, MachineOptions):
    """The run that recommends a layer, and the machine."""

    output: OnePath = Option(
        "results", "Output folder of a run, whose results recommend the layer.", also="-o", panel="Output"
    )


class FindRequest(SearchOptions, kw_only=False):
    """Options of `find`: the query and the folder."""

    query: Option[str | Path | object, object] = Option(
        ..., "An image file; from Python also an image of Pillow or an array.", parsers.picture
    )
    images: Images = Option(
        ...,
        "Folder of images to search, with all folders in it, or its .zip or .tar.",
        parsers.images,
        also="--in",
        positional=False,
        several=False,
    )
    _: KW_ONLY
    box: Option[str | tuple[float, float, float, float] | None, tuple[float, float, float, float] | None] = (
        Option(
            None,
            "Find this region of the query: x,y,width,height in its pixels, of the upright image.",
            parsers.box,
            several=False,
            usual="the whole image",
        )
    )
    backbones: Option[Backbones, tuple[str, ...]] = Option(
        (), BACKBONES, parsers.backbones, also="-b", usual=f"{USUAL}, a toy network"
    )
    layer: Option[int | str | None, str | None] = Option(
        None, "Block whose vectors or tokens are compared, or 'final'.", layer, usual="the recommended one"
    )
    top: Plain[int] = Option(20, "Number of images to show.", least=1)
    to: OnePath = Option("found.html", "HTML file to write; a CSV file of the same name is beside it.")


@command("find", FindRequest)
def find_command(request: FindRequest) -> None:
    """Find an image, or a region of one, in a folder of images.

    It writes one offline page with the nearest images, their cosines and, with `--box`, the best region of
    each. The layer is the recommended one for retrieval, or with `--box` for keypoints: of a run in
    `--output`, else of the packaged results, else of the literature; the page says which. The search is
    exact.

    Examples:
    - `layerboard find photo.jpg --in photos -b dinov2-s14`
    - `layerboard find photo.jpg --box 120,80,200,150 --in photos -b dinov2-s14`
    """
    with ended_by_signals("interrupted; vectors that were computed are kept") as report:
        written = of_form(find)(request, report)
    say_files(written)


@find_command.python
def find(request: FindRequest, report: "Reporter | None" = None) -> PageFiles:
    """``frame`` has one row per image, the nearest first: its name, the score, and with ``box`` the region.

    ``score`` is a cosine; of a region it is the mean over its patch tokens, less the mean token of each
    image. ``x``, ``y``, ``width`` and ``height`` are in pixels of the upright image. ``paths`` are the page
    and the table. The images of ``images`` that cannot be read are left out, and said in ``notes``.

    Example:
        >>> import layerboard
        >>> name = "train/n00000001/n00000001_0.JPEG"
        >>> found = layerboard.find(f"photos/{name}", "photos", top=3, to="found.html")
        >>> found.frame["image"][0]
        'train/n00000001/n00000001_0.JPEG'
    """
    from layerboard.benchmark.commands.known_layer import OF_IMAGES, OF_REGIONS, known_layer
    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.plan.folders import require_writable_page
    from layerboard.zoo.features.cut import seen

    report = report or reporter_for(None)
    query = seen(request.query)  # type: ignore[arg-type]  # what is no image is refused there
    if request.box is not None:
        require_inside_image(request.box, query.size)
    require_writable_page(request.to, request.cache)
    spec = one_backbone(request, report)
    known = known_layer(spec, OF_IMAGES if request.box is None else OF_REGIONS, request.output)
    if request.layer is not None:
        known = known._replace(layer=request.layer, why="as asked")
    return _result(request, spec, known, query, _matches(request, spec, known, query, report))


def _edges(box: "Box") -> "Box":
    """Left, top, right and bottom of a box of left, top, width and height."""
    x, y, width, height = box
    return x, y, x + width, y + height


def _sides(box: "Box | None") -> "Box | None":
    """Left, top, width and height of a box of left, top, right and bottom."""
    return box and (box[0], box[1], box[2] - box[0], box[3] - box[1])


def require_inside_image(box: "Box", size: tuple[int, int]) -> None:
    """Raise InputError for a box of left, top, width and height that is not inside an image of that size."""
    x, y, width, height = box
    if x + width > size[0] or y + height > size[1]:
        given = ",".join(f"{number:g}" for number in box)
        raise InputError(
            f"--box takes x,y,width,height inside the image of {size[0]} x {size[1]} pixels; found {given}"
        )


def one_backbone(request: "FindRequest", report: "Reporter") -> "BackboneSpec":
    """The backbone of a request, for a region at a size of many cells; raises InputError for several."""
    from layerboard.benchmark.look import with_cells
    from layerboard.benchmark.plan.backbones import find_backbones, named_variants
    from layerboard.benchmark.plan.suites import SUITES

    asked = Request(backbones=request.backbones or (USUAL,), cache=request.cache, floor=False)
    specs = find_backbones(asked, SUITES[0], report)
    if len(specs) != 1:
        raise InputError(f"find takes one backbone, found {len(specs)}: {some(spec.name for spec in specs)}")
    named = any(each.input_size for each in named_variants(request.backbones))
    return specs[0] if request.box is None or named else with_cells(specs[0], CELLS)


def _matches(
    request: FindRequest, spec: "BackboneSpec", known: "KnownLayer", query: "Image.Image", report: "Reporter"
) -> "tuple[Matches, list[str]]":
    """The nearest images or regions, and what was left out, in sentences."""
    from layerboard.benchmark.engines.choose import find_device
    from layerboard.benchmark.find import Search, find_images, find_regions
    from layerboard.benchmark.folder import left_out, own_images, read_vectors
    from layerboard.tasks.datasets.base import images_of
    from layerboard.zoo.load.backbone import load_backbone
    from layerboard.zoo.spec import Layer

    asked = Request.of(request, backbones=request.backbones or (spec.name,))
    images = own_images(asked)
    layer = Layer(spec.depth, "final") if known.layer == "final" else Layer(int(known.layer))
    if layer.tap == "block" and not 0 <= layer.index <= spec.depth:
        raise InputError(f"--layer takes a block of {spec.name} from 0 to {spec.depth}, found {known.layer}")
    load = partial(load_backbone, spec, device=find_device(request.device), cache_dir=request.cache)
    if request.box is None:
        folder = read_vectors(images, report)  # with a copy of the backbone, which is not kept
        backbone = load()
        nearest = find_images(folder, backbone, layer, known.pooling, query, request.top)  # type: ignore[arg-type]
        return nearest, [*folder.remarks]
    backbone = load()
    matches = find_regions(
        [*images_of(images.data)],
        Search(backbone, layer, request.workers, asked.batch_on(backbone.device.type)),
        (query, _edges(request.box)),
        request.top,
        report,
    )
    return matches, [*images.remarks, *([left_out(matches.lost)] if matches.lost else [])]


def _result(
    request: FindRequest,
    spec: "BackboneSpec",
    known: "KnownLayer",
    query: "Image.Image",
    found: "tuple[Matches, list[str]]",
) -> PageFiles:
    """Write the page and the table."""
    import pandas as pd

    from layerboard.benchmark.folder import sentences
    from layerboard.leaderboards.blocks.csv import csv_text
    from layerboard.leaderboards.report.found import Found, FoundPicture, FoundSection, found_page
    from layerboard.zoo.atomic import write_whole

    matches, remarks = found
    region = request.box is not None
    name = request.query.name if isinstance(request.query, Path) else "the query"
    what = f"a region of {name}" if region else name
    compared = "patch tokens" if region else f"vectors ({known.pooling})"
    notes = (
        f"By {compared} of {spec.name}, layer {known.layer}: {known.why}.",
        f"A cosine is no probability: half of the images here have at least {matches.usual:.3f}.",
        *([TOY.format(name=spec.name)] if spec.is_toy else []),
        *sentences(remarks),
    )
    rows = [(each.sample.key, each.score, *(_sides(each.box) or ())) for each in matches.best]
    columns = COLUMNS if region else COLUMNS[:2]
    frame = pd.DataFrame(rows, columns=list(columns))
    title = f"Found in {Path(request.images[0]).name}"
    asked = FoundSection("Looked for", (), [[FoundPicture.of(query, name, "", request.box)]])
    sections = [asked, _shown_matches(matches, "Regions" if region else "Images")]
    table = request.to.with_suffix(".csv")
    write_whole(request.to, found_page(Found(title, notes, sections)))
    write_whole(table, csv_text(frame))
    digits = dict.fromkeys(columns[1:], "{:.0f}".format) | {"score": "{:.4f}".format}
    return PageFiles(
        title=f"{what}: the nearest of {title.removeprefix('Found in ')}",
        frame=frame,
        table=frame.assign(**{column: frame[column].map(text) for column, text in digits.items()}),
        notes=notes,
        paths=(request.to, table),
    )


def _shown_matches(matches: "Matches", what: str) -> "FoundSection":
    """The section of a page with the matches, the nearest first."""
    from layerboard.leaderboards.report.found import FoundPicture, FoundSection

    pictures = [
        [FoundPicture.of(each.sample.open(), each.sample.key, f"cosine {each.score:.3f}", _sides(each.box))]
        for each in matches.best
    ]
    return FoundSection(f"{what}, the nearest first", (), pictures)
