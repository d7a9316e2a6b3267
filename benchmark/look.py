"""What every layer of backbones shows of a few images, from one forward pass per image."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, pad

from layerboard.benchmark.engines.progress import Advance, Reporter
from layerboard.benchmark.plan.layers import select_layers
from layerboard.benchmark.plan.plan import view_for
from layerboard.leaderboards.blocks.display import natural
from layerboard.leaderboards.report import principal
from layerboard.leaderboards.report.look import BackboneMaps, LayerMaps, Picture, TokenAttention
from layerboard.tasks.analyses.attention_maps import aligned_map, head_offset, offset_index
from layerboard.tasks.analyses.metrics.attention import fuse_heads, patch_query_map, roll
from layerboard.tasks.datasets.reading.tree import read_tree
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.errors import InputError, counted, ensure, some
from layerboard.zoo.features import AttentionMaps, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.frames import frames_of, spaced_indices
from layerboard.zoo.view.geometry import nearest_multiple
from layerboard.zoo.view.views import REFERENCE_SIZE, FitLongSide, Stretch, View

DIRECTIONS = 64  # maximum number of principal directions of tokens that are kept
ENOUGH = 0.99  # share of the variance that is enough
PROBED = 128  # tokens whose cosines with all others are compared with those of the reduced tokens
MOST_MEGABYTES = 64  # maximum size of a page
MOST_PIXELS_SHOWN = 2**29  # of all pictures of a page, which are in memory together: 2 GiB
MOST_SIDE = 4096  # pixels of the longer side of a picture, which is made smaller if it has more
CELLS = (40, 28, 20, 0)  # along the longer side of a picture: the first number whose page is small enough
MATRIX_CELLS = (14, 10, 7, 5)  # likewise of attention matrices
MATRIX_MEGABYTES = 8  # maximum size of the attention matrices of a page, beside its maps
FINER = 16  # pixels of the cells that are counted if grids become coarser with depth, at most


class LayerOfPicture(NamedTuple):
    """What a layer shows of one image."""

    grid: Tensor  # patch tokens, [rows columns dim], float32
    prefix_lengths: list[float]  # norms of the tokens before the patches
    maps: dict[str, Floats]  # attention by name, [cells]
    kinds: tuple[str, ...]  # of its heads
    matrix: TokenAttention | None  # attention of all tokens


def pictures_of(paths: Sequence[Path], frames: int, report: Reporter) -> list[Picture]:
    """The pictures of images, animations, videos and folders; at most ``frames`` of each, evenly spaced.

    Reports what a folder has beyond that. Raises InputError if nothing is there, or if a file is no picture.
    """
    shown: list[tuple[Path, str, Image.Image]] = []
    for path in paths:
        ensure(path.exists(), f"expected an image, a video or a folder at {path}, which does not exist")
        names = sorted(read_tree(path).images, key=natural) if path.is_dir() else []
        ensure(not path.is_dir() or names, f"expected images in the folder {path}, found none")
        if len(names) > frames:
            report.say(f"{path}: {frames} of {len(names):,} pictures, evenly spaced; --frames takes more")
        files = [path / names[index] for index in spaced_indices(len(names), frames)] if names else [path]
        for file in files:
            for name, image in frames_of(file, 1 if names else frames):
                image.thumbnail((MOST_SIDE, MOST_SIDE))  # a file of 60 bytes may have a screen of 363 MB
                shown.append((file, name, image))
            if (pixels := sum(image.width * image.height for _, _, image in shown)) > MOST_PIXELS_SHOWN:
                raise InputError(
                    f"{len(shown)} pictures have {pixels:,} pixels, of at most {MOST_PIXELS_SHOWN:,} on a "
                    "page; take fewer --frames, or make them smaller"
                )
    ensure(shown, "expected an image, a video or a folder of images; name one")
    if len({name for _, name, _ in shown}) < len(shown):
        shown = [(file, f"{file.parent.name}/{name}", image) for file, name, image in shown]
    return [Picture(name, image) for _, name, image in shown]


def view_of(spec: BackboneSpec) -> View:
    """The whole image, its longer side at the backbone's input size; a square if it takes no other shape."""
    return view_for(spec, Stretch(REFERENCE_SIZE) if spec.fixed_size else FitLongSide(REFERENCE_SIZE))


def enlarged(
    specs: Sequence[BackboneSpec], pictures: Sequence[Picture], layers: str, report: Reporter
) -> tuple[BackboneSpec, ...]:
    """Backbones at input sizes at which they show pictures in about 40 cells across, or fewer if many.

    None is made smaller than its own size, and one that takes a single size keeps it; reports both.
    """
    for cells in CELLS:
        sized = tuple(with_cells(spec, cells) for spec in specs)
        # a page of a size that nobody asked for opens quickly
        if _megabytes(pictures, {spec: select_layers(layers, spec) for spec in sized}) <= MOST_MEGABYTES / 2:
            break
    for spec in sized:
        if spec.fixed_size:
            across = spec.input_size // spec.patch_size
            report.say(
                f"{spec.name} takes images of {spec.input_size} px only: {counted(across, 'cells')} across"
            )
    changes = [(own.input_size, spec.input_size, spec.name) for own, spec in zip(specs, sized, strict=True)]
    for (own, side), changed in groupby(sorted(changes), lambda change: change[:2]):
        if own != side:
            report.say(
                f"{some(name for *_, name in changed)}: pictures at {side} px, for fine maps; --input-size "
                f"{own}, as in other commands, is faster, with {(side / own) ** 2:.0f} x fewer cells"
            )
    return sized


def with_cells(spec: BackboneSpec, cells: int) -> BackboneSpec:
    """A backbone at a size of at least so many cells across, if it takes any size."""
    cell = spec.patch_size if len(spec.stages) == 1 else min(spec.patch_size, FINER)
    side = nearest_multiple(max(spec.input_size, cells * cell), spec.patch_size)
    return spec if spec.fixed_size else replace(spec, input_size=side)


def require_small(pictures: Sequence[Picture], layers: Mapping[BackboneSpec, Sequence[Layer]]) -> None:
    """Raise InputError if the page, with the layers of each backbone, would exceed `MOST_MEGABYTES`."""
    if (megabytes := _megabytes(pictures, layers)) > MOST_MEGABYTES:
        raise InputError(
            f"a page of {len(pictures)} pictures through {len(layers)} backbones would have up to "
            f"{megabytes:,.0f} MB, of at most {MOST_MEGABYTES}; take fewer --frames or --layers, or a "
            "smaller --input-size"
        )


def _megabytes(pictures: Sequence[Picture], layers: Mapping[BackboneSpec, Sequence[Layer]]) -> float:
    """Size of a page at most."""
    megabytes = 0.0
    for spec, chosen in layers.items():
        sizes = [view_of(spec).geometry(picture.image.size).size for picture in pictures]
        strides = [spec.stage_of(layer).stride for layer in chosen]
        cells = sum((width // stride) * (height // stride) for width, height in sizes for stride in strides)
        megabytes += cells * (DIRECTIONS + 7 + (spec.heads or 0)) / 1e6
    return megabytes


def matrix_cells(pictures: Sequence[Picture], layers: Mapping[BackboneSpec, Sequence[Layer]]) -> int:
    """Cells of attention matrices along the longer side, so that those of a page are small enough."""
    heads = sum(len(chosen) * (1 + (spec.heads or -1)) for spec, chosen in layers.items())
    most = MATRIX_MEGABYTES * 1e6 / max(1, heads * len(pictures))
    return next((cells for cells in MATRIX_CELLS if cells**4 <= most), MATRIX_CELLS[-1])


def look_at(
    backbone: Backbone,
    pictures: Sequence[Picture],
    layers: Sequence[Layer],
    onto: LayerMaps | None,
    advance: Advance,
    cells: int,
) -> BackboneMaps:
    """What some layers of a backbone show of pictures.

    Colours of the last layer are aligned with those of ``onto``, if given, and those of every other layer
    with the next layer. Attention matrices have that many cells along the longer side, at most. Raises
    InputError if the backbone cannot be shown a picture.
    """
    spec = backbone.spec
    attends = tuple(Layer(index, "probabilities") for index in range(1, spec.depth + 1))
    notes = [reason] if (reason := backbone.refusal(attends)) else []
    if not reason and not spec.has_cls:
        notes.append(f"{spec.name} has no class token: attention and rollout are means over all patches.")
    seen = []
    for picture in pictures:
        seen.append(_forward(backbone, picture, layers, () if reason else attends, cells))
        advance(1)
    maps: list[LayerMaps] = []
    for layer in reversed(layers):
        onto = _joint(str(layer), [each.pop(layer) for each in seen], onto)
        maps.insert(0, onto)
    return BackboneMaps(spec, tuple(maps), tuple(notes))


def _forward(
    backbone: Backbone, picture: Picture, layers: Sequence[Layer], attends: Sequence[Layer], cells: int
) -> dict[Layer, LayerOfPicture]:
    """One forward pass of one picture: what each of the layers shows, with the attention of blocks."""
    seen: dict[Layer, LayerOfPicture] = {}
    attention: dict[int, tuple[dict[str, Floats], tuple[str, ...], TokenAttention | None]] = {}
    rolled: Tensor | None = None

    def keep(shown: Shown) -> None:
        nonlocal rolled
        if isinstance(shown, AttentionMaps):
            rolled = roll(fuse_heads(shown.probabilities, "mean"), rolled)
            if shown.layer.index in {layer.index for layer in layers}:
                maps = _attention(shown, rolled, has_cls=backbone.spec.has_cls)
                attention[shown.layer.index] = maps, _kinds(shown), _token_attention(shown, cells)
            return
        if not bool(shown.grid.isfinite().all()):
            what = f"{backbone.spec.name}: numbers of layer {shown.layer} are not finite"
            raise InputError(f"{what} in {backbone.spec.dtype}; take --dtype float32")
        prefix = shown.grid[:, :0, 0] if shown.prefix is None else shown.prefix
        lengths = prefix[0].float().norm(dim=-1).tolist()
        # the final norm has the attention of the last block
        attended = attention.get(shown.layer.index, ({}, (), None))
        seen[shown.layer] = LayerOfPicture(shown.grid[0].float().cpu().clone(), lengths, *attended)

    backbone.visit(view_of(backbone.spec).render(picture.image), keep, (*attends, *layers))
    return seen


def _attention(shown: AttentionMaps, rolled: Tensor, *, has_cls: bool) -> dict[str, Floats]:
    """Attention of the class token, or the mean over patches, by head and averaged; the rollout; [cells]."""
    first = shown.prefix_tokens
    looked = shown.probabilities[0], rolled[0]
    rows = (maps[..., 0, :] if has_cls else patch_query_map(maps, first) for maps in looked)
    each, all_layers = (row[..., first:].double().cpu().numpy() for row in rows)
    named = {"attention": each.mean(axis=0), "rollout": all_layers}
    return named | {f"head {number}": head for number, head in enumerate(each, 1)}


def _token_attention(shown: AttentionMaps, most: int) -> TokenAttention:
    """Attention of all tokens, the mean of the heads first; squares of patches together if there are many.

    What such a square gives is the mean over its patches, and what it gets is their sum.
    """
    (rows, columns), first = shown.cells, shown.prefix_tokens
    step = -(-max(rows, columns) // most)
    patches = torch.eye(rows * columns, device=shown.probabilities.device).view(-1, 1, rows, columns)
    squares = avg_pool2d(patches, step, ceil_mode=True)
    shares = pad(squares.flatten(1), (first, 0, first, 0))
    shares.diagonal()[:first] = 1
    heads = shares.T @ shown.probabilities[0].float() @ (shares > 0).float()
    every = torch.cat([heads.mean(dim=0, keepdim=True), heads]).cpu().numpy()
    return TokenAttention(first, (squares.shape[2], squares.shape[3]), every)


def _kinds(shown: AttentionMaps) -> tuple[str, ...]:
    """The kind of each head by the attention of all patches of one picture; none where it is not finite."""
    patches = shown.patches[0]
    if not bool(patches.isfinite().all()):
        return ()
    index = offset_index(shown.cells, patches.device)
    heads = (aligned_map(head[None], index, shown.cells)[0] for head in patches)  # one, to save memory
    return tuple(head_offset(head.cpu().numpy()).name for head in heads)


def _joint(name: str, seen: Sequence[LayerOfPicture], onto: LayerMaps | None) -> LayerMaps:
    """What a layer shows of all pictures."""
    grids = [each.grid.double().numpy() for each in seen]
    sizes = tuple((grid.shape[0], grid.shape[1]) for grid in grids)
    plain = np.concatenate([grid.reshape(-1, grid.shape[2]) for grid in grids])
    tokens = principal.unit(plain)
    first = principal.principal(tokens, DIRECTIONS, ENOUGH)
    scores = first.scores[:, : principal.COLOURS]
    scores = np.pad(scores, ((0, 0), (0, principal.COLOURS - scores.shape[1])))
    if onto:
        others = (_at_size(part, size) for part, size in zip(onto.split(onto.turned), sizes, strict=True))
        scores = principal.turned(scores, np.concatenate([*others]))
    probed = np.array(spaced_indices(len(tokens), PROBED))
    stored = principal.quantised(first)
    kept = principal.restore_tokens(*stored, first.square)
    error = float(np.abs(kept.cosines(probed) - tokens[probed] @ tokens.T).max())
    maps = {"length": np.concatenate([np.linalg.norm(grid, axis=-1).ravel() for grid in grids])}
    maps |= {name: np.concatenate([each.maps[name] for each in seen]) for name in seen[0].maps}
    lengths = np.array([each.prefix_lengths for each in seen])
    kinds = tuple(each.kinds for each in seen if each.kinds)
    matrices = tuple(each.matrix for each in seen if each.matrix)
    return LayerMaps(name, sizes, first, stored, error, scores, maps, kinds, lengths, matrices)


def _at_size(part: Floats, size: tuple[int, int]) -> Floats:
    """A grid [rows columns 3], resampled to the cells of another grid, [cells 3]."""
    channels = torch.from_numpy(part).permute(2, 0, 1)[None]
    resized: Floats = interpolate(channels, size=size, mode="area")[0].permute(1, 2, 0).reshape(-1, 3).numpy()
    return resized
