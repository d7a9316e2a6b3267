"""Options: each declared once, the same from the command line and from Python."""

import pickle
import pydoc
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeVar

import pytest
import typer
import yaml
from typer.testing import CliRunner

import layerboard
from layerboard.benchmark.commands.app import COMMANDS, command_line
from layerboard.benchmark.commands.command import Command
from layerboard.benchmark.commands.merge import MergeRequest
from layerboard.benchmark.forms.campaign import campaign_text, plain_value
from layerboard.benchmark.forms.option import declared
from layerboard.benchmark.forms.parsers import default_cache, default_workers
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.errors import InputError
from tests.benchmark.runs import Cli

Form = TypeVar("Form")
FORMS = pytest.mark.parametrize(("form", "name"), [(each.form, each.name) for each in COMMANDS])

TAPS = (
    "block, input, norm1, query, key, value, heads, attention, mid, norm2, mlp_hidden, mlp, skip, branch, "
    "block-normed"
)

POOLINGS = "cls, mean or both, and with them any of cls+mean, gem, patchwise"

EXAMPLES: tuple[tuple[str, tuple[str, ...], object, object], ...] = (
    ("backbones", ("dino-*", "b/c"), ["dino-*", Path("b/c")], ("dino-*", "b/c")),
    ("backbones", ("mini-fs@448px",), "mini-fs@448px", ("mini-fs@448px",)),
    ("tasks", ("knn",), "knn", ("knn",)),
    ("suite", ("paper",), "paper", "paper"),
    ("steps", ("steps.csv",), Path("steps.csv"), Path("steps.csv")),
    ("data", ("folder",), "folder", Path("folder")),
    ("images", ("hf:a/b", "folder"), ["hf:a/b", Path("folder")], ("hf:a/b", "folder")),
    ("images", ("folder",), Path("folder"), ("folder",)),
    ("labels", ("labels.csv",), "labels.csv", Path("labels.csv")),
    ("groups", ("groups.csv",), "groups.csv", Path("groups.csv")),
    ("target", ("number",), "number", "number"),
    ("output", ("out",), "out", Path("out")),
    ("cache", ("cache",), Path("cache"), Path("cache")),
    ("device", ("cuda:1",), "cuda:1", "cuda:1"),
    ("device", ("cuda:0, cuda:1",), ["cuda:0", "cuda:1"], "cuda:0,cuda:1"),
    ("device", ("all",), "all", "all"),
    ("engine", ("ray",), "ray", "ray"),
    ("dtype", ("float32,bfloat16",), "float32,bfloat16", ("float32", "bfloat16")),
    ("store_dtype", ("float16",), "float16", "float16"),
    ("batch_size", ("3",), 3, 3),
    ("batch_size", ("auto",), "auto", "auto"),
    ("workers", ("2",), 2, 2),
    ("layers", ("4,8-12,final",), "4,8-12,final", "4,8-12,final"),
    ("taps", ("mlp,block",), ["mlp", "block"], ("block", "mlp")),
    ("taps", ("norm1",), "norm1", ("norm1",)),
    ("transform", ("whiten, zscore",), ["whiten,zscore"], ("whiten", "zscore")),
    ("shots", ("1", "8"), [1, 8], (1, 8)),
    ("compress", ("pca:08+int8, binary",), "pca:8+int8,binary", ("pca:8+int8", "binary")),
    ("fuse", ("pairs, all", "last4"), ["pairs,all", "last4"], ("last4", "all", "pairs")),
    ("fuse", ("12+5,greedy:3,pairs",), ["12+5", "greedy:3,pairs"], ("pairs", "5+12", "greedy:3")),
    ("input_size", ("448",), 448, (448,)),
    ("input_size", ("448, 224", "448"), [448, "224"], (224, 448)),
    ("interpolation", ("dino",), "dino", "dino"),
    ("interpolation", ("auto",), "auto", "auto"),
    ("poolings", ("mean",), "mean", ("mean",)),
    ("poolings", ("mean, cls",), ("mean", "cls"), ("cls", "mean")),
    ("poolings", ("patchwise,mean",), ("patchwise", "mean"), ("mean", "patchwise")),
    ("limit", ("5",), 5, 5),
    ("protocol", ("paper,insid3",), "paper,insid3", ("paper", "insid3")),
    ("weights", ("a=b", "c=d=e"), ["a=b", "c=d=e"], {"a": Path("b"), "c": Path("d=e")}),
    ("weights", ("a=b",), {"a": Path("b")}, {"a": Path("b")}),
    ("weights", ("a=b",), "a=b", {"a": Path("b")}),
)

WRONG: tuple[tuple[str, object, str], ...] = (
    ("backbones", 3, "--backbones takes words; found 3"),
    ("tasks", ["knn", None], "--tasks takes a word; found None"),
    ("suite", "", "--suite takes a word; found ''"),
    ("data", "", "--data takes a path; found ''"),
    ("output", None, "--output takes a path; found None"),
    ("device", "cuda:0,", "--device takes a word; found ''"),
    ("engine", "dask", "--engine takes auto, local, processes or ray; found 'dask'"),
    ("engine", "local:head:6379", "--engine takes auto, local, processes or ray; found 'local:head:6379'"),
    ("dtype", "float64", "--dtype takes auto, or some of float32, amp-bfloat16, float16, bfloat16; found"),
    ("store_dtype", None, "--store-dtype takes float32 or float16; found None"),
    ("batch_size", 0, "--batch-size takes auto, or a whole number of at least 1; found 0"),
    ("batch_size", True, "--batch-size takes auto, or a whole number of at least 1; found True"),
    ("batch_size", "6.4", "--batch-size takes auto, or a whole number of at least 1; found '6.4'"),
    ("workers", -1, "--workers takes a whole number of at least 1; found -1"),
    ("limit", 1.5, "--limit takes a whole number of at least 1; found 1.5"),
    ("limit", True, "--limit takes a whole number of at least 1; found True"),
    ("taps", "block,head", f"--taps takes some of {TAPS}; found 'block,head'"),
    ("taps", (), f"--taps takes some of {TAPS}; found ()"),
    *(
        ("poolings", wrong, f"--poolings takes {POOLINGS}; found {wrong!r}")
        for wrong in ("max", "patchwise", [])
    ),
    ("interpolation", "none", "--interpolation takes auto, huggingface, dino, timm or google; found 'none'"),
    ("transform", "pca:3", "--transform takes whiten and zscore; found 'pca:3'"),
    ("transform", 3, "--transform takes words; found 3"),
    (
        "fuse",
        "last3",
        "--fuse takes last4, quarters, all, pairs, greedy:3, blocks such as 3+6+9, or several with "
        "commas; found 'last3'",
    ),
    ("floor", "no", "--floor takes True or False; found 'no'"),
    ("weights", "moco-s16", "--weights takes NAME=PATH, such as moco-s16=vit-s-300ep.pth.tar"),
    ("weights", {"moco-s16": 3}, "--weights takes a path; found 3"),
)


def options_of_command(name: str) -> dict[str, Any]:
    """Options of a command by name, as typer made them."""
    found = command_line()
    for word in name.split():
        found = found.commands[word]
    return {one.name: one for one in found.params if one.name != "help"}


def filled(form: Callable[..., Form], *words: str) -> Form:
    """The form that a command gets."""
    found: list[Form] = []
    small = typer.Typer()
    small.command()(Command("filled", form, found.append).for_typer())
    result = CliRunner().invoke(small, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0]


@FORMS
def test_command_and_form_have_the_same_options(form: type, name: str) -> None:
    options = options_of_command(name)
    assert sorted(options) == sorted(one.name for one in declared(form))
    for option in declared(form):
        made = options[option.name]
        assert option.help.endswith(".")
        assert made.help.replace("\\", "").startswith(option.help.removesuffix("."))
        assert made.required == (option.default is ...)
        assert getattr(made, "multiple", False) == (option.several and not made.required)
        assert (made.nargs == -1) == (option.several and made.required)
        if not made.required and not option.several:
            assert made.default == option.default


@FORMS
def test_help_shows_every_option(cli: Cli, monkeypatch: pytest.MonkeyPatch, form: type, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = " ".join(cli(*name.split(), "--help").out.split())
    for option in declared(form):
        assert (option.name.upper() if option.positional else option.flag) in said
        assert all(choice in said for choice in option.choices)
        if option.default not in (..., None, (), True, False) and not option.usual:
            assert f"[default: {option.default}]" in said


def test_the_python_call_has_the_same_options() -> None:
    parameters = signature(layerboard.run).parameters
    assert sorted(parameters) == sorted([*signature(Request).parameters, "progress"])
    for option in declared(Request):
        parameter = parameters[option.name]
        first = option.name in ("backbones", "tasks")
        assert parameter.kind is (Parameter.POSITIONAL_OR_KEYWORD if first else Parameter.KEYWORD_ONLY)
        assert parameter.default == option.default is not MISSING
        assert parameter.annotation == option.accepts
        assert f"\n    {option.name}: {option.help.split(' ')[0]}" in (layerboard.run.__doc__ or "")


def test_the_python_call_passes_on_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def execute(request: Request, _: object) -> None:
        found.append(request)
        raise InterruptedError

    monkeypatch.setattr("layerboard.benchmark.api.execute", execute)
    with pytest.raises(InterruptedError):
        layerboard.run("mini-dino", "knn", poolings="cls", store_dtype="float16")
    request = Request(backbones="mini-dino", tasks="knn", poolings="cls", store_dtype="float16")
    assert [Request.of(each) for each in found] == [request]
    with pytest.raises(InputError, match=r"^run\(\) has no option 'task'; did you mean tasks\?$"):
        layerboard.run(task="knn")  # type: ignore[call-arg]


def test_every_option_has_an_example() -> None:
    named = {name for name, *_ in EXAMPLES}
    switches = {"floor", "examples", "again", "copies", "compile", "series"}
    assert named | switches | {"campaign"} == {one.name for one in fields(Request)}


@pytest.mark.parametrize(("name", "words", "given", "kept"), EXAMPLES)
def test_command_line_python_and_campaign_mean_the_same(
    name: str,
    words: tuple[str, ...],
    given: object,
    kept: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    flag = f"--{name.replace('_', '-')}"
    typed = filled(Request, *(word for one in words for word in (flag, one)))
    assert getattr(typed, name) == kept
    assert typed == Request(**{name: given}) == replace(Request(), **{name: kept})  # type: ignore[arg-type]
    key = yaml.safe_dump({name: plain_value(given)})
    (tmp_path / "a.yaml").write_text(key)
    (tmp_path / "a.yml").write_text(key.replace("_", "-", name.count("_")))
    for file in ("a.yaml", "a.yml"):
        assert getattr(Request.filled({"campaign": file}), name) == kept
    # what a run writes into its output folder is read again
    before = Request(**{name: given, "output": "out/deep"})  # type: ignore[arg-type]
    (tmp_path / "out" / "deep").mkdir(parents=True)
    written = campaign_text(vars(before), declared(Request), Path("out/deep"))
    Path("out/deep/run.yaml").write_text(written)
    again = Request.filled({"campaign": "out/deep/run.yaml"})
    assert again == replace(before, campaign="out/deep/run.yaml")


def test_switches() -> None:
    assert not filled(Request, "--no-floor").floor
    assert not filled(Request, "--no-examples").examples
    assert filled(Request, "--tasks", "cost", "--again").again
    assert filled(Request, "--images", "photos", "--copies").copies
    assert filled(Request, "--floor") == filled(Request) == Request()


def test_defaults_are_resolved() -> None:
    request = Request()
    assert (request.cache, request.workers) == (default_cache(), default_workers())
    assert (request.output, request.taps, request.poolings) == (Path("results"), ("block",), ("cls", "mean"))
    assert (request.backbones, request.weights, request.data) == ((), {}, None)
    with pytest.raises(TypeError, match="folders"):
        MergeRequest()


@pytest.mark.parametrize(("name", "given", "text"), WRONG)
def test_what_is_wrong_is_one_sentence(name: str, given: object, text: str) -> None:
    with pytest.raises(InputError) as caught:
        Request(**{name: given})  # type: ignore[arg-type]
    assert text in str(caught.value)


def test_a_request_is_frozen_small_and_can_be_sent() -> None:
    request = Request("mini-fs", "knn", weights="a=b")
    with pytest.raises(FrozenInstanceError):
        request.output = Path("other")  # type: ignore[misc]
    sent = pickle.dumps(request)
    assert pickle.loads(sent) == request
    assert len(sent) < 1000


def test_help_shows_public_functions_first() -> None:
    text = pydoc.plain(pydoc.render_doc(layerboard))
    before, _, _ = text.partition("PACKAGE CONTENTS")
    assert "run(backbones=(), tasks=(), *, data=None" in before
    assert "poolings='cls,mean'" in before
    assert "Returns the best of each task, and the records of the suite" in before
    assert "poolings: Image vectors: cls (class token), mean (mean of the patch" in before


def test_versions(cli: Cli) -> None:
    said = cli("--version")
    assert (said.code, said.out) == (0, f"layerboard {layerboard.__version__}\n")
    assert layerboard.__version__ == "0+source" or layerboard.__version__[0].isdigit()
