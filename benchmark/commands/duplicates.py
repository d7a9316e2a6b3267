"""Find duplicates, doubtful labels and series in a folder: `duplicates` and `layerboard.duplicates`."""

from dataclasses import KW_ONLY
from functools import partial
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, ended_by_signals, say_files
from layerboard.benchmark.commands.find import TOY, USUAL, SearchOptions
from layerboard.benchmark.commands.result import PageFiles, Result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import OnePath, Option, OptionalPath, Plain, of_form
from layerboard.benchmark.forms.request import BACKBONES, Backbones, Images, Request

if TYPE_CHECKING:
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
    from dataclasses import replace

    from layerboard.benchmark.audit import KINDS, audited, notes_of
    from layerboard.benchmark.commands.known_layer import OF_IMAGES, known_layer
    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.folder import measured_backbones, own_images, read_vectors, sentences
    from layerboard.benchmark.plan.folders import require_writable_page
    from layerboard.leaderboards.blocks.csv import csv_text
    from layerboard.leaderboards.report.found import found_page
    from layerboard.tasks.framework.identity import own_name
    from layerboard.zoo.atomic import write_whole

    report = report or reporter_for(None)
    require_writable_page(request.to, request.cache)
    images = own_images(Request.of(request))
    names = request.backbones or measured_backbones(request.output, own_name(images.data)) or (USUAL,)
    folder = read_vectors(images._replace(request=replace(images.request, backbones=names)), report)
    known = {
        name: known_layer(setup.spec, OF_IMAGES, request.output) for name, setup in folder.setups.items()
    }
    checked = audited(
        folder,
        {name: f"{each.layer} {each.pooling}" for name, each in known.items()},
        report,
        request.precision,
    )
    groups = request.to.with_name(f"{request.to.stem}-groups.csv")
    toys = [name for name, setup in folder.setups.items() if setup.spec.is_toy]
    used = {space.name for space in checked.audit.spaces}
    why = [
        f"{name}, layer {each.layer}: {each.why}."
        for name, each in known.items()
        if f"{name} {each.layer} {each.pooling}" in used
    ]
    left = [*folder.remarks, *([f"without classes: {images.unlabelled}"] if images.unlabelled else [])]
    toy = (TOY.format(name=name) for name in toys[:1])
    page = checked.page._replace(notes=(*notes_of(checked, groups), *why, *toy, *sentences(left)))
    frame, parts = checked.frame, []
    for name, kind in KINDS.items():
        rows = frame[frame["finding"] == name]
        more = (f"{len(rows) - SHOWN} more rows: the table has them.",) if len(rows) > SHOWN else ()
        table = kind.table(rows).head(SHOWN)
        parts += [Result(title=kind.title, frame=rows, table=table, notes=more)] if len(rows) else []
    paths = request.to, request.to.with_suffix(".csv"), groups
    contents = found_page(page), csv_text(frame.astype(object)), checked.groups
    for path, content in zip(paths, contents, strict=True):
        write_whole(path, content)
    return PageFiles(
        title=page.title, frame=frame, table=frame[:0], notes=page.notes, parts=tuple(parts), paths=paths
    )
