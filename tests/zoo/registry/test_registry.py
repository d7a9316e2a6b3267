import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor

from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.registry.find import all_specs, find
from layerboard.zoo.spec import FAMILIES, FLOORS, NO_FILE, Layer
from tests.zoo.conftest import Loader
from tests.zoo.hub_models import counted

FIRST = ", ".join(spec.name for spec in all_specs()[:5])
FROM_FILES = [spec for spec in all_specs() if not spec.origin.supply]


PAPER = {
    "fs-s32": (12, 384, 6, 32),
    "fs-s16": (12, 384, 6, 16),
    "fs-b32": (12, 768, 12, 32),
    "fs-b16": (12, 768, 12, 16),
    "fs-b8": (12, 768, 12, 8),
    "fs-l16": (24, 1024, 16, 16),
    "clip-b32": (12, 768, 12, 32),
    "clip-b16": (12, 768, 12, 16),
    "clip-l14": (24, 1024, 16, 14),
    "dino-s16": (12, 384, 6, 16),
    "dino-s8": (12, 384, 6, 8),
    "dino-b16": (12, 768, 12, 16),
    "dino-b8": (12, 768, 12, 8),
    "dino-s8-300ep": (12, 384, 6, 8),
    "moco-s16": (12, 384, 12, 16),
    "moco-b16": (12, 768, 12, 16),
    "mae-b16": (12, 768, 12, 16),
    "mae-l16": (24, 1024, 16, 16),
    "mae-h14": (32, 1280, 16, 14),
    "beit-b16": (12, 768, 12, 16),
    "beit-l16": (24, 1024, 16, 16),
}
"""Blocks, width, heads and patch of the paper's backbones."""


def test_sizes_are_those_of_the_paper() -> None:
    specs = {name: find([name])[0] for name in PAPER}
    assert {
        name: (spec.depth, spec.width, spec.heads, spec.patch_size) for name, spec in specs.items()
    } == PAPER


def test_resnets() -> None:
    for name, blocks in (("resnet50", 16), ("resnet101", 33), ("resnet152", 50)):
        (spec,) = find([name])
        assert (spec.depth, spec.width, spec.patch_size, spec.stem_width) == (blocks, 2048, 32, 64)
        assert spec.layers[-1] == Layer(blocks)


def test_every_entry_is_complete() -> None:
    assert len(all_specs()) > 90
    for spec in all_specs():
        assert spec.family in FAMILIES
        assert "unknown" not in (spec.licence, spec.data, spec.supervision)
        assert spec.parameters is not None
        assert spec.input_size % spec.patch_size == 0
        assert spec.heads is None or spec.width % spec.heads == 0
        assert spec.paper or not spec.trained
        assert spec.repository or spec.original.startswith("https://")
        assert spec.has_cls <= (spec.prefix_tokens > 0)


def test_pinned_revisions_are_commits() -> None:
    pinned = [spec.revision for spec in all_specs() if spec.revision]
    assert len(pinned) == len(set(pinned)) > 10
    assert all(len(revision) == 40 and int(revision, 16) for revision in pinned)


@pytest.mark.parametrize("family", dict.fromkeys(spec.family for spec in FROM_FILES))
def test_parameters_are_those_of_the_network_at_full_size(family: str) -> None:
    specs = [spec for spec in FROM_FILES if spec.family == family]
    assert {spec.name: spec.parameters for spec in specs} == {spec.name: counted(spec) for spec in specs}


def test_parameters_of_the_mini_backbones(kept: Loader) -> None:
    for spec in all_specs():
        if spec.origin.supply and not spec.is_floor:
            assert spec.parameters == sum(weight.numel() for weight in weights_of(kept(spec)))


def weights_of(backbone: Backbone) -> list[Tensor]:
    """Parameters of a loaded backbone, none twice."""
    assert isinstance(backbone, HookedBackbone)
    network = backbone._network
    parts = [part for part in (network.body, network.final_norm) if part is not None]
    return list({id(weight): weight for part in parts for weight in part.parameters()}.values())


def test_mini_suite_has_every_family_and_twelve_blocks() -> None:
    suite = find(["mini-*"])
    assert [spec.family for spec in find(MINI_SUITE.backbones)] == [*FAMILIES[:7]]
    assert {spec.family for spec in suite if spec.trained} == {*FAMILIES[:7]}
    assert {spec.family for spec in suite if not spec.trained} == {*("FS", "CLIP", "BEiT", "ResNet"), *FLOORS}
    assert {spec.depth for spec in suite if not spec.is_floor} == {12}
    assert [spec.depth for spec in suite if spec.is_floor] == [10, 1]
    assert {spec.input_size for spec in suite} == {64}


def test_no_two_entries_have_one_name() -> None:
    names = [spec.name for spec in all_specs()]
    assert sorted(set(names)) == sorted(names)


def test_patterns_keep_the_order_of_the_registry_and_match_once() -> None:
    names = [spec.name for spec in find(["resnet50", "dino-?16", "dino-s16", "clip-b1?"])]
    assert names == ["clip-b16", "dino-s16", "dino-b16", "resnet50"]


def test_a_hub_id_or_a_revision_of_an_entry() -> None:
    (dino,) = find(["dino-b16"])
    assert find(["facebook/dino-vitb16"]) == (dino,)
    (pinned,) = find(["dino-b16@abc123"])
    assert pinned == replace(dino, name="dino-b16@abc123", revision="abc123", file=NO_FILE)
    assert dino.revision
    assert find([f"dino-b16@{dino.revision}"])[0].file == dino.file
    assert find(["facebook/dino-vitb16@abc123"]) == (pinned,) or pinned.revision == "abc123"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("dino-b61", "No backbone is called 'dino-b61'; did you mean dino-b16"),
        ("qqqq", f"; there are {FIRST} and 1"),
        ("dinno-*", "No backbone is called"),
        ("mini-fs@bfloat32", "mini-fs has no revision .bfloat32.; .* mini-fs@448px@bfloat16@fast-resize"),
        ("no/such-model", "no/such-model is neither a directory nor in the cache"),
        ("./no/such/folder", "neither a directory nor"),
    ],
)
def test_unknown_names(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find([pattern])


IMPORTS = """
import sys
from pathlib import Path
from layerboard.zoo.registry.find import all_specs, find
all_specs(), find(["dino-*"])
print({"torch", "transformers", "numpy", "huggingface_hub"} & {*sys.modules})
from layerboard.zoo.load.backbone import identify
[identify(spec, cache_dir=Path("cache")) for spec in find(["mini-fs", "random"])]
print({"transformers", "torch._dynamo", "scipy"} & {*sys.modules})
"""


@pytest.mark.slow
def test_listing_and_identifying_import_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["set()", "set()"]
