"""Views: what they show, and where the coordinate map says that it lands."""

import io
import math
from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from layerboard.zoo.view.geometry import ViewSize
from layerboard.zoo.view.photos import as_seen, open_file
from layerboard.zoo.view.released import (
    CornerSquare,
    NativeFrame,
    NativeSquare,
    OfTokens,
    ScriptFrame,
    TokenFrame,
)
from layerboard.zoo.view.views import (
    FastResized,
    FitLongSide,
    Letterbox,
    LoweredSquare,
    Mirrored,
    ResizeCrop,
    Stretch,
    ThumbnailCrop,
    Tiles,
    View,
    WholeFrame,
    fast_resized,
    nearest_multiple,
    tiles_of,
    view_size,
)
from tests.zoo.load.test_positions import antialiased

Array = NDArray[np.float64]

VIEWS: tuple[View, ...] = (
    *(ResizeCrop(short, 224) for short in (256, 224)),
    FitLongSide(224, multiple=16),
    *(Letterbox(224, lanczos=lanczos) for lanczos in (False, True)),
    LoweredSquare(256, bilinear=True),
    ThumbnailCrop(224, 224),
    WholeFrame(240, 16),
    Tiles(448, 224, multiple=16),
    *map(Mirrored, (ResizeCrop(256, 224), Letterbox(224), FastResized(Stretch(224, bilinear=True)))),
    *map(FastResized, (ResizeCrop(256, 224), Letterbox(224), Tiles(448, 224, multiple=16))),
)
SIZES = ((500, 375), (375, 500), (300, 300), (641, 427), (120, 90))
FEW_SIZES = SIZES[:1] + SIZES[-2:]


def noise(size: tuple[int, int], seed: int = 0) -> Image.Image:
    width, height = size
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def dot(size: tuple[int, int], point: tuple[float, float]) -> Image.Image:
    """A blurred white dot at a point in pixel edges."""
    x, y = np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5
    spread = 2 * (0.02 * max(size)) ** 2
    blob = np.exp(-((x[None] - point[0]) ** 2 + (y[:, None] - point[1]) ** 2) / spread)
    return Image.fromarray(np.uint8(255 * blob)).convert("RGB")


def centroid(pixels: Tensor) -> Array:
    """Centre of brightness of [3 height width], as (x, y) in pixel edges."""
    weight = pixels[0].double()
    rows, columns = weight.sum(1), weight.sum(0)
    x = (columns * (torch.arange(len(columns)) + 0.5)).sum() / columns.sum()
    y = (rows * (torch.arange(len(rows)) + 0.5)).sum() / rows.sum()
    return np.array([float(x), float(y)])


def whole(view: View, tiles: Tensor, size: tuple[int, int]) -> Tensor:
    """Rendered pixels as one image [3 height width]."""
    cut = tiles_of(view)
    return tiles[0] if cut is None else cut.assemble(tiles.permute(0, 2, 3, 1), size).permute(2, 0, 1)


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_dot_lands_where_the_geometry_says(view: View) -> None:
    point, boxes = (221.3, 160.8), (None, (60.2, 40.7, 430.0, 330.0))
    for size, box in product([(500, 375), (450, 600)], boxes):
        geometry = view.geometry(size, box)
        shown = whole(view, view.render(dot(size, point), box), geometry.size)
        assert tuple(shown.shape[1:]) == geometry.size[::-1]
        expected = geometry.to_view(np.array(point))
        np.testing.assert_allclose(centroid(shown), expected, atol=0.6)
        np.testing.assert_allclose(geometry.to_image(expected), point)


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_sizes_agree_and_content_is_inside(view: View) -> None:
    """And the size of the view says what a backbone is shown."""
    for size in SIZES:
        geometry = view.geometry(size)
        tiles = view.render(noise(size))
        assert tiles.dtype == torch.uint8
        assert tuple(whole(view, tiles, geometry.size).shape[1:]) == geometry.size[::-1]
        left, top, right, bottom = geometry.content
        assert 0 <= left < right <= geometry.size[0]
        assert 0 <= top < bottom <= geometry.size[1]
        found, (rows, _, height, width) = view_size(view, size), tiles.shape
        assert (found.tiles, found.shown) == (rows, (width, height))
        assert ViewSize.parse(str(found)) == found


def test_view_sizes_in_words() -> None:
    assert str(ViewSize(184, 136)) == "184 x 136"
    tiled = ViewSize(152, 128, 64)
    assert (str(tiled), tiled.tiles, tiled.cells(8)) == ("152 x 128 in tiles of 64", 6, 19 * 16)
    assert [ViewSize.parse(text) for text in ("", "image", "184x136", "1 x 2 x 3", "99999 x 1")] == [None] * 5


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_scaled_views_have_sides_that_are_multiples(view: View) -> None:
    for input_size, multiple in product((64, 224), (8, 14, 16, 32)):
        scaled = view.scaled(input_size, multiple)
        if input_size == 64:
            assert not {side % multiple for side in scaled.render(noise(SIZES[-1])).shape[2:]} - {0}
        assert all(side % multiple == 0 for size in SIZES for side in scaled.geometry(size).size)


def test_a_mirrored_view_shows_the_same_pixels_from_the_other_side() -> None:
    image, view = noise((90, 120)), ResizeCrop(256, 224)
    assert torch.equal(Mirrored(view).render(image).flip(-1), view.render(image))
    assert Mirrored(view).scaled(64, 8) == Mirrored(view.scaled(64, 8))


@pytest.mark.parametrize(
    "view",
    [ResizeCrop(256, 224), Letterbox(224), Tiles(448, 224), WholeFrame(240, 16), Stretch(224, bilinear=True)],
    ids=repr,
)
@pytest.mark.parametrize("size", FEW_SIZES)
def test_torch_resizes_to_pixels_two_grey_levels_apart_at_most(
    view: ResizeCrop | Letterbox | Tiles | WholeFrame | Stretch, size: tuple[int, int]
) -> None:
    image, fast = noise(size), FastResized(view)
    apart = (view.render(image).int() - fast.render(image).int()).abs()
    assert 0 < int(apart.max()) <= 2
    assert fast.geometry(size) == view.geometry(size)
    assert fast.scaled(64, 8) == FastResized(view.scaled(64, 8))


def test_views_that_torch_cannot_show_stay_as_they_are() -> None:
    released = (CornerSquare(512), OfTokens(Stretch(480), 60), ScriptFrame(480, 64))
    for view in (Letterbox(224, lanczos=True), ThumbnailCrop(224, 224), *released):
        assert fast_resized(view) is view
    crop = ResizeCrop(256, 224)
    assert fast_resized(Mirrored(crop)) == Mirrored(FastResized(crop)) != Mirrored(crop)


def test_sizes_of_a_mini_backbone() -> None:
    assert ResizeCrop(256, 224).scaled(64, 8) == ResizeCrop(73, 64)
    assert Tiles(448, 224).scaled(64, 8) == Tiles(128, 64, 8)
    assert WholeFrame(480).scaled(64, 8) == WholeFrame(136, 8)
    assert Letterbox(224).scaled(64, 8) == Letterbox(64)
    assert Letterbox(224, lanczos=True).scaled(64, 8) == Letterbox(64, lanczos=True)
    assert ThumbnailCrop(224, 224).scaled(64, 8) == ThumbnailCrop(64, 64)
    assert ThumbnailCrop(224, 224).scaled(64, 14) == ThumbnailCrop(70, 70)  # both follow the patches
    assert ThumbnailCrop(448, 224).scaled(64, 14) == ThumbnailCrop(140, 70)


def nearest_sides(size: tuple[int, int], short: int, patch: int) -> tuple[int, int]:
    """Both sides in proportion to a shorter side, to the nearest multiple (halves up), in whole numbers."""
    exact = [(2 * side * short + patch * min(size)) // (2 * patch * min(size)) for side in size]
    return exact[0] * patch, exact[1] * patch


FRAMES = [(854, 480), (910, 480), (1152, 480), (640, 480), (480, 854), (1920, 1080)]


@pytest.mark.parametrize("short", [480, 960, 1440])
def test_sizes_of_table_5_are_seven_eighths_for_patches_of_14(short: int) -> None:
    for size, (patch, stated) in product(FRAMES, ((16, short), (14, short * 7 // 8))):
        for input_size in (224, 448, 518):  # of no effect
            view = TokenFrame(short).scaled(input_size, patch)
            assert view.geometry(size).size == nearest_sides(size, stated, patch)
        if size == FRAMES[0]:
            assert view.render(noise(size)).shape[2:] == nearest_sides(size, stated, patch)[::-1]
    assert TokenFrame(960).scaled(224, 16).geometry((854, 480)).size == (1712, 960)
    assert TokenFrame(960).scaled(224, 14).geometry((854, 480)).size == (1498, 840)


@pytest.mark.parametrize(
    ("native", "patch", "side"), [(224, 14, 224), (384, 16, 384), (448, 14, 448), (512, 16, 448), (64, 8, 64)]
)
def test_a_native_size_ends_at_448(native: int, patch: int, side: int) -> None:
    frame, square = NativeFrame(448).scaled(native, patch), NativeSquare(448).scaled(native, patch)
    for size in FRAMES:
        assert frame.geometry(size).size == nearest_sides(size, side, patch)
        assert square.geometry(size).size == (side, side)
    assert frame.render(noise((854, 480))).shape[2:] == nearest_sides((854, 480), side, patch)[::-1]


@pytest.mark.parametrize(
    ("size", "multiple", "grid", "tiles"),
    [
        ((854, 480), 32, (14, 24), 8),
        ((854, 480), 16, (28, 49), 8),
        ((854, 480), 14, (32, 56), 8),
        ((854, 480), 8, (56, 99), 8),
        ((910, 480), 16, (28, 53), 8),
        ((1152, 480), 16, (28, 67), 10),
        ((640, 480), 16, (28, 37), 6),
    ],
)
def test_tiles_of_the_paper(size: tuple[int, int], multiple: int, grid: tuple[int, int], tiles: int) -> None:
    """Examples measured with the code of Walmer et al., CVPR 2023."""
    view = Tiles(448, 224).scaled(224, multiple)
    width, height = view.geometry(size).size
    assert (height // multiple, width // multiple) == grid
    assert len(view.corners((width, height))) == tiles


def test_the_first_tile_wins_where_tiles_overlap() -> None:
    view = Tiles(448, 224, 16)
    resized = (784, 448)
    count = len(view.corners(resized))
    grids = torch.arange(count)[:, None, None, None].expand(count, 14, 14, 1)
    grid = view.assemble(grids, resized)[..., 0]
    assert grid.shape == (28, 49)
    for row, column in product(range(28), range(49)):
        covering = [
            index
            for index, (left, top) in enumerate(view.corners(resized))
            if left <= 16 * column < left + 224 and top <= 16 * row < top + 224
        ]
        assert grid[row, column] == min(covering)


def _torchvision_rule(image: Image.Image, short: int, crop: int) -> Array:
    """Resize(short), CenterCrop(crop) by torchvision's arithmetic, resampled by matrices in float64."""
    width, height = image.size
    if height < width:
        new_height, new_width = short, int(short * width / height)
    else:
        new_height, new_width = int(short * height / width), short
    across, down = antialiased(new_width, width), antialiased(new_height, height)
    # Pillow rounds and clips between its two passes, across first.
    pixels = np.asarray(image, dtype=np.float64)
    pixels = np.clip(np.floor(across @ pixels + 0.5), 0, 255)
    pixels = np.clip(np.floor(np.tensordot(down, pixels, 1) + 0.5), 0, 255)
    top, left = round((new_height - crop) / 2.0), round((new_width - crop) / 2.0)
    return pixels[top : top + crop, left : left + crop]


@pytest.mark.parametrize("size", FEW_SIZES)
@pytest.mark.parametrize(("short", "crop"), [(256, 224), (73, 64)])
def test_resize_crop_is_the_rule_of_torchvision(size: tuple[int, int], short: int, crop: int) -> None:
    image = noise(size)
    found = ResizeCrop(short, crop).render(image)[0].permute(1, 2, 0).numpy().astype(np.float64)
    expected = _torchvision_rule(image, short, crop)
    assert found.shape == expected.shape == (crop, crop, 3)
    assert np.abs(found - expected).max() <= 1
    assert (found == expected).mean() > 0.995


def shrunk(image: Image.Image, long: int) -> Image.Image:
    """Longer side to ``long``, the other to the whole number that changes the aspect least."""
    width, height = image.size
    if max(width, height) <= long:
        return image
    longer, shorter = max(width, height), min(width, height)
    exact = long * shorter / longer
    sides = [max(1, math.floor(exact)), max(1, math.ceil(exact))]
    side = min(sides, key=lambda length: abs(longer / shorter - long / length))
    size = (long, side) if width >= height else (side, long)
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def centre_square(image: Image.Image, side: int) -> NDArray[np.uint8]:
    """Shorter side to ``side``, the longer one floored, the centre with offsets rounded half to even."""
    width, height = image.size
    size = (side, side * height // width) if width <= height else (side * width // height, side)
    left, top = (round((length - side) / 2) for length in size)
    return np.array(image.resize(size, Image.Resampling.BICUBIC))[top : top + side, left : left + side]


@pytest.mark.parametrize("size", [*FEW_SIZES, (1024, 768), (300, 1000), (225, 224), (90, 224), (60, 200)])
@pytest.mark.parametrize("view", [ThumbnailCrop(224, 224), ThumbnailCrop(100, 64)])
def test_thumbnail_crop_shrinks_then_enlarges(view: ThumbnailCrop, size: tuple[int, int]) -> None:
    image = noise(size)
    found = view.render(image)[0].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(found, centre_square(shrunk(image, view.long), view.crop))
    assert image.size == size  # a thumbnail is made in place: of a copy


def test_thumbnail_crop_averages_blocks_before_it_resamples() -> None:
    image = noise((1024, 768))
    plain = centre_square(image.resize((224, 168), Image.Resampling.LANCZOS), 224)
    found = ThumbnailCrop(224, 224).render(image)[0].permute(1, 2, 0).numpy()
    assert not (found == plain).all()


@pytest.mark.parametrize(
    ("size", "corners"),
    [
        ((1024, 768), [(-37, 0), (261, 224)]),  # 224 x 168, then 298 x 224
        ((768, 1024), [(0, -37), (224, 261)]),
        ((500, 500), [(0, 0), (224, 224)]),
        ((120, 90), [(-37, 0), (261, 224)]),  # 298 x 224 at once
        ((1000, 300), [(-262, 0), (486, 224)]),  # 224 x 67, then 748 x 224
    ],
)
def test_corners_of_a_thumbnail_crop(size: tuple[int, int], corners: list[tuple[int, int]]) -> None:
    geometry = ThumbnailCrop(224, 224).geometry(size)
    found = geometry.to_view(np.array([(0, 0), size], np.float64))
    np.testing.assert_allclose(found, corners, atol=1e-9)
    assert (geometry.size, geometry.content) == ((224, 224), (0, 0, 224, 224))


@pytest.mark.parametrize("size", SIZES)
def test_a_letterbox_by_lanczos(size: tuple[int, int]) -> None:
    image, view = noise(size), Letterbox(64, lanczos=True)
    scale = 64 / max(size)
    width, height = (round(length * scale) for length in size)
    left, top = (64 - width) // 2, (64 - height) // 2
    expected = np.zeros((64, 64, 3), np.uint8)
    shown = image.resize((width, height), Image.Resampling.LANCZOS)
    expected[top : top + height, left : left + width] = np.array(shown)
    np.testing.assert_array_equal(view.render(image)[0].permute(1, 2, 0).numpy(), expected)
    assert not torch.equal(view.render(image), Letterbox(64).render(image))
    assert view.geometry(size) == Letterbox(64).geometry(size)


@pytest.mark.parametrize("long", [192, 320, 384, 500, 640, 768])
@pytest.mark.parametrize("lanczos", [False, True])
def test_a_letterbox_rounds_the_exact_side(long: int, lanczos: bool) -> None:
    """By the released code's expression, at its half-way sizes, too, such as 640 x 330."""
    for short in range(1, long):
        height = max(1, int(np.around(224 * short / long)))
        content = Letterbox(224, lanczos).geometry((long, short)).content
        assert (content[0], content[2], content[3] - content[1]) == (0, 224, height)
        assert content[1] == int((224 - height) / 2)


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_box_is_the_crop_of_the_image(view: View) -> None:
    image = noise((500, 375))
    box = (100.4, 50.5, 399.6, 500.0)
    cropped = image.crop((100, 50, 400, 375))
    assert torch.equal(view.render(image, box), view.render(cropped))
    inner, outer = view.geometry(cropped.size), view.geometry(image.size, box)
    assert inner.size == outer.size
    point = np.array([[130.0, 90.0]])
    np.testing.assert_allclose(outer.to_view(point), inner.to_view(point - [100, 50]))


@pytest.mark.parametrize("view", [ResizeCrop(256, 224), ResizeCrop(73, 64), ResizeCrop(439, 384)], ids=repr)
def test_only_what_the_crop_keeps_is_resized_and_the_pixels_are_those_of_the_whole(view: ResizeCrop) -> None:
    random = np.random.default_rng(view.crop)
    for seed, (mode, sampling, progressive) in enumerate(product(("RGB", "L", "CMYK"), range(3), range(2))):
        width, height = random.integers(40, 500, 2).tolist()
        file = io.BytesIO()
        grain = noise((width // 4 + 1, height // 4 + 1), seed).resize((width, height)).convert(mode)
        grain.save(file, "JPEG", subsampling=sampling, progressive=bool(progressive), quality=90)
        image = as_seen(open_file(file))
        size = view._resized(image.size)
        left, top = (round((side - view.crop) / 2) for side in size)
        wanted = image.resize(size, Image.Resampling.BICUBIC)
        wanted = wanted.crop((left, top, left + view.crop, top + view.crop))
        assert np.array_equal(view.render(image)[0].permute(1, 2, 0), np.asarray(wanted)), (size, width)


@pytest.mark.parametrize(
    ("length", "multiple", "expected"), [(7.9, 8, 8), (12, 8, 16), (11.9, 8, 8), (1, 8, 8)]
)
def test_nearest_multiple(length: float, multiple: int, expected: int) -> None:
    assert nearest_multiple(length, multiple) == expected
