"""Backbones outside the registry: Python objects, and what is said of those whose spec was inferred."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
import torch

from layerboard.benchmark.engines.base import LocalEngine
from layerboard.benchmark.engines.choose import suited_engine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.backbones import find_backbones
from layerboard.benchmark.plan.plan import view_for
from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import describe_backbone, load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.views import ResizeCrop, Tiles, WholeFrame
from tests.benchmark.doubles import SPEC
from tests.benchmark.engines.own_worker import means
from tests.benchmark.engines.test_engines import Heard
from tests.benchmark.runs import run
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import reduce
from workshop.list_queue import results_in_order

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def loaded(spec: BackboneSpec) -> Backbone:
    """A backbone on the CPU."""
    return load_backbone(spec, device=torch.device("cpu"), cache_dir=Path())


def example(page: str, word: str) -> str:
    """The Python on a page that has a word."""
    text = (PAGES / page).read_text(encoding="utf-8")
    (found,) = (one for one in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if word in one)
    return str(found)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], str]]:
    """Writes the page's example, one text replaced, as a module; gives the reference of its class."""
    monkeypatch.chdir(tmp_path)
    text = example("own_backbones.md", "class Mixer")
    written: list[str] = []

    def writer(name: str, old: str = "", new: str = "") -> str:
        assert old in text
        Path(f"{name}.py").write_text(text.replace(old, new, 1), encoding="utf-8")
        written.append(name)
        return f"{name}:Mixer"

    yield writer
    for name in written:
        sys.modules.pop(name, None)


def test_the_example_of_the_page_runs(write: Callable[..., str], tmp_path: Path, data: Path) -> None:
    reference = write("own_first")
    records = run(tmp_path, [reference], "knn", "davis", data=data, layers="all")
    assert set(records["backbone"]) == {"own-mixer"}
    assert set(zip(records["layer"], records["tap"], strict=True)) == {
        (1, "block"),
        (2, "block"),
        (3, "block"),
    }
    assert set(records["revision"]) == {"1"}
    assert records["pooling"].isin(["mean", "grid"]).all()
    assert str(tmp_path) not in sys.path


def test_the_attention_of_the_page_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(example("taps.md", "load_backbone"), {})  # the page's own words
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert lines[0] == "1.probabilities torch.Size([1, 3, 65, 65])"


def test_an_object_shows_the_outputs_of_its_blocks_alone(write: Callable[..., str]) -> None:
    (spec,) = find([write("own_alone", "heads=None", "heads=4")])
    backbone = loaded(spec)
    lacks = "; a network of torch does, by layerboard.from_module."
    assert backbone.refusal(spec.layers) == ""
    maps = f"own-mixer shows no attention probabilities{lacks}"
    assert backbone.refusal([Layer(2, "probabilities"), Layer(1)]) == maps
    assert backbone.fields_refusal() == f"own-mixer gives no gradients{lacks}"
    assert {*backbone.weights().reason.values()} == {f"own-mixer shows no weights{lacks}"}
    with pytest.raises(InputError, match=r"'own-mixer' names taps, and an object shows the outputs of its"):
        find([write("own_taps", "heads=None", 'heads=None, taps=("heads",)')])


NETWORKS = """
import torch

import layerboard
from tests.zoo.own.module.networks import SIZE, Vit

def plain():
    net = Vit()
    net.config = type("Config", (), {"image_size": SIZE})
    return net

def read():
    return layerboard.from_module(Vit(), name="own-read", blocks="blocks.*", image_size=SIZE, verbose=False)

def odd():
    return torch.nn.Linear(3, 3)
"""


def test_a_function_may_return_a_network_or_what_from_module_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own_networks.py").write_text(NETWORKS)
    names = ["own_networks:plain", "own_networks:read"]
    specs = find(names)
    assert [spec.name for spec in specs] == ["plain", "own-read"]
    assert describe_backbone(specs[0], None).startswith("plain: 3 blocks of net.blocks, 1 prefix token + 4x4")
    assert not isinstance(suited_engine(specs, Request(workers=2), [torch.device("cpu")]), LocalEngine)
    records = run(tmp_path, names, "knn", data=data, layers="3")
    assert records["backbone"].nunique() == 2
    scored = records[records["value"].notna()]
    first, second = (scored[scored["backbone"] == name]["value"].tolist() for name in ("plain", "own-read"))
    assert first == second != []
    assert loaded(specs[0]).refusal([Layer(3, "block-normed")]) == ""
    with pytest.raises(InputError, match=r"own_networks:odd: Linear does not take images"):
        find(["own_networks:odd"])
    sys.modules.pop("own_networks")


@pytest.mark.slow  # a process of its own imports torch
def test_a_process_builds_its_own(write: Callable[..., str]) -> None:
    (spec,) = find([write("own_a")])
    heard = Heard()
    beside = results_in_order(ProcessEngine(1, threads=1), means, [spec], heard)
    assert beside == results_in_order(LocalEngine(), means, [spec], heard)
    assert len(beside[0]) == 4
    assert heard.lines == ["own-mixer", "own-mixer"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "stride=16),)",
            "stride=16), Stage(1, 2, 12))",
            "has strides that do not divide the coarsest, 16 px",
        ),
        ("input_size=64", "input_size=60", "has an input size of 60 px, which is no multiple of 16 px"),
        ('family="other"', 'family="a | b"', "has the family 'a | b'; take a word of letters, digits and"),
        ("has_cls=False", "has_cls=True", "has a class token and 0 prefix tokens"),
        ("blocks=3", "blocks=0", "needs stages with blocks, widths and strides from 1 on"),
        ("input_size=64", "std=(0, 1, 1)", "needs a std above 0"),
        ("    def visit(", "    def look(", "should have an attribute visit of type Callable; found None"),
        ('revision = "1"', 'revision = ""', "should have an attribute revision of type str; found ''"),
        ("torch.float32", '"float32"', "an attribute dtype of type dtype; found 'float32'"),
        ("import hashlib", "import hash_lib", "cannot be imported: No module named 'hash_lib'"),
        ("import hashlib", "1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("class Mixer", "class Other", "has no function Mixer"),
        ("    def __init__(self):", "    def __init__(self, x):", r"failed: TypeError: .*missing 1 required"),
        ("own-mixer", "dino-b16", "has a backbone of the name 'dino-b16'; give yours, "),
    ],
)
def test_a_wrong_object_is_one_sentence(write: Callable[..., str], old: str, new: str, message: str) -> None:
    reference = write(f"own_wrong_{crc32((old + new).encode())}", old, new)
    with pytest.raises(InputError, match=message):
        find([reference])


def test_a_family_is_a_free_word(write: Callable[..., str]) -> None:
    (spec,) = find([write("own_family", 'family="other"', 'family="MLP Mixer"')])
    assert (spec.family, spec.is_floor) == ("MLP Mixer", False)


def test_a_missing_module_and_two_of_one_name(write: Callable[..., str]) -> None:
    with pytest.raises(InputError, match=r"there is no module own_nowhere in .* or among those installed"):
        find(["own_nowhere:Mixer"])
    with pytest.raises(InputError, match="Two backbones are called 'own-mixer'"):
        find([write("own_c"), write("own_d")])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "range(self.spec.depth + 1)",
            "range(self.spec.depth)",
            "does not show layer 3, which it was asked for",
        ),
        (
            "if layers is None or Layer(index) in layers",
            "if index != 1",
            "the next layer that visit shows should be 1; found 2",
        ),
        ("None, x))", "None, x[..., :8]))", "should be .*, 4, 4, 32.; found .*, 4, 4, 8."),
        ("None, x))", "x[:, 0, 0], x))", "cls .batch dim. of layer 0 should be None"),
        ("None, x))", "None, x / len(y)))", "visit failed on one image, or on two: NameError: .*'y' is not"),
        (
            "None, x))",
            "None, x - x.mean(0)))",
            "backbone of own_shows.* at layer 0 with the images beside it",
        ),
        ("None, x))", "None, x + torch.rand(1)))", "at layer 0 with the images beside it, .* or by chance"),
        ("None, x))", "None, x / len(x)))", "at layer 0 with the images beside it"),
        ('torch.device("cpu"), torch.float32', 'torch.device("cpu"), torch.float16', "give --dtype float16"),
        ('torch.device("cpu")', 'torch.device("meta")', "runs with device meta, the run with cpu"),
    ],
)
def test_what_it_shows_is_compared_with_its_spec(
    write: Callable[..., str], old: str, new: str, message: str
) -> None:
    reference = write(f"own_shows_{crc32((old + new).encode())}", old, new)
    with pytest.raises(InputError, match=message):
        loaded(find([reference])[0])


def test_one_size_only(write: Callable[..., str], tmp_path: Path, data: Path) -> None:
    reference = write("own_fixed", "input_size=64", "input_size=64, fixed_size=True")
    (spec,) = find([reference])
    assert view_for(spec, WholeFrame(480)) == Tiles(144, 64, 16)
    assert view_for(spec, ResizeCrop(256, 224)) == ResizeCrop(73, 64)
    assert view_for(SPEC, WholeFrame(480)) == WholeFrame(72, 8)
    records = run(tmp_path, [reference], "davis", "retrieval", data=data, layers="3", fails=True)
    assert set(records["task"]) == {"davis"}
    assert records["value"].notna().all()
    assert len(records.attrs["failures"]) == 2
    assert all("takes images of 64 x 64 px only" in failure for failure in records.attrs["failures"])
    with pytest.raises(InputError, match="own-mixer takes images of 64 px only, not 96"):
        run(tmp_path, [reference], "davis", data=data, input_size=100)


def test_what_was_inferred_is_said_in_one_line(write: Callable[..., str], tmp_path: Path) -> None:
    small = reduce(find(["dino-b16"])[0], tmp_path / "vit").folder
    values = {"image_mean": [0.5, 0.25, 0.125], "image_std": [1, 1, 1], "size": 64}
    (small / "preprocessor_config.json").write_text(json.dumps(values))
    save(tmp_path / "conv", "ConvNextModel")
    save(tmp_path / "plain", "Dinov2Model")
    (tmp_path / "plain" / "preprocessor_config.json").write_text('{"do_normalize": false}')
    names = ("vit", "conv", "plain", write("own_said"), "mini-fs")
    heard = Heard()
    find_backbones(Request(names, floor=False, input_size=64), MINI_SUITE, heard)
    found = [line for line in heard.lines if "mean (" in line]
    assert found[0].startswith(
        "vit: 3 blocks of width 48, 12 heads, 1 prefix token (a class token), patch size 16"
    )
    assert found[0].endswith(
        "a final norm, from config.json (model type vit); images at 64 px; mean (0.5, 0.25, 0.125) and "
        "std (1, 1, 1) from preprocessor_config.json"
    )
    assert (
        "3 blocks of width 16/32, no attention, 0 prefix tokens (no class token), patch size 4/8 px"
        in found[1]
    )
    assert found[1].endswith(
        "from what is usual for the model type convnext, since no preprocessor_config.json"
    )
    assert found[2].endswith("from preprocessor_config.json, which does not normalise")
    assert found[3].endswith("all from the spec that own_said:Mixer gives")
    assert len(found) == 4
