"""Find duplicates, doubtful labels and series in a folder: `duplicates` and `layerboard.duplicates`."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, ended_by_signals, say_files
from layerboard.benchmark.commands.find import TOY, USUAL, SearchOptions
from layerboard.benchmark.commands.result import PageFiles, Result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import OnePath, Option, OptionalPath, Plain, of_form
from layerboard.benchmark.forms.request import BACKBONES, Backbones, Images, Request

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.benchmark.audit import Checked
    from layerboard.benchmark.commands.known_layer import KnownLayer
    from layerboard.benchmark.engines.progress import Reporter

SHOWN = 10  # findings of each kind that are printed


class DuplicatesRequest(SearchOptions, kw_only=False):
    """Options of `duplicates`: the folder, and what is known of its images."""

    images: Images = Option(
        ..., "Folder of images, with all folders in it, or its .zip or .tar.", parsers.images, several=False
    )
    _: KW_ONLY
    precision: Plain[float] = Option(
        0.95,
        "Share of the listed pairs that shall be copies, on the pairs that --labels knows.",
        partial(parsers.positive, most=1),
    )
    labels: OptionalPath = Option(
        None,
        "CSV file with the columns file and group: the copies of one image in one group, different images in "
        "others; or with file and label for classes.",
        parsers.table,
        usual="DIR/metadata.csv, or the folder names",
    )
    groups: OptionalPath = Option(
        None,
        "CSV file with the columns file and group of images that belong together, such as a patient's; they "
        "are not listed.",
        parsers.table,
    )
    backbones: Option[Backbones, tuple[str, ...]] = Option(
        (), BACKBONES, parsers.backbones, also="-b", usual="those of the run in --output, or a toy network"
    )
    to: OnePath = Option("duplicates.html", "HTML file to write; two CSV files are beside it.")


@command("duplicates", DuplicatesRequest)
def duplicates_command(request: DuplicatesRequest) -> None:
    """Find duplicates in a folder of images, and what else is wrong with it.

    It writes one offline page with pairs of images that are copies of each other (resized, compressed,
    mirrored, recoloured, and cropped ones as far as the backbone sees no difference), and says from which
    cosine on they are listed and what that rests on: labelled pairs, or a rule. In a folder with classes it
    also shows labels that neighbours contradict, and series of similar files. Beside the page are a table of
    all findings, and one of groups and a split that keep related images together. No image is changed or
    deleted.

    Example: `layerboard duplicates photos -b dinov2-s14`
    """
    with ended_by_signals("interrupted; vectors that were computed are kept") as report:
        written = of_form(duplicates)(request, report)
    say_files(written)


@duplicates_command.python
def duplicates(request: DuplicatesRequest, report: "Reporter | None" = None) -> PageFiles:
    """``frame`` has one row per finding: its kind (duplicate, label or series), and the files.

    ``cosine`` is that of a pair of duplicates; ``parts`` has the findings of each kind. ``paths`` are the
    page, the table of all findings, and the groups.

    Example:
        >>> import layerboard
        >>> found = layerboard.duplicates("photos", to="duplicates.html")
        >>> found.frame[found.frame["finding"] == "duplicate"][["file", "other"]].shape[1]
        2
    """
    from layerboard.benchmark.audit import notes_of
    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.plan.folders import require_writable_page
    from layerboard.leaderboards.blocks.csv import csv_text
    from layerboard.leaderboards.report.found import found_page
    from layerboard.zoo.atomic import write_whole

    require_writable_page(request.to, request.cache)
    checked, further = _checked(request, report or reporter_for(None))
    groups = request.to.with_name(f"{request.to.stem}-groups.csv")
    page = checked.page._replace(notes=(*notes_of(checked, groups), *further))
    frame = checked.frame
    paths = request.to, request.to.with_suffix(".csv"), groups
    contents = found_page(page), csv_text(frame.astype(object)), checked.groups
    for path, content in zip(paths, contents, strict=True):
        write_whole(path, content)
    return PageFiles(
        title=page.title,
        frame=frame,
        table=frame[:0],
        notes=page.notes,
        parts=tuple(_by_kind(frame)),
        paths=paths,
    )


def _checked(request: DuplicatesRequest, report: "Reporter") -> "tuple[Checked, list[str]]":
    """The folder and what its audit found, and notes on the layers that were used and on what is left out."""
    from layerboard.benchmark.audit import audited
    from layerboard.benchmark.commands.known_layer import OF_IMAGES, known_layer
    from layerboard.benchmark.folder import measured_backbones, own_images, read_vectors, sentences
    from layerboard.tasks.framework.identity import own_name

    images = own_images(Request.of(request))
    names = request.backbones or measured_backbones(request.output, own_name(images.data)) or (USUAL,)
    folder = read_vectors(images._replace(request=replace(images.request, backbones=names)), report)
    known = {
        name: known_layer(setup.spec, OF_IMAGES, request.output) for name, setup in folder.setups.items()
    }
    spaces = {name: each.vectors for name, each in known.items()}
    checked = audited(folder, spaces, report, request.precision)
    left = [*folder.remarks, *([f"without classes: {images.unlabelled}"] if images.unlabelled else [])]
    return checked, [*_used(checked, known), *sentences(left)]


def _used(checked: "Checked", known: "Mapping[str, KnownLayer]") -> Iterator[str]:
    """The layers that were used, and why; and a note on a toy network among the backbones."""
    used = {space.name for space in checked.audit.spaces}
    for name, each in known.items():
        if f"{name} {each.vectors}" in used:
            yield f"{name}, layer {each.layer}: {each.why}."
    for name in [name for name, setup in checked.folder.setups.items() if setup.spec.is_toy][:1]:
        yield TOY.format(name=name)


def _by_kind(findings: "pd.DataFrame") -> Iterator[Result]:
    """The findings of each kind, of which the table has the first."""
    from layerboard.benchmark.audit import KINDS

    for name, kind in KINDS.items():
        rows = findings[findings["finding"] == name]
        if len(rows):
            more = (f"{len(rows) - SHOWN} more rows: the table has them.",) if len(rows) > SHOWN else ()
            table = kind.table(rows).head(SHOWN)
            yield Result(title=kind.title, frame=rows, table=table, notes=more)
