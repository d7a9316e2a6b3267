"""Visualise images in every layer: the command `look` and `layerboard.look`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import public
from layerboard.benchmark.commands.result import PageFiles, page_files
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import OnePath, Option, Plain
from layerboard.benchmark.forms.request import (
    BACKBONES,
    WEIGHTS,
    Backbones,
    DeviceOptions,
    LayerOptions,
    ProgressOption,
    Request,
    Weights,
)

if TYPE_CHECKING:
    from layerboard.leaderboards.report.look import BackboneMaps, Picture

USUAL = ("mini-fs", "mini-dino", "mini-mae")


class LookRequest(ProgressOption, LayerOptions, DeviceOptions, kw_only=False):
    """Options of `look`: the images and the backbones."""

    images: Option[str | Path | Sequence[str | Path] | object, tuple[Path, ...]] = Option(
        ..., "Images, videos, animations, or folders of images; from Python also images.", parsers.pictures
    )
    _: KW_ONLY
    backbones: Option[Backbones, tuple[str, ...]] = Option(
        USUAL, BACKBONES, parsers.backbones, also="-b", usual="three toy networks"
    )
    to: OnePath = Option("look.html", "HTML file to write.")
    save: Plain[bool] = Option(
        False, "Also write figures (PNG) and arrays (npz) to NAME-files beside the page."
    )
    frames: Plain[int] = Option(
        8, "Maximum number of images of a folder, video or animation, evenly spaced.", least=1
    )
    input_size: Plain[int | None] = Option(
        None,
        "Longer side in pixels, rounded to the patch size.",
        least=1,
        usual="about 40 cells across, at least each backbone's own",
    )
    weights: Weights = Option((), WEIGHTS, parsers.weights)


@public("look", LookRequest)
def look(request: LookRequest) -> PageFiles:
    """Show images through every layer, on one HTML page.

    The page works offline. It shows patch tokens as colours (PCA), their similarity to the patch under the
    pointer, attention by head of the class token, of that patch and of all tokens, attention rollout, and
    token norms, but no classes; its controls select the layer and the view.

    Example: `layerboard look photo.jpg -b dino-b16 clip-b16`

    Returns:
        ``paths`` are the written files, the page first, which a notebook shows.

    Example:
        >>> import layerboard
        >>> layerboard.look("photos/train/n00000001", backbones="mini-dino", frames=2, to="page.html").paths
        (...Path('page.html'),)
    """
    from layerboard.benchmark.engines.choose import find_device
    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.look import enlarged, look_at, matrix_cells, pictures_of, require_small
    from layerboard.benchmark.plan.backbones import find_backbones, named_variants
    from layerboard.benchmark.plan.layers import select_layers
    from layerboard.benchmark.plan.suites import SUITES
    from layerboard.leaderboards.report.look import look_page
    from layerboard.zoo.atomic import write_whole
    from layerboard.zoo.load.backbone import load_backbone

    report, device = reporter_for(request.progress), find_device(request.device)
    pictures = pictures_of(request.images, request.frames, report)
    asked = Request.of(request, images=(), floor=False)
    specs = find_backbones(asked, SUITES[0], report)
    if not (request.input_size or any(named.input_size for named in named_variants(request.backbones))):
        specs = tuple(enlarged(specs, pictures, request.layers, report))
    layers = {spec: select_layers(request.layers, spec) for spec in specs}
    require_small(pictures, layers)
    cells = matrix_cells(pictures, layers)
    backbones: list[BackboneMaps] = []
    with report.bar("looking", len(pictures) * len(layers), "images") as advance:
        for spec, chosen in layers.items():
            network = load_backbone(spec, device=device, cache_dir=request.cache)
            onto = backbones[0].layers[-1] if backbones else None
            backbones.append(look_at(network, pictures, chosen, onto, advance, cells))
    write_whole(request.to, look_page(pictures, backbones))
    folder = request.to.with_name(f"{request.to.stem}-files")
    further = _saved(folder, pictures, backbones) if request.save else []
    return page_files([request.to, *further])


def _saved(folder: Path, pictures: "Sequence[Picture]", backbones: "Sequence[BackboneMaps]") -> list[Path]:
    """Write the arrays and figures of each backbone; returns the written files."""
    from layerboard.leaderboards.records.arrays import write_arrays
    from layerboard.leaderboards.records.files import safe_name
    from layerboard.leaderboards.report.look import arrays_of, figures
    from layerboard.zoo.atomic import whole_file

    paths = []
    for backbone in backbones:
        name = safe_name(backbone.spec.name)
        paths.append(folder / f"{name}.npz")
        write_arrays(arrays_of(backbone), paths[-1])
        for kind, image in figures(pictures, backbone).items():
            paths.append(folder / f"{name}.{kind}.png")
            with whole_file(paths[-1]) as draft:
                image.save(draft, "PNG")
    return paths
