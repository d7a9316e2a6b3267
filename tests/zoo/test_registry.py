import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from zoo.errors import InputError
from zoo.registry import all_specs, find, join
from zoo.spec import FAMILIES, Layer

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
    "moco-b16": (12, 768, 12, 16),
    "mae-b16": (12, 768, 12, 16),
    "mae-l16": (24, 1024, 16, 16),
    "mae-h14": (32, 1280, 16, 14),
    "beit-b16": (12, 768, 12, 16),
    "beit-l16": (24, 1024, 16, 16),
}
"""Blocks, width, heads and patch of the paper's backbones."""


@pytest.mark.parametrize("name", PAPER)
def test_sizes_are_those_of_the_paper(name: str) -> None:
    (spec,) = find([name])
    assert (spec.depth, spec.width, spec.heads, spec.patch_size) == PAPER[name]


@pytest.mark.parametrize(("name", "blocks"), [("resnet50", 16), ("resnet101", 33), ("resnet152", 50)])
def test_resnets(name: str, blocks: int) -> None:
    (spec,) = find([name])
    assert (spec.depth, spec.width, spec.patch_size, spec.stem_width) == (blocks, 2048, 32, 64)
    assert spec.layers[-1] == Layer(blocks)


def test_every_entry_is_complete() -> None:
    for spec in all_specs():
        assert spec.family in FAMILIES
        assert spec.licence
        assert spec.input_size % spec.patch_size == 0
        assert spec.heads is None or spec.width % spec.heads == 0
        assert spec.paper or not spec.trained


def test_mini_suite_has_every_family_and_twelve_blocks() -> None:
    suite = find(["mini-*"])
    assert {spec.family for spec in suite} == set(FAMILIES) - {"other"}
    assert {spec.depth for spec in suite if spec.family != "random"} == {12}
    assert {spec.depth for spec in suite if spec.family == "random"} == {10}
    assert {spec.input_size for spec in suite} == {64}


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(ValueError, match="same name: fs-b16"):
        join((find(["fs-b16"]), find(["fs-*"])))


def test_patterns_keep_the_order_of_the_registry_and_match_once() -> None:
    names = [spec.name for spec in find(["resnet50", "dino-*", "dino-s16", "clip-b1?"])]
    assert names == ["clip-b16", "dino-s16", "dino-s8", "dino-b16", "dino-b8", "resnet50"]


def test_a_hub_id_or_a_revision_of_an_entry() -> None:
    (dino,) = find(["dino-b16"])
    assert find(["facebook/dino-vitb16"]) == (dino,)
    (pinned,) = find(["dino-b16@abc123"])
    assert pinned == replace(dino, name="dino-b16@abc123", revision="abc123")
    assert find(["facebook/dino-vitb16@abc123"]) == (pinned,) or pinned.revision == "abc123"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("dino-b61", "No backbone is called 'dino-b61'; did you mean dino-b16"),
        ("qqqq", "No backbone is called 'qqqq'; there are fs-s32"),
        ("dinno-*", "No backbone is called"),
        ("no/such-model", "no/such-model is neither a directory nor in the cache"),
        ("./no/such/folder", "neither a directory nor"),
    ],
)
def test_unknown_names(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find([pattern])


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from zoo.registry import all_specs, find; all_specs(); find(['dino-*', 'mini-fs']);"
        "print(sorted({'torch', 'transformers', 'numpy', 'huggingface_hub'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
