"""Several input sizes in one run: which backbones at which, under which names, and what is computed once."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import layerboard
from layerboard.benchmark.api import execute
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.backbones import find_backbones, shown_as_each
from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Variant
from tests.benchmark.engines.test_engines import Heard
from tests.benchmark.runs import Cli, Tally, leave_pages_out, run

FIXED = replace(find(["mini-fs"])[0], name="fixed", fixed_size=True)


def found(**options: object) -> str:
    """Names of the backbones of a request; each has the size of its name, or its own of 64 px."""
    request = Request(**({"backbones": ("mini-fs", "mini-resnet")} | options))  # type: ignore[arg-type]
    specs = find_backbones(request, MINI_SUITE, Silent())
    sizes = (re.search(r"@(\d+)px", one.name) for one in specs)
    assert [one.input_size for one in specs] == [int(size[1]) if size else 64 for size in sizes]
    return " ".join(one.name for one in specs)


FLOORS = "mini-random mini-pixels"
NAMED: tuple[tuple[dict[str, object], str], ...] = (
    ({"input_size": 64}, f"mini-fs mini-resnet {FLOORS}"),
    ({"input_size": 128, "floor": False}, "mini-fs@128px mini-resnet@128px"),
    (
        {"input_size": "64,128"},
        "mini-fs mini-fs@128px mini-resnet mini-resnet@128px mini-random mini-random@128px "
        "mini-pixels mini-pixels@128px",
    ),
    (
        {"input_size": (100, 200), "floor": False, "backbones": "mini-resnet"},
        "mini-resnet@96px mini-resnet@208px",
    ),
    # a name may tell its size, and floors are shown images of the sizes of the others
    (
        {"backbones": ("mini-fs@128px", "mini-resnet", "mini-fs")},
        "mini-fs@128px mini-fs mini-resnet mini-random@128px mini-random mini-pixels@128px mini-pixels",
    ),
    ({"backbones": "mini-fs@64px", "floor": False}, "mini-fs"),
    # formats; floors compute in float32 alone
    (
        {"dtype": "float32,bfloat16", "input_size": "64,128", "floor": False, "backbones": "mini-fs"},
        "mini-fs mini-fs@bfloat16 mini-fs@128px mini-fs@128px@bfloat16",
    ),
    ({"dtype": "bfloat16", "backbones": "mini-fs"}, f"mini-fs@bfloat16 {FLOORS}"),
    (
        {"backbones": ("mini-fs@128px@float16", "mini-fs", "mini-fs@amp-bfloat16"), "floor": False},
        "mini-fs@128px@float16 mini-fs mini-fs@amp-bfloat16",
    ),
    ({"backbones": "mini-fs@float32", "floor": False}, "mini-fs"),
    # how images are resized
    ({"backbones": "mini-fs@128px@float16@fast-resize", "floor": False}, "mini-fs@128px@float16@fast-resize"),
    (
        {"backbones": ("mini-fs", "mini-f?@fast-resize"), "dtype": "float32,bfloat16"},
        f"mini-fs mini-fs@bfloat16 mini-fs@fast-resize mini-fs@bfloat16@fast-resize {FLOORS}",
    ),
)


@pytest.mark.parametrize(("options", "names"), NAMED)
def test_what_is_not_usual_is_in_the_name(options: dict[str, object], names: str) -> None:
    assert sorted(found(**options).split()) == sorted(names.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backbones": "mini-fs@bfloat16", "dtype": "float16"}, "leave it or --dtype out"),
        ({"dtype": "auto,float32"}, "--dtype takes auto, or some of float32, amp-bfloat16"),
        (
            {"backbones": "mini-fs@128px", "input_size": 64},
            "names input sizes .*; leave these or --input-size out",
        ),
        ({"backbones": "mini-nothing@128px"}, "No backbone is called 'mini-nothing'"),
    ],
)
def test_names_that_contradict_the_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        found(**options)


def test_what_cannot_be_run_or_is_the_same_is_said() -> None:
    sizes = [Variant("fixed", size) for size in (64, 128, 67, 256)]
    placed, lines = shown_as_each(FIXED, sizes)
    assert [(one.name, one.input_size) for one in placed] == [("fixed", 64)]
    assert lines == [
        "fixed: 64 and 67 px are both 64 px to it, run once",
        "fixed takes images of 64 px only: it is left out at 128 and 256 px",
    ]
    said: list[str] = []
    (rounded,) = find_backbones(
        Request("mini-fs", input_size=67, floor=False), MINI_SUITE, Silent(say=said.append)
    )
    assert (rounded.name, rounded.input_size) == ("mini-fs", 64)
    assert said == ["mini-fs: images at 64 px, the multiple of its patch size of 8 px nearest to 67"]
    with pytest.raises(InputError, match="fixed takes images of 64 px only, not 128"):
        shown_as_each(FIXED, sizes[1::2])


@pytest.mark.parametrize("value", [0, "64,", "64,x", True, [64, 1.5], "100000"])
def test_sizes_are_whole_numbers(value: object) -> None:
    with pytest.raises(InputError, match=r"--input-size takes whole numbers from 1 to 99999, such as 448"):
        Request(input_size=value)  # type: ignore[arg-type]


def test_a_backbone_is_loaded_by_a_name_with_a_size() -> None:
    assert layerboard.load("mini-fs@128px", layer=1, device="cpu").spec.input_size == 128
    with pytest.raises(InputError, match="'mini-fs@128px' names an input size, and input_size= another"):
        layerboard.load("mini-fs@128px", input_size=64)


@pytest.mark.slow
def test_sizes_are_rows_of_one_run_and_a_second_run_computes_nothing(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"data": data, "input_size": (64, 96), "protocol": "standard,insid3"}
    with Tally().watching() as tally:
        records = run(tmp_path, ["mini-resnet"], "spair", pages=True, **wanted)
    sizes = records.groupby("backbone")["input_size"].unique().map(list).to_dict()
    assert sizes == {"mini-resnet": [64], "mini-resnet@96px": [96]}
    shown_anew = records[records["protocol"] == "standard"].groupby("backbone")
    revisions, prints = (shown_anew[each].agg(set) for each in ("revision", "fingerprint"))
    assert revisions.iloc[0] == revisions.iloc[1]
    assert prints.iloc[0].isdisjoint(prints.iloc[1])
    (large, small) = (
        sum(tally.rows[key] for key in tally.rows if key[0] == name) for name in sorted(sizes, reverse=True)
    )
    assert small == 2 * large  # by two protocols, of which the larger size found one done
    own = records[(records["protocol"] == "insid3") & (records["family"] == "ResNet")]
    values = [
        rows.sort_values(["layer", "tap", "metric"])["value"].tolist() for _, rows in own.groupby("backbone")
    ]
    assert values[0] == values[1]
    pages = (tmp_path / "out" / "tables" / "standard.md").read_text()
    assert "| mini-resnet@96px " in pages.partition("## What variants of a backbone change")[2]

    leave_pages_out(monkeypatch)
    heard = Heard()
    asked = Request(
        backbones="mini-resnet", tasks="spair", output=tmp_path / "out", cache=tmp_path / "cache",
        workers=1, layers="1,final", floor=False, **wanted,  # type: ignore[arg-type]
    )  # fmt: skip
    with Tally().watching() as again:
        execute(asked, heard)
    assert not again.loads
    line = "spair (insid3): images are shown alike at every input size, so its scores are the same"
    assert line in heard.lines


@pytest.mark.usefixtures("no_pages")
def test_a_plan_counts_every_size_and_once_what_is_shown_alike(tmp_path: Path, data: Path, cli: Cli) -> None:
    words = ["--backbones", "mini-resnet", "--tasks", "spair", "--data", data, "--layers", "1", "--no-floor"]
    words += ["--protocol", "standard,insid3", "--output", tmp_path / "out", "--cache", tmp_path / "cache"]
    said = cli("run", *words, "--plan", "--json", "--input-size", "64,96")
    assert said.code == 0
    found = json.loads(said.out[said.out.index("{") :])
    of_source = found["images"] // 2  # by either protocol
    passes = [(step["backbone"], step["images"]) for step in found["steps"] if step["what"] == "pass"]
    assert passes == [("mini-resnet", of_source)] * 2 + [("mini-resnet@96px", of_source)]
    assert found["forwards"] == 3 * of_source
