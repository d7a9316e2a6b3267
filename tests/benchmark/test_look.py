"""`look`: pictures through every layer, as a user asks for them, against the features that `load` gives."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import layerboard
from layerboard.benchmark import look as looking
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms import parsers
from layerboard.leaderboards.charts.style import kind_colours
from layerboard.leaderboards.inside.drawings.attention import HEADS
from layerboard.tasks.analyses.attention_maps import aligned_map, head_offset, offset_index
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from tests import fakes
from tests.benchmark.runs import Cli
from tests.zoo.load.test_infer import save

HOSTILE = "a<b>&'\".png"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two images of different shapes, one with a name that markup would take for a tag."""
    folder = tmp_path_factory.mktemp("photos")
    generator = np.random.default_rng(0)
    fakes.fake_image(1, (90, 60), generator)[0].save(folder / HOSTILE)
    fakes.fake_image(2, (64, 64), generator)[0].save(folder / "b.png")
    return folder


@pytest.fixture(scope="module")
def looked(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page, its figures and arrays."""
    folder = tmp_path_factory.mktemp("looked")
    page, both = folder / "page.html", ["mini-dino", "mini-resnet"]
    layerboard.look(photos, backbones=both, to=page, save=True, input_size=64, device="cpu")
    return folder


def page_data(page: Path) -> dict[str, Any]:
    """What the page's script reads."""
    pattern = r'<script type="application/json" id="data">(.*?)</script>'
    (found,) = re.findall(pattern, page.read_text(encoding="utf-8"), re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data


def grids(photos: Path, name: str, layer: str) -> list[np.ndarray]:
    """What a layer gives of each picture, shown as `look` shows it."""
    encode = layerboard.load(name, layer=layer, pooling="grid", device="cpu")
    found = []
    for path in sorted(photos.iterdir()):
        pixels = looking.view_of(encode.spec).render(Image.open(path).convert("RGB"))
        found.append(encode(pixels)[0].double().numpy())
    return found


@pytest.mark.parametrize(
    ("name", "layer"), [("mini-dino", "7"), ("mini-dino", "final"), ("mini-resnet", "5")]
)
def test_arrays_are_those_of_numpy(looked: Path, photos: Path, name: str, layer: str) -> None:
    with np.load(looked / "page-files" / f"{name}.npz") as file:
        saved = {key.partition(".")[2]: file[key] for key in file.files if key.startswith(f"{layer}.")}
    own = grids(photos, name, layer)
    assert saved["grids"].tolist() == [list(grid.shape[:2]) for grid in own]
    plain = np.concatenate([grid.reshape(-1, grid.shape[2]) for grid in own])
    tokens = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(saved["length"], np.linalg.norm(plain, axis=1), rtol=1e-5)
    left, values, _ = np.linalg.svd(tokens - tokens.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(saved["scores"][:, :8]), np.abs(left * values)[:, :8], atol=2e-5)
    cosines = saved["square"] + saved["along"][:, None] + saved["along"] + saved["scores"] @ saved["scores"].T
    count = saved["scores"].shape[1]
    assert count <= 64
    lost = 1 - (values**2)[:count].sum() / (values**2).sum()
    assert lost <= 0.01 or count == 64
    assert np.square(cosines - tokens @ tokens.T).mean() <= lost + 1e-9


def test_attention_and_rollout_are_there_where_there_is_attention(looked: Path) -> None:
    with np.load(looked / "page-files" / "mini-dino.npz") as file:
        heads = np.stack([file[f"7.head-{number}"] for number in (1, 2, 3)])
        np.testing.assert_allclose(file["7.attention"], heads.mean(axis=0), atol=1e-7)
        assert (heads.sum(axis=1) < 2).all()  # two pictures, less what goes to the class token
        assert file["1.rollout"].sum() <= file["12.rollout"].sum()
        np.testing.assert_allclose(file["1.rollout"], file["1.attention"] / 2, atol=1e-6)
        np.testing.assert_array_equal(file["final.attention"], file["12.attention"])
    with np.load(looked / "page-files" / "mini-resnet.npz") as file:
        assert {key.partition(".")[2] for key in file.files} == {
            *("scores", "along", "square", "shares", "grids", "colours", "length", "prefix-length")
        }
    names = {path.name for path in (looked / "page-files").iterdir()}
    assert names == {f"mini-resnet.{end}" for end in ("npz", "colours.png", "length.png")} | {
        f"mini-dino.{end}"
        for end in ("npz", *(f"{kind}.png" for kind in ("colours", "length", "attention", "rollout")))
    } | {"mini-dino.heads-1.png", "mini-dino.heads-2.png"}


def test_attention_of_all_tokens_is_that_of_the_network(looked: Path, photos: Path) -> None:
    """At its own size each patch stands for itself; the class token's row is what the maps show."""
    spec = replace(find(["mini-dino"])[0], input_size=64)
    pixels = looking.view_of(spec).render(Image.open(photos / "b.png").convert("RGB"))
    found: list[torch.Tensor] = []
    load_backbone(spec, device=torch.device("cpu"), cache_dir=None).visit(
        pixels, lambda shown: found.append(shown.probabilities[0]), (Layer(7, "probabilities"),)
    )
    with np.load(looked / "page-files" / "mini-dino.npz") as file:
        matrix, mean = file["7.matrix-2"], file["7.attention"]
    np.testing.assert_allclose(matrix[1:], found[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(matrix[0], matrix[1:].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(matrix[0, 0, 1:], mean[-64:], atol=1e-6)
    (layer,) = (
        each for each in page_data(looked / "page.html")["backbones"][0]["layers"] if each["name"] == "7"
    )
    assert layer["matrices"][1] == {"prefix": 1, "grid": [8, 8], "shape": [4, 65, 65]}


def test_attention_of_many_patches_is_that_of_squares(photos: Path) -> None:
    """A square gives the mean of what its patches give, and gets the sum; no attention is lost."""
    spec, pictures = (
        replace(find(["mini-dino"])[0], input_size=96),
        looking.pictures_of([photos], 8, Silent()),
    )
    backbone = load_backbone(spec, device=torch.device("cpu"), cache_dir=None)
    maps = [
        looking.look_at(backbone, pictures[1:], [Layer(7)], None, lambda done: None, cells)
        for cells in (12, 5)
    ]
    fine, coarse = (each.layers[0].matrices[0] for each in maps)
    assert (fine.grid, coarse.grid) == ((12, 12), (4, 4))
    np.testing.assert_allclose(coarse.heads.sum(axis=2), 1, atol=1e-5)
    squares = fine.heads[:, 1:, 1:].reshape(4, 4, 3, 4, 3, 4, 3, 4, 3).mean(axis=(2, 4)).sum(axis=(4, 6))
    np.testing.assert_allclose(coarse.heads[:, 1:, 1:], squares.reshape(4, 16, 16), atol=1e-6)
    many = {spec: spec.layers}
    assert [looking.matrix_cells(pictures * count, many) for count in (1, 20, 1000)] == [14, 7, 5]


def test_each_head_has_its_kind_in_each_picture(looked: Path, photos: Path) -> None:
    data = page_data(looked / "page.html")
    dino, resnet = ([layer["kinds"] for layer in each["layers"]] for each in data["backbones"])
    assert [np.shape(kinds) for kinds in dino] == [(2, 3)] * 12 + [(0,)]  # the final norm has none
    assert {kind for layer in dino[:12] for kinds in layer for kind in kinds} <= set(data["kinds"])
    assert resnet == [[]] * 12
    spec = replace(find(["mini-dino"])[0], input_size=64)
    pixels = looking.view_of(spec).render(Image.open(photos / "b.png").convert("RGB"))
    found: list[torch.Tensor] = []
    load_backbone(spec, device=torch.device("cpu"), cache_dir=None).visit(
        pixels, lambda shown: found.append(shown.patches[0]), (Layer(7, "probabilities"),)
    )
    aligned = aligned_map(found[0], offset_index((8, 8)), (8, 8)).numpy()
    assert dino[6][1] == [head_offset(head).name for head in aligned]


def test_a_wall_has_all_heads_and_layers_framed_by_kind(looked: Path) -> None:
    with Image.open(looked / "page-files" / "mini-dino.heads-2.png") as wall:
        assert wall.size == (13 * 86 - 6, 20 + 3 * 86 - 6 + 20)  # the picture and 12 layers; three heads
        frame = wall.getpixel((86, 20))
    assert "#{:02x}{:02x}{:02x}".format(*frame) in kind_colours([*HEADS]).values()


def test_lengths_of_registers_are_there_and_those_of_the_model(photos: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "own", "Dinov2WithRegistersModel", num_register_tokens=3)
    own, page = str(tmp_path / "own"), tmp_path / "a.html"
    layerboard.look(photos / "b.png", backbones=own, to=page, save=True, input_size=56)
    (path,) = (tmp_path / "a-files").glob("*.npz")
    encode = layerboard.load(tmp_path / "own", device="cpu")
    pixels = looking.view_of(encode.spec).render(Image.open(photos / "b.png").convert("RGB")).float() / 255
    mean, std = (torch.tensor(part)[:, None, None] for part in (encode.spec.mean, encode.spec.std))
    with torch.no_grad():
        tokens = model((pixels - mean) / std).last_hidden_state[0]
    with np.load(path) as file:
        np.testing.assert_allclose(file["final.prefix-length"][0], tokens[:4].norm(dim=1).numpy(), rtol=1e-4)
        np.testing.assert_allclose(file["final.length"], tokens[4:].norm(dim=1).numpy(), rtol=1e-4)


def test_the_page_is_one_file_with_escaped_names(looked: Path) -> None:
    text = (looked / "page.html").read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "default-src &#39;none&#39;" in text
    assert "http://" not in text
    assert "https://" not in text
    data = page_data(looked / "page.html")
    assert [picture["name"] for picture in data["pictures"]] == [HOSTILE, "b.png"]
    assert [backbone["notes"] for backbone in data["backbones"]] == [[], ["mini-resnet has no attention."]]
    assert [layer["name"] for layer in data["backbones"][0]["layers"]] == [*map(str, range(1, 13)), "final"]
    errors = [layer["error"] for backbone in data["backbones"] for layer in backbone["layers"]]
    assert all(0 < error < 0.5 for error in errors)


def test_colours_of_neighbouring_layers_hardly_differ(looked: Path) -> None:
    """Tokens change little from one of the last blocks to the next, and so do their colours."""
    with np.load(looked / "page-files" / "mini-dino.npz") as file:
        last, before = (file[f"{layer}.colours"].astype(float) for layer in ("12", "11"))
    assert np.abs(last - before).mean() < 25


def sizes_of(
    cli: Cli, page: Path, *arguments: object
) -> tuple[dict[str, tuple[str, list[list[int]]]], list[str]]:
    """For each backbone of a page its description and the grids of its last layer; and what was printed."""
    said = cli("look", *arguments, "--to", page)
    assert said.code == 0, said.err
    backbones = page_data(page)["backbones"]
    grids = {each["name"]: (each["about"], each["layers"][-1]["grids"]) for each in backbones}
    return grids, said.err.splitlines()


def test_pictures_are_shown_in_forty_cells(cli: Cli, photos: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    sizes, said = sizes_of(cli, page, photos, "-b", "mini-resnet", "--layers", "12")
    assert sizes["mini-resnet"][1] == [[27, 40], [40, 40]]
    assert sizes["mini-resnet"][0].endswith("pictures at 640 px")
    assert said == [
        "mini-resnet: pictures at 640 px, for fine maps; --input-size 64, as in other commands, is faster, "
        "with 100 x fewer cells"
    ]
    for asked in (("-b", "mini-fs@64px"), ("-b", "mini-fs", "--input-size", "64")):
        sizes, said = sizes_of(cli, page, photos, *asked, "--layers", "12")
        assert (sizes["mini-fs"][1], said) == ([[5, 8], [8, 8]], [])
    sizes, said = sizes_of(cli, page, photos, "-b", "mini-resnet", "--input-size", "96", "--layers", "12")
    assert sizes["mini-resnet@96px"][1] == [[4, 6], [6, 6]]


def test_many_pictures_are_shown_in_fewer_cells(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = looking.pictures_of([photos], 8, Silent())
    specs = find(["mini-fs", "mini-dino"])
    said: list[str] = []
    for most, side in ((64, 320), (9, 224), (5, 160), (1, 64)):
        monkeypatch.setattr(looking, "MOST_MEGABYTES", most)
        sized = looking.enlarged(specs, pictures, "all", Silent(say=said.append))
        assert [spec.input_size for spec in sized] == [side, side]
    assert [line.partition(",")[0] for line in said] == ["mini-dino"] * 3
    assert [line.partition(" px")[0].rpartition(" ")[2] for line in said] == ["320", "224", "160"]


def test_a_backbone_of_one_size_keeps_it(photos: Path, tmp_path: Path) -> None:
    positions = torch.nn.Parameter(torch.zeros(1, 12, 8, 8))
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 8, 8), Added(positions), torch.nn.Conv2d(12, 12, 1))
    mine = layerboard.from_module(net, name="fixed", blocks=[net[1], net[2]], image_size=64, verbose=False)
    layerboard.look(photos, backbones=mine, layers="2", to=tmp_path / "own.html")
    said: list[str] = []
    fixed, other = find(["mini-fs", "mini-resnet"])
    sized = looking.enlarged([replace(fixed, fixed_size=True), other], [], "all", Silent(say=said.append))
    assert [spec.input_size for spec in sized] == [64, 640]
    assert said[0] == "mini-fs takes images of 64 px only: 8 cells across"
    text = (tmp_path / "own.html").read_text()
    assert "pictures at 64 px, the only size that it takes" in text


class Added(torch.nn.Module):
    """Adds a table of positions, which fits one size only."""

    def __init__(self, table: torch.nn.Parameter) -> None:
        super().__init__()
        self.table = table

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return maps + self.table


def test_all_pictures_of_a_page_have_a_limit(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_PIXELS_SHOWN", 9000)
    with pytest.raises(InputError, match=r"2 pictures have 9,496 pixels, of at most 9,000 on a page; take"):
        looking.pictures_of([photos], 8, Silent())


def test_odd_images_are_shown(tmp_path: Path) -> None:
    Image.new("L", (1, 1), 7).save(tmp_path / "pixel.png")
    Image.new("RGBA", (1000, 1), (9, 9, 9, 0)).save(tmp_path / "wide.png")
    turned = Image.new("RGB", (40, 20), "red")
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.jpg", exif=exif)
    pictures = looking.pictures_of([tmp_path], 8, Silent())
    assert {picture.name: picture.image.size for picture in pictures} == {
        "pixel.png": (1, 1), "wide.png": (1000, 1), "turned.jpg": (20, 40),
    }  # fmt: skip
    layerboard.look(
        tmp_path, backbones="mini-fs", layers="12", to=tmp_path / "a.html", save=True, input_size=64
    )


def test_a_folder_gives_evenly_spaced_frames_in_the_order_of_numbers(tmp_path: Path) -> None:
    for number in range(12):
        Image.new("RGB", (4, 4)).save(tmp_path / f"{number}.png")
    said: list[str] = []
    pictures = looking.pictures_of([tmp_path, tmp_path / "3.png"], 3, Silent(say=said.append))
    names = [picture.name for picture in pictures]
    assert said == [f"{tmp_path}: 3 of 12 pictures, evenly spaced; --frames takes more"]
    assert names == ["0.png", "6.png", "11.png", "3.png"]
    (tmp_path / "more").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "more" / "3.png")
    both = looking.pictures_of([tmp_path / "3.png", tmp_path / "more"], 1, Silent())
    assert [picture.name for picture in both] == [f"{tmp_path.name}/3.png", "more/3.png"]


def test_wrong_inputs_are_one_sentence(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words")
    (tmp_path / "empty").mkdir()
    for arguments, expected in (
        ((tmp_path / "no.png",), "expected an image, a video or a folder at "),
        ((tmp_path / "a.txt",), "cannot decode image "),
        ((tmp_path / "empty",), "expected images in the folder "),
        ((photos, "-b", "mini-dina"), "No backbone is called 'mini-dina'; did you mean mini-dino"),
        ((photos, "-b", "mini-dino", "--layers", "13"), "mini-dino has layers 0 to 12, there is no layer 13"),
        ((photos, "--input-size", "9000"), "a page of 2 pictures through 3 backbones would have up to "),
    ):
        said = cli("look", *arguments, "--to", tmp_path / "page.html")
        assert said.code == 2
        assert said.err.startswith(f"error: {expected}")
        assert said.err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(InputError, match="takes at least one value, found an empty list"):
        layerboard.look([])


def test_images_in_memory_are_looked_at_as_files() -> None:
    image = Image.new("RGB", (8, 6), "red")
    for given, count in ((np.asarray(image), 1), (image, 1), ([image, np.asarray(image)], 2)):
        (folder,) = parsers.pictures(given)
        assert [picture.image.size for picture in looking.pictures_of([folder], 8, Silent())] == [
            (8, 6)
        ] * count
    with pytest.raises(InputError, match="expected images of Pillow"):
        layerboard.look([image, 3])
