"""Checkpoints of trainings: what patterns mean, and the training and the step of each."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import ViTConfig, ViTModel

from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.backbones import find_backbones
from layerboard.benchmark.plan.series import find_series
from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.leaderboards.records.files import set_aside, steps_of
from layerboard.mini.checkpoints import WEIGHTS
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.files import FileLoader, locate
from layerboard.zoo.registry.find import write_local_names
from layerboard.zoo.spec.origin import ORIGINAL


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(*paths: str) -> None:
    """Folders for names that end with a slash, else files."""
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def steps(backbones: Any = (), **options: Any) -> list[tuple[str, int]]:
    series = find_series(Request(backbones, series=True, **options))
    names = series.names(Path("results"))
    return [(names[each.training], each.step) for each in series.steps]


@pytest.mark.parametrize(
    ("files", "pattern", "found"),
    [
        (["runs/a/ckpt-2.onnx", "runs/a/ckpt-10.onnx"], "runs/*/ckpt-*", [("a", 2), ("a", 10)]),
        (["runs/a/epoch=3-step=40.onnx"], "runs/a/*", [("a", 40)]),
        (["runs/a/step=40-val_loss=0.25.onnx", "runs/a/v1.5-step-7.onnx"], "runs/a/*", [("a", 7), ("a", 40)]),
        (["runs/vit16/step-5/net.onnx"], "runs/*/step-*/net.onnx", [("vit16", 5)]),
        (["r/epoch=2-step=300-v1.onnx", "r/epoch=1-step=9.onnx"], "r/*", [("r", 9), ("r", 300)]),
        (["r/epoch=3-val_acc=85.onnx", "r/acc=91-epoch_12.onnx"], "r/*", [("r", 3), ("r", 12)]),
        (["r/vit16-100.onnx", "r/vit16-200.onnx"], "r/*", [("r", 100), ("r", 200)]),
        (["r/n-12k.onnx", "r/model_0000500.onnx"], "r/*", [("r", 500), ("r", 12000)]),
        (["a/run/1.onnx", "b/run/1.onnx"], "*/run/*", [("a/run", 1), ("b/run", 1)]),
        (["dino-b16/1.onnx"], "dino-b16/*.onnx", None),  # a name of the registry gets its folder
    ],
)
@pytest.mark.usefixtures("_here")
def test_the_step_is_a_number_that_a_pattern_leaves_open(
    files: list[str], pattern: str, found: list[tuple[str, int]] | None
) -> None:
    write(*files)
    expected = [(f"{Path.cwd().name}/dino-b16", 1)] if found is None else found
    assert steps(f"onnx:{pattern}") == expected


@pytest.mark.usefixtures("_here")
def test_weights_of_a_backbone_and_steps_from_a_table() -> None:
    write("run/last.pt", "run/first.pt")
    Path("steps.csv").write_text("file;step\nrun/last.pt;500\nrun/first.pt;0\n")
    Path("run/steps.csv").write_text("step,file\n500,last.pt\n0,first.pt\n")  # relative to its folder
    for table in ("run/steps.csv", "steps.csv"):
        series = find_series(
            Request(["mini-fs", "mini-dino"], weights="mini-fs=run/*.pt", series=True, steps=table)
        )
        assert [(each.backbone, each.weights_of, each.step) for each in series.steps] == [
            ("run/first.pt", "mini-fs", 0),
            ("run/last.pt", "mini-fs", 500),
        ]
        assert (series.backbones, series.weights) == (("mini-dino",), {})
    request = Request("mini-dino", weights="dino-s16=run/*.pt", series=True, steps="steps.csv", floor=False)
    plain, *specs = find_backbones(request, MINI_SUITE, Silent())
    assert (plain.name, [spec.name for spec in specs]) == ("mini-dino", ["run@step0", "run@step500"])
    assert [(spec.repository, spec.origin) for spec in specs] == [
        ("run/first.pt", ORIGINAL),
        ("run/last.pt", ORIGINAL),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backbones": "onnx:run/*"}, "run/last.onnx has no whole number in 'last.onnx'"),
        ({"backbones": "onnx:split/*"}, "split/3-700.onnx has the numbers 3, 700 in '3-700.onnx'"),
        ({"backbones": "onnx:run/n*"}, "are all step 1 of the training in"),
        ({"backbones": "other/*"}, r"no file or folder matches 'other/\*'"),
        ({"backbones": "mini-dino"}, "--series found no checkpoints"),
        (
            {"backbones": "onnx:run/n1*", "steps": "steps.csv"},
            "the table of --steps has no row of run/n1.onnx",
        ),
        ({"backbones": "onnx:run/n1*", "steps": "wrong.csv"}, "has 'two' as a step in line 2"),
        ({"backbones": "mini-dino", "series": False, "steps": "steps.csv"}, "it needs --series"),
    ],
)
@pytest.mark.usefixtures("_here")
def test_wrong_checkpoints_are_refused(options: dict[str, Any], words: str) -> None:
    write("split/3-700.onnx", "split/4-800.onnx", "run/last.onnx", "run/n1.onnx", "run/n-1.onnx", "run/1.pt")
    Path("steps.csv").write_text("file,step\nother.onnx,1\n")
    Path("wrong.csv").write_text("file,step\nrun/n1.onnx,two\n")
    with pytest.raises(InputError, match=words):
        find_series(Request(**{"series": True, **options}))


@pytest.mark.usefixtures("_here")
def test_files_of_weights_are_networks_of_the_configuration_beside_them() -> None:
    """As trainings save them, with heads and wrappers; the features are those of the network itself."""
    config = ViTConfig(
        hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, image_size=16
    )
    net = ViTModel(config, add_pooling_layer=False)
    tensors = {f"backbone.{name}": tensor for name, tensor in net.state_dict().items()}
    tensors["head.weight"] = torch.zeros(4, 12)
    saved = {
        "a/1.pt": tensors,
        "a/ckpts/2.pth": {"step": 2, "model": {f"module.{name}": each for name, each in tensors.items()}},
        "b/10.pt": net.state_dict(),
    }
    for path, content in saved.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, path)
    with pytest.raises(InputError, match=r"b/10.pt has no config.json beside it or in the folder above"):
        find_backbones(Request("b/*.pt", series=True), MINI_SUITE, Silent())
    config.save_pretrained("a")
    config.save_pretrained("b")
    request = Request(["a/*.pt", "a/*/*.pth", "b/*.pt"], series=True, floor=False, layers="1")
    specs = find_backbones(request, MINI_SUITE, Silent())
    assert [spec.name for spec in specs] == ["a@step1", "ckpts@step2", "b@step10"]
    for spec in specs:
        network = FileLoader().network(spec, locate(spec, None))
        assert torch.equal(*(each.get_parameter("embeddings.cls_token") for each in (network.body, net)))
    before = locate(specs[0], None).revision
    config.layer_norm_eps = 0.1
    config.save_pretrained("a")
    assert locate(specs[0], None).revision != before  # other features
    Path("b/10.pt").write_bytes(b"PK")
    broken = find_backbones(Request("b/*.pt", series=True, floor=False), MINI_SUITE, Silent())
    assert [spec.name for spec in broken] == ["b@step10"]  # it fails when it is run, and alone
    with pytest.raises(InputError, match=r"b/10.pt is refused: it is damaged"):
        FileLoader().identify(broken[0], Path())


@pytest.mark.usefixtures("_here")
def test_a_folder_keeps_the_name_of_its_training_beside_another_of_that_name() -> None:
    """Two trainings, one after the other into one output folder, each in a folder called run."""
    for parent in ("a", "b"):
        (Path(parent) / "run").mkdir(parents=True)
        (Path(parent) / "run" / "checkpoint-5").symlink_to(WEIGHTS / "mini-fs")
    named = []
    for pattern in ("a/run/*", "b/run/*", "a/run/*"):
        request = Request(pattern, series=True, floor=False, layers="1-3", output="results")
        specs = find_backbones(request, MINI_SUITE, Silent())
        write_local_names(specs, request.output, find_series(request).names(request.output))
        named += [spec.name for spec in specs]
    assert named == ["run@step5", "b/run@step5", "run@step5"]


@pytest.mark.usefixtures("_here")
def test_results_that_are_set_aside_are_kept_and_found_by_no_page() -> None:
    write("o/records/run@step2/a.parquet", "o/items/run@step2/a.parquet", "o/records/run@step10/a.parquet")
    write("o/records/run@steps/a.parquet", "o/records/other@step3/a.parquet")
    assert steps_of(Path("o"), "run") == {2: "run@step2", 10: "run@step10"}
    for number in (1, 2):
        assert (
            f"run@step2 is of an earlier training of this name, and left out: moved to o/earlier/{number}"
            in (set_aside(Path("o"), ["run@step2"]))
        )
        assert steps_of(Path("o"), "run") == {10: "run@step10"}
        write("o/earlier/1/keep")
    assert Path("o/earlier/1/items/run@step2/a.parquet").exists()
