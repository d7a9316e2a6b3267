"""The page of `layerboard look`: images in every layer, as one self-contained HTML file."""

import base64
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from layerboard.leaderboards.charts.raster import colour_steps
from layerboard.leaderboards.charts.style import kind_colours
from layerboard.leaderboards.inside.drawings.attention import HEADS
from layerboard.leaderboards.inside.evidence import MOST_BLOCKS, MOST_ROWS, evenly
from layerboard.leaderboards.report.packing import image_data, json_script
from layerboard.leaderboards.report.principal import COLOURS, PrincipalTokens, colours
from layerboard.leaderboards.report.templates.environment import offline_page
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import BackboneSpec

SIDE = 512  # pixels of the longer side of a picture in the page
MAP = 224  # pixels of the longer side of a map in a figure
WALLED, FRAME = 80, 4  # pixels of the longer side of a map in a wall, and of the frame around it
GAP, HEAD = 6, 20  # pixels between the maps of a figure, and of the line above them
NEAREST = Image.Resampling.NEAREST

Cells = tuple[int, int]  # rows and columns of a grid


@dataclass(frozen=True, slots=True)
class Picture:
    """A named RGB image."""

    name: str
    image: Image.Image


@dataclass(frozen=True, slots=True)
class TokenAttention:
    """Attention of every token of a picture to every token, in a block."""

    prefix: int  # tokens before the patches
    grid: Cells  # of the patches, of which neighbours may be taken together
    heads: NDArray[np.float32]  # [1 + heads tokens tokens], the mean of the heads first

    def packed(self) -> bytes:
        """The largest number of each row, and the row from 0 to 255 of it."""
        tops = self.heads.max(axis=2)
        shares = self.heads / np.where(tops > 0, tops, 1)[..., None]
        return b"".join([tops.astype("<f4").tobytes(), np.rint(shares * 255).astype(np.uint8).tobytes()])


@dataclass(frozen=True, slots=True)
class LayerMaps:
    """What one layer shows of pictures: one or more numbers per cell, pictures one after another.

    ``maps`` are [cells] by name: ``length``, the norm of each token; for blocks with attention also
    ``attention``, the mean over heads of the attention of the class token (or of all patches without one),
    each ``head N``, and ``rollout``. The final norm has those of the last block.
    """

    layer: str
    grids: tuple[Cells, ...]  # of each picture
    tokens: PrincipalTokens  # of unit length
    stored: tuple[NDArray[np.int8], Floats]  # quantised as in the page: integers, step of each column
    error: float  # the largest error of a cosine that the page computes
    turned: Floats  # scores of three directions for colours, aligned with another layer, [cells 3]
    maps: Mapping[str, Floats]
    kinds: tuple[tuple[str, ...], ...]  # of each head in each picture (`HEADS`); none without attention
    prefix_lengths: Floats  # norms of the class token and registers in each picture, [pictures tokens]
    matrices: tuple[TokenAttention, ...] = ()  # of each picture; none without attention

    @property
    def colours(self) -> NDArray[np.uint8]:
        """Red, green and blue of each cell, [cells 3]."""
        return colours(self.turned)

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Numbers of cells [cells ...] as a map of each picture, [rows columns ...]."""
        ends = np.cumsum([rows * columns for rows, columns in self.grids])
        parts = zip(np.split(values, ends[:-1]), self.grids, strict=True)
        return [part.reshape(*grid, *values.shape[1:]) for part, grid in parts]


@dataclass(frozen=True, slots=True)
class BackboneMaps:
    """What the layers of a backbone show of pictures, and notes on what it lacks."""

    spec: BackboneSpec
    layers: tuple[LayerMaps, ...]
    notes: tuple[str, ...]


def look_page(pictures: Sequence[Picture], backbones: Sequence[BackboneMaps]) -> str:
    """The page of some pictures and backbones."""
    content = b"".join(_bytes(layer) for backbone in backbones for layer in backbone.layers)
    data = {
        "pictures": [{"name": each.name} | image_data(each.image, SIDE) for each in pictures],
        "backbones": [_facts(backbone) for backbone in backbones],
        "ramp": colour_steps().tolist(),
        "kinds": {kind: (colour, HEADS[kind]) for kind, colour in kind_colours([*HEADS]).items()},
    }
    return offline_page(
        *("look", "look", ["report", "look"]),
        names=[picture.name for picture in pictures],
        backbones=backbones,
        data=Markup(json_script(data)),  # noqa: S704 - escaped there
        content=base64.b64encode(gzip.compress(content, 6, mtime=0)).decode(),
    )


def _facts(backbone: BackboneMaps) -> dict[str, Any]:
    layers = [
        {
            "name": layer.layer,
            "grids": layer.grids,
            "share": round(float(layer.tokens.shares[:COLOURS].sum()), 4),
            "error": round(layer.error, 4),
            "square": layer.tokens.square,
            "steps": layer.stored[1].tolist(),
            "kinds": layer.kinds if layer.layer != "final" else (),  # its maps are those of the last block
            "maps": {name: _spans(layer, name) for name in layer.maps},
            "prefixLengths": layer.prefix_lengths.round(3).tolist(),
            "matrices": [
                {"prefix": each.prefix, "grid": each.grid, "shape": each.heads.shape}
                for each in layer.matrices
            ],
        }
        for layer in backbone.layers
    ]
    spec = backbone.spec
    size = f"{spec.input_size} px{', the only size that it takes' if spec.fixed_size else ''}"
    about = f"{spec.family}, training data: {spec.data}; pictures at {size}"
    facts = {"name": spec.name, "about": about, "depth": spec.depth, "hasCls": spec.has_cls}
    return facts | {"notes": backbone.notes, "layers": layers}


def _spans(layer: LayerMaps, name: str) -> list[list[float]]:
    """Lowest and highest number of a map in each picture; norms have one range for all pictures."""
    values = layer.maps[name]
    parts = [values] * len(layer.grids) if name == "length" else layer.split(values)
    return [[float(part.min()), float(part.max())] for part in parts]


def _bytes(layer: LayerMaps) -> bytes:
    """Scores of tokens as signed 8-bit integers, colours, each map between its ends, attention matrices."""
    maps = [levels for name in layer.maps for levels in _levels(layer, name)]
    matrices = (each.packed() for each in layer.matrices)
    return b"".join([layer.stored[0].tobytes(), layer.colours.tobytes(), *maps, *matrices])


def _levels(layer: LayerMaps, name: str) -> list[bytes]:
    parts = zip(layer.split(layer.maps[name]), _spans(layer, name), strict=True)
    shares = ((part - low) / ((high - low) or 1) for part, (low, high) in parts)
    return [np.rint(share * 255).astype(np.uint8).tobytes() for share in shares]


def arrays_of(backbone: BackboneMaps) -> dict[str, NDArray[Any]]:
    """Arrays of each layer, named by layer and map: ``12.attention``."""
    arrays: dict[str, NDArray[Any]] = {}
    for layer in backbone.layers:
        named = {name: getattr(layer.tokens, name) for name in ("scores", "along", "square", "shares")}
        named |= {"grids": layer.grids, "colours": layer.colours, "prefix-length": layer.prefix_lengths}
        named |= {name.replace(" ", "-"): values for name, values in layer.maps.items()}
        named |= {f"matrix-{number}": each.heads for number, each in enumerate(layer.matrices, start=1)}
        arrays |= {f"{layer.layer}.{name}": np.asarray(values) for name, values in named.items()}
    return arrays


def figures(pictures: Sequence[Picture], backbone: BackboneMaps) -> dict[str, Image.Image]:
    """Colours and maps by name: rows are pictures, columns are picture and layers; ``heads-1`` is a wall.

    There is a wall for each picture, in order: all of its heads in rows, framed by their kinds.
    """
    small = [_thumbnail(picture, MAP) for picture in pictures]
    every = dict.fromkeys(name for layer in backbone.layers for name in layer.maps)
    names = ("colours", *(name for name in every if not name.startswith("head")))
    sheets = {}
    for name in names:
        layers = (layer for layer in backbone.layers if name in ("colours", *layer.maps))
        columns = {layer.layer: layer.split(_coloured(layer, name)) for layer in layers}
        sheets[name] = _sheet({"": small} | columns)
    attending = [layer for layer in backbone.layers if layer.kinds and layer.layer != "final"]
    for number, picture in enumerate(pictures if attending else ()):
        sheets[f"heads-{number + 1}"] = _wall(picture, attending, number)
    return sheets


def _thumbnail(picture: Picture, side: int) -> NDArray[np.uint8]:
    """Pixels of a picture with that longer side."""
    wide, tall = (max(1, round(each * side / max(picture.image.size))) for each in picture.image.size)
    return np.asarray(picture.image.resize((wide, tall)))


def _wall(picture: Picture, layers: Sequence[LayerMaps], number: int) -> Image.Image:
    """Attention of the heads (rows) of layers (columns) in one picture; of many, evenly spaced ones."""
    colours, small = kind_colours([*HEADS]), _thumbnail(picture, WALLED)
    tall, wide = (max(1, side - 2 * FRAME) for side in small.shape[:2])  # within a frame
    heads = evenly(min(len(layer.kinds[number]) for layer in layers), MOST_ROWS)
    titles = [Image.fromarray(small) for _ in heads]
    for image, head in zip(titles, heads, strict=True):
        ImageDraw.Draw(image).text((2, 2), f"head {head + 1}", "white", stroke_width=2, stroke_fill="black")
    columns = {"": [np.asarray(image) for image in titles]}
    for layer in (layers[index] for index in evenly(len(layers), MOST_BLOCKS)):
        maps = [layer.split(_coloured(layer, f"head {head + 1}"))[number] for head in heads]
        frames = [colours[layer.kinds[number][head]] for head in heads]
        drawn = (Image.fromarray(cells).resize((wide, tall), NEAREST) for cells in maps)
        pairs = zip(drawn, frames, strict=True)
        columns[layer.layer] = [np.asarray(ImageOps.expand(image, FRAME, frame)) for image, frame in pairs]
    wall = _sheet(columns)
    sheet = Image.new("RGB", (wall.width, wall.height + HEAD), "white")
    sheet.paste(wall)
    for step, (kind, colour) in enumerate(colours.items()):
        ImageDraw.Draw(sheet).text((60 * step, wall.height + 4), kind, colour)
    return sheet


def _sheet(columns: Mapping[str, Sequence[NDArray[np.uint8]]]) -> Image.Image:
    """Columns of images by their titles, all at the sizes of the first column's."""
    sizes = [(image.shape[1], image.shape[0]) for image in columns[""]]
    width = max(size[0] for size in sizes) + GAP
    tops = np.cumsum([HEAD, *(size[1] + GAP for size in sizes)]).tolist()
    sheet = Image.new("RGB", (width * len(columns) - GAP, tops[-1] - GAP), "white")
    for left, (title, images) in zip(range(0, sheet.width, width), columns.items(), strict=True):
        ImageDraw.Draw(sheet).text((left, 4), title, "black")
        for top, size, image in zip(tops, sizes, images, strict=False):
            sheet.paste(Image.fromarray(image).resize(size, NEAREST), (left, top))
    return sheet


def _coloured(layer: LayerMaps, name: str) -> NDArray[np.uint8]:
    """Colours of all cells in a map of that name, [cells 3]."""
    if name == "colours":
        return layer.colours
    return colour_steps()[np.frombuffer(b"".join(_levels(layer, name)), np.uint8) // 4]
