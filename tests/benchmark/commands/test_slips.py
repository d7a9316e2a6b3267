"""What people type by mistake is answered with what they probably meant."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import layerboard
from layerboard.benchmark.commands.app import COMMANDS, named_command, repeat_options
from layerboard.benchmark.commands.slips import require_understood
from layerboard.benchmark.forms.former import FORMER
from layerboard.zoo.errors import InputError
from tests.benchmark.runs import command

SLIPS = (
    ("pretrain fs", "in a checkout, `python -m workshop.pretrain` trains the mini backbones"),
    ("train fs", "in a checkout, `python -m workshop.pretrain` trains the mini backbones"),
    ("run photos", "did you mean `layerboard run --images photos`?"),
    ("run hf:a/b", "did you mean `layerboard run --images hf:a/b`?"),
    ("run knn", "did you mean `layerboard run --tasks knn`?"),
    ("run -o out mini-fs", "did you mean `layerboard run --backbones mini-fs`?"),
    ("show photos", "did you mean `layerboard show --output photos`?"),
    ("run nowhere", "values follow the name of an option; `layerboard run -h`"),
    ("run -b mini-dino mini-moco knn", "which is a task; did you mean --tasks knn?"),
    ("run -t knn mini-dino", "which is a backbone; did you mean --backbones mini-dino?"),
    ("run -t paper", "which is a protocol; did you mean --protocol paper?"),
    ("run -b mini-fs,mini-dino", "separate its names by blanks"),
    ("run -t classification", "did you mean 'knn', 'fewshot' or 'linear'?"),
    ("run -t Image-Classifier", "did you mean 'knn', 'fewshot' or 'linear'?"),
    ("run -t KNN", "did you mean 'knn'?"),
    ("run -t duplicates", "did you mean 'instances'?"),
    ("run -t near-duplicates", "did you mean 'instances'?"),
    ("run -t dedup", "did you mean 'instances'?"),
    ("run -t semantic_segmentation", "did you mean 'segment'?"),
    ("run -t object-detection", "did you mean 'anomaly' or 'cluster-object'?"),
    ("run -t copy-detection", "did you mean 'instances'?"),
    ("run -t tracking", "did you mean 'davis'?"),
    ("run -t keypoint-matching", "did you mean 'spair'?"),
    ("run -t OOD", "did you mean 'anomaly'?"),
    ("run -t probing", "did you mean 'linear' or 'fewshot'?"),
    ("run -t zero-shot", "did you mean 'knn' or 'fewshot'?"),
    ("run -t speed", "did you mean 'cost'?"),
    ("run -b timm:*", "timm: takes a name"),
    ("run --layers last", "blocks go by number"),
    ("run --layers 4-", "found '4-'"),
    ("run --protocol linear", "which is a task; did you mean --tasks linear?"),
    ("run -b dino", "did you mean dino-s8, dino-b8"),
    ("run --compress pca128", "did you mean pca:128?"),
    ("run --compress PCA-64", "did you mean pca:64?"),
    ("run --transform whitening", "did you mean whiten?"),
    ("run --taps q", "did you mean query?"),
    ("run --classes labels.csv", "did you mean --labels?"),
    ("list models", "did you mean backbones?"),
    ("run -t video-object-segmentation", "did you mean 'davis'?"),
    ("run --layers quarters", "did you mean --fuse quarters?"),
    ("run --poolings max", "`layerboard score knn` scores vectors that other code has pooled"),
    ("run --poolings gem", "did you mean cls,mean,gem?"),
    ("run --poolings avg", "did you mean mean?"),
    ("run --taps attn", "did you mean attention?"),
    ("run --dtype fp16", "did you mean float16?"),
    ("run --target regression", "did you mean number?"),
    ("run --fuse 4,8,12", "--fuse 4+8+12"),
    ("run --fuse 12", "--fuse 12+..."),
    ("run --fuse greedy:4", "did you mean greedy:3?"),
    ("run --license mit", "did you mean --licence, which `recommend` or `list` has?"),
    ("list backbones --license mit", "did you mean --licence?"),
    ("run --pooling cls", "did you mean --poolings?"),
    ("run --image photos", "did you mean --images?"),
    ("run --backbone mini-fs", "did you mean --backbones?"),
    ("run --model mini-fs", "did you mean --backbones?"),
    ("run --task=knn", "did you mean --tasks?"),
    ("run --layer 3", "did you mean --layers?"),
    ("run --batchsize 4", "did you mean --batch-size?"),
    ("run --num-workers 4", "did you mean --workers?"),
    ("run --gpu", "did you mean --device?"),
    ("run -x", "there is no option '-x'"),
    ("recommend --suite mini", "recommend has no option --suite; `run`, `show` and `report` have;"),
    ("run mini", "did you mean `layerboard run --suite mini`?"),
    ("mini", "did you mean `layerboard run --suite mini`?"),
    ("help", "`layerboard help` is `layerboard --help`"),
    ("help run", "`layerboard help` is `layerboard run --help`"),
    ("run help", "`layerboard run --help` shows the help"),
    ("submission help", "`layerboard submission help` is `layerboard submission --help`"),
    ("version", "`layerboard --version` shows the version"),
    ("-V", "`layerboard --version` shows the version"),
    ("benchmark", "did you mean `layerboard run`?"),
    ("recomend", "did you mean `layerboard recommend`?"),
    ("knn", "did you mean `layerboard run --tasks knn`?"),
    ("photos", "did you mean `layerboard run --images photos`?"),
    ("retrieval", "did you mean `layerboard run --tasks retrieval`?"),
    ("compress", "did you mean `layerboard run --compress`?"),
    ("int8", "did you mean `layerboard run --compress`?"),
    ("batch", "did you mean `layerboard run --batch-size`?"),
    ("whitening", "did you mean `layerboard run --transform`?"),
    ("clustering", "did you mean `layerboard run --tasks cluster-image`"),
    ("finetuned", "did you mean `layerboard compare`?"),
    ("literature", "did you mean `layerboard recommend` or `layerboard reproduce`?"),
    ("curate", "did you mean `layerboard check`?"),
)


@pytest.mark.parametrize(("former", "line"), FORMER.items())
def test_a_name_that_is_gone_is_answered_with_the_line_that_does_it_now(
    capsys: pytest.CaptureFixture[str], former: str, line: str
) -> None:
    name, *flags = former.split(" --")
    for flag in (*(f" --{flag}" for flag in flags), *([] if flags else [""])):
        for typed in (
            f"{name}{flag}",
            f"{name} x --help{flag.replace('--', '--no-') if '=' not in flag else flag}",
        ):
            said = command(capsys, *typed.split())
            now = f"error: `layerboard {name}{flag.replace('=', ' ')}` is `layerboard {line}` now"
            assert (said.code, said.out, said.error) == (2, "", now)
    arguments = repeat_options(line.replace("POINTS", "1").split())
    words, found = named_command(arguments)
    require_understood(words, found, arguments[len(words) :], COMMANDS)
    found.make_context(
        "layerboard", arguments[len(words) :], resilient_parsing=False
    )  # raises if it is wrong


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a folder of photos."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "mini").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "one.png")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "hint"), SLIPS)
def test_a_slip_is_answered_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], line: str, hint: str
) -> None:
    said = command(capsys, *line.split())
    assert (said.code, said.out) == (2, "")
    assert hint in said.error


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("compare mini-fs", "compare takes SECOND, which is missing; usage: layerboard compare [OPTIONS] "),
        (
            "submission verify",
            "submission verify takes FOLDER, which is missing; usage: layerboard submission",
        ),
        ("run -b", "-b takes a value, and none follows; usage: layerboard run [OPTIONS]"),
        ("run --floor=3", "option '--floor' does not take a value; usage: layerboard run [OPTIONS]"),
        ("run --limit 0", "--limit takes a whole number of at least 1; found '0'; usage: layerboard run"),
        ("recommend --max-ms=abc", "--max-ms takes a number; found 'abc'; usage: layerboard recommend "),
        ("score fewshot --shots 1 x", "--shots takes whole numbers; usage: layerboard score [OPTIONS] "),
    ],
)
def test_a_missing_value_is_answered_with_the_usage(
    capsys: pytest.CaptureFixture[str], line: str, sentence: str
) -> None:
    said = command(capsys, *line.split())
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.error.startswith(f"error: {sentence}")


def test_python_names_its_arguments_in_lower_case() -> None:
    with pytest.raises(InputError, match=r"^form takes latex, csv"):
        layerboard.export("word")  # type: ignore[arg-type]


def test_folders_in_the_wrong_option_are_named(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    run = ("run", "-b", "mini-random", "--cache", here / "cache")
    assert "did you mean --images photos?" in command(capsys, *run, "--data", "photos").error
    assert "did you mean --images photos?" in command(capsys, "check", "--data", "photos").error
    (here / "DAVIS").mkdir()
    said = command(capsys, *run, "--data", here / "DAVIS").error
    assert said.endswith(f"is the folder of davis-2017-val itself; did you mean --data {here}?")


@pytest.mark.usefixtures("here")
def test_python_speaks_of_its_own_functions_and_keywords() -> None:
    import torch

    class Photos(torch.utils.data.Dataset[Any]):
        pass

    calls: tuple[tuple[Any, dict[str, Any], str], ...] = (
        (layerboard.run, {"image": "photos"}, r"^run\(\) has no option 'image'; did you mean images\?"),
        (layerboard.run, {"nonsense": 1}, r"^run\(\) has no option 'nonsense'; help\(layerboard.run\)"),
        (layerboard.run, {"backbones": torch.nn.Linear(2, 2)}, r"^backbones= .* give from_module\(NETWORK\)"),
        (layerboard.run, {"backbones": ["mini-fs", torch.nn.Linear(2, 2)]}, r"give from_module\(NETWORK\)"),
        (layerboard.run, {"backbones": torch.nn.Linear}, r"the class Linear: give from_module\(NETWORK\)"),
        (layerboard.run, {"images": Image.new("RGB", (8, 8))}, "^images= takes .*memory; found an object of"),
        (layerboard.run, {"images": ["photos", 1]}, "^expected images of Pillow.* item 0 is"),
        (layerboard.run, {"data": Photos()}, "^data= .*: Photos: .* give their folder with images="),
        (layerboard.run, {"labels": [1, 2]}, r"^labels= takes a CSV file; found \[1, 2\]: write the table"),
        (layerboard.run, {"data": "photos", "images": "photos"}, "^give data= or images=, not both"),
        (layerboard.run, {"layers": [1, 2]}, r"^layers= .* found \[1, 2\]: write the numbers into one text"),
        (layerboard.run, {"weights": torch.nn.Linear(2, 2)}, r"run as from_module\(NETWORK\)"),
        (layerboard.look, {"images": [1]}, "^expected images of Pillow.* item 0 is"),
        (layerboard.run, {"suite": "standard"}, "give data=DIR"),
        (layerboard.check, {"all": True}, "give data=DIR, or images=DIR for your own images"),
        (layerboard.best, {"outputs": "out"}, r"^best\(\) has no option 'outputs'; did you mean output\?"),
        (layerboard.from_module, {}, r"^from_module\(\): missing a required argument: 'net'"),
    )
    for function, options, words in calls:
        with pytest.raises(InputError, match=words):
            function(**options)
    with pytest.raises(InputError, match=r"^run\(\): too many positional arguments"):
        layerboard.run("mini-fs", "knn", "photos")  # type: ignore[call-arg]


def test_wrong_names_are_said_without_heavy_imports(here: Path) -> None:
    lines = [
        *(["run", "-t", "knm"], ["run", "-b", "mini-dnio"], ["run", "--suite", "minni"]),
        *(["run", "-b", "mini-fs", "--layers", "99"], ["run", "--protocol", "papre"]),
        *(["features", "-b", "mini-fs", "--layers", "99"], ["run", "--poolings", "gem"]),
        *(
            ["look", "photos", "-b", "mini-dnio"],
            ["export", "onnx", "mini-dnio"],
            ["compare", "a", "mini-dnio", "--parity"],
        ),
    ]
    code = (
        "import sys\n"
        "from layerboard.benchmark.commands.app import main\n"
        f"for line in {lines}:\n"
        "    sys.argv = ['layerboard', *line]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as stop:\n"
        "        heavy = {'torch', 'transformers', 'pandas', 'sklearn', 'faiss'} & {*sys.modules}\n"
        "        print('ended', stop.code, heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)
    ends = [line for line in done.stdout.splitlines() if line.startswith("ended")]
    assert ends == ["ended 2 set()" for _ in lines]
