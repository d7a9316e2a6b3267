"""Wrong commands, options and values are answered with one sentence, and the nearest name."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import layerboard
from layerboard.benchmark.commands.app import COMMANDS
from layerboard.benchmark.forms.option import declared
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.words import WORDS
from tests.benchmark.conftest import Whole
from tests.benchmark.runs import Cli
from tests.shared import table_rows

SLIPS = table_rows(Path(__file__).with_name("slips.csv"))


def test_words_for_other_names_are_few_and_mean_one_that_is_there() -> None:
    assert sum(map(len, WORDS.values())) <= 40
    assert {name for names in WORDS["task"].values() for name in names} <= {task.name for task in TASKS}
    commands = {each.name: [option.name for option in declared(each.form)] for each in COMMANDS}
    assert {name for names in WORDS["command"].values() for name in names} <= {*commands}
    assert {name for names in WORDS["option"].values() for name in names} <= {*commands["run"]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a folder of photos."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYERBOARD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "photos").mkdir()
    (tmp_path / "mini").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "one.png")
    return tmp_path


READ = ("show", "recommend", "compare a b", "export csv", "report")
"""Commands that read an output folder."""

REFUSED = (
    ("run --data nowhere", "the datasets' folder at nowhere, which does not exist"),
    ("run --data {data} --device tpu", "'tpu'"),
    ("run --data {data} --device meta", "'meta' is not supported"),
    ("run --data {data} --device cuda:77", "'cuda:77' is not there"),
    ("run --data {data} --suite minni", "did you mean 'mini'?"),
    ("run --data {data} --suite mini", "the suite 'mini' brings its own data"),
    ("run --suite standard", "needs the real datasets; give --data DIR"),
    ("run --data {data} --images {data}", "give --data or --images, not both"),
    ("run --images nowhere", "nowhere, which does not exist"),
    ("run -b mini-random --data mini", "there is nothing to run"),
    ("run -b mini-random --data mini", "PartImageNet"),  # which is looked for in the empty folder, too
    ("run -b mini-random --protocol papre", "did you mean 'paper'"),
    ("run -b mini-random -t knn --protocol dinov3", "is for davis, retrieval, spair; --tasks names knn, too"),
    ("run -b mini-random --layers -1", "layers '-1': expected 'all'"),
    ("run --copies", "--copies makes copies of your own images; give their folder with --images DIR"),
    ("run --labels l.csv", "--labels says the classes of your own images; give their folder with --images"),
    ("run --images a b --labels l.csv", "is for one folder of images, found 2; put a"),
    ("run --images hf:a/b --labels l.csv", "folder of images; choose the columns of hf:ID"),
    ("run --data hf:", "expected hf:ID"),
    ("run -b mini-dino --taps branch", "no block of mini-dino has the tap branch; --taps takes block, input"),
    ("run -b mini-fs --data {data} --fuse last4 --layers 1-4", "last4 needs blocks of mini-fs that are not"),
    ("run -b mini-fs --data {data} -t cluster-object --fuse all", "--fuse all fits no task of this run: cl"),
    ("run -b mini-fs --data {data} -t spair --transform whiten", "--transform whiten fits no task of this"),
    ("run -b mini-fs --data {data} -t cka --transform zscore", "cka: it looks at features as they are"),
    ("run -b mini-fs --data {data} -t spair --compress int8", "--compress int8 fits no task of this run: sp"),
    ("run --compress int8+pca:3", "--compress takes pca:N, rp:N"),
    ("check --all", "give --data DIR, or --images DIR"),
    ("check --target number", "--target says what the labels of your own images are; give their folder with"),
    ("check --data hf:./none", "expected a folder with tables at"),
    ("check --data hf:{data}", "an official layout is given without hf:"),
    ("features --labels l.csv", "--labels says the classes of your own images; give their folder with --im"),
    ("features -b mini-fs -t spair --data {data}", "spair has no files of vectors of its own"),
    ("features --fuse all", "features has no option '--fuse'; `run` has it"),
    (
        "compare mini-fs mini-dino -o {out}",
        "backbone mini-dino was not run here; `layerboard run --backbones mini-dino",
    ),
    ("compare mini-fs mini-resnet -t anomaly -o {out}", "task anomaly was not run here; `layerboard run"),
    ("show -t anomaly -o {out}", "task anomaly was not run here"),
    ("show --suite mini -o {out}", "suite mini was not run here; `layerboard run --suite mini -o "),
    ("report --highlight dino-b16 -o {out}", "backbone dino-b16 was not run here"),
    ("export csv -b dino-b16 -o {out} --to to", "backbone dino-b16 was not run here"),
    ("compare mini-fs mini-dino@bfloat16 -o {out}", "layerboard run --backbones mini-dino@bfloat16 -o "),
    ("compare mini-fs mini-resnet --layers worst -o {out}", "--layers takes best or same; found 'worst'"),
    ("compare mini-fs '' -o {out}", "SECOND takes a word; found ''"),
    ("merge nowhere there -o x", "an output folder at nowhere, which does not exist"),
    ("merge nowhere there", "give --output DIR"),
    ("merge nowhere -o x", "two output folders or more; found one"),
    ("export word -o {out} --to to", "FORM takes latex, csv, hub or onnx; found 'word'"),
    ("leaderboard --literature --check", "--literature takes no --check"),
    ("leaderboard --baseline x -o {out}", "--baseline needs --check"),
    ("leaderboard --check --tolerance 1 -o {out}", "need --check --baseline DIR"),
    ("leaderboard --check --baseline nowhere -o {out}", "expected a baseline"),
    ("leaderboard --check --baseline {out} --tolerance -1 -o {out}", "at least 0; found -1"),
    ("report --figures gif -o {out}", "--figures takes svg, pdf or both"),
    ("reproduce -b dnio-b16 -o photos", "of the backbone 'dnio-b16'; did you mean 'dino-b16'?"),
    ("reproduce -b zzz* -o photos", "of the backbone 'zzz*'; there are aim-1b, "),
    ("reproduce -b resnet101-gem -t davis -o photos", "passes all filters"),
    ("reproduce --format xml -o photos", "--format"),
    ("score knn", "score knn needs --features"),
    ("score regress --features a --config k=3", "score regress has no numbers that --config could replace"),
    ("score davis --features a", "does not take --features; it takes --ground-truth, --predictions"),
    ("score knn --features a b", "takes one --features; found 2"),
    ("score segment --features a --config k=1,2", "takes as k a whole number of at least 1; found [1, 2]"),
    ("score segment --features a --config k=0", "--config takes as k a whole number of at least 1; found 0"),
    ("score segment --features a --protocol paper", "there is no protocol of the task 'paper'"),
    (
        "score clustering --features a --config seed=9999999999",
        "as seed a whole number of at most 4294967296",
    ),
    (
        "score knn --features a --config temperature=0",
        "takes as temperature a number of at least 1e-30; found 0",
    ),
    (
        "score spair --ground-truth {data}/SPair-71k --features photos --config view_size=9999",
        "of 1 to 2,048 pixels",
    ),
    ("score cluster-object --features a", "expected a task that scores vectors of classification"),
    ("score nowhere:TASK --features a", "there is no module nowhere"),
    ("show --suite standrd -o {out}", "did you mean 'standard'?"),
    ("show -t cka -o {out}", "no backbone has a score"),
    ("list backbones dino-b61", "did you mean dino-b16, dino-b8 or"),
    ("list backbones zzz", f"No backbone is called 'zzz'; there are {all_specs()[0].name}"),
    ("list backbones some/body", "some/body is neither a directory nor in the cache"),
    ("list backbones --where family=dinov5", "there is no family 'dinov5'; did you mean 'dinov3'"),
    ("list what", "WHAT takes backbones, tasks, datasets, suites or protocols; found 'what'"),
    *(
        (
            f"list backbones --where parameters={text}",
            f"takes as parameters a number such as 100M or 1.2G; found {found}",
        )
        for text, found in (("many", "'many'"), ("-1", "-1"), ("nan", "nan"), ("12T", "'12T'"), ("M", "'M'"))
    ),
    ("list backbones --where family=clip parameters=1K", "passes all filters; leave one out"),
    ("list backbones dino-b16 --where licence=mit", "Filters are for 'list backbones' without a name"),
    ("list tasks knn", "Only backbones are shown by name; leave out 'knn'"),
    *(
        (f"{line} -o nowhere", "folder of records and tables at nowhere, which does not exist")
        for line in READ
    ),
    *(
        (f"{line} -o photos", "expected records (*.parquet) in photos/records but found none")
        for line in (*READ, "leaderboard")  # which looks for records at once
    ),
)
"""What a command cannot do, and a part of its sentence; {out} is a whole run's output, {data} its data."""


@pytest.mark.parametrize(("line", "sentence"), [*SLIPS, *REFUSED])
def test_what_cannot_be_done_is_one_sentence_and_nothing_is_written(
    cli: Cli, here: Path, whole: Whole, data: Path, line: str, sentence: str
) -> None:
    before = {*here.rglob("*")}
    said = cli(*shlex.split(line.format(out=whole.place / "out", data=data)))
    assert sentence in said.error
    assert [line for line in said.out.splitlines() if not line.startswith("layerboard ")] == []
    assert {*here.rglob("*")} - before <= {here / "results", here / "cache"}  # no data are rendered, either


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("compare mini-fs", "compare takes SECOND, which is missing; usage: layerboard compare [OPTIONS] "),
        ("run -b", "option '-b' requires an argument; usage: layerboard run [OPTIONS]"),
        ("run --floor=3", "option '--floor' does not take a value; usage: layerboard run [OPTIONS]"),
        ("run --limit 0", "invalid value for '--limit': "),
        ("look a --frames=abc", "invalid value for '--frames': "),
    ],
)
def test_a_missing_or_wrong_value_is_answered_with_the_usage(cli: Cli, line: str, sentence: str) -> None:
    said = cli(*line.split())
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.error.startswith(f"error: {sentence}")
    assert "; usage: layerboard " in said.error


def test_python_names_its_arguments_in_lower_case() -> None:
    with pytest.raises(InputError, match=r"^form takes latex, csv"):
        layerboard.export("word")  # type: ignore[arg-type]


def test_folders_in_the_wrong_option_are_named(cli: Cli, here: Path) -> None:
    run = ("run", "-b", "mini-random", "--cache", here / "cache")
    assert "did you mean --images photos?" in cli(*run, "--data", "photos").error
    assert "did you mean --images photos?" in cli("check", "--data", "photos").error
    (here / "DAVIS").mkdir()
    said = cli(*run, "--data", here / "DAVIS").error
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
        (layerboard.run, {"images": object()}, "^images= takes .*memory; found <object object"),
        (layerboard.run, {"images": ["photos", 1]}, "^cannot take item 0, photos: "),
        (
            layerboard.run,
            {"images": {"train": 1}},
            "expected a list of images, or another iterable .*found 1",
        ),
        (layerboard.run, {"data": Photos()}, "^data= .*: Photos: .* give their folder with images="),
        (layerboard.run, {"labels": [1, 2]}, r"^labels= takes a CSV file; found \[1, 2\]: write the table"),
        (layerboard.run, {"data": "photos", "images": "photos"}, "^give data= or images=, not both"),
        (layerboard.run, {"layers": [1, 2]}, r"^layers= .* found \[1, 2\]: write the numbers into one text"),
        (layerboard.run, {"weights": torch.nn.Linear(2, 2)}, r"run as from_module\(NETWORK\)"),
        (layerboard.look, {"images": [1]}, "^cannot take item 0: expected images of Pillow"),
        (layerboard.run, {"suite": "standard"}, "give data=DIR"),
        (layerboard.check, {"all": True}, "give data=DIR, or images=DIR for your own images"),
        (layerboard.best, {"outputs": "out"}, r"^best\(\) has no option 'outputs'; did you mean output\?"),
        (layerboard.check, {"weights": "mini-zzz"}, "No backbone is called 'mini-zzz'"),
        (layerboard.check, {"weights": "random"}, "names no backbone with weights"),
        (layerboard.check, {"weights": "mini-fs", "images": "."}, "checks backbones; leave data= and"),
        (layerboard.cost, {"backbones": "mini-fs", "tasks": "knn"}, "with index=True; add it or leave them"),
        (layerboard.cost, {"backbones": "mini-fs", "vectors": 50}, "with index=True; add it or leave them"),
        (
            layerboard.recommend,
            {"literature": True, "within": {"ms": 3.0}},
            "takes no within=: that needs a run",
        ),
        (
            layerboard.recommend,
            {"literature": True, "within": "loss=1"},
            "takes no within=: that needs a run",
        ),
        (layerboard.recommend, {"literature": True, "backbones": ["dono-*"]}, r"no backbone 'dono-\*'"),
        (layerboard.recommend, {"literature": True, "tasks": ["anomaly"]}, "no published numbers of several"),
        (layerboard.Callback, {"every": 0}, "every= takes a whole number of at least 1; found 0"),
        (layerboard.Callback, {"backbones": "mini-dino"}, "takes its network from the training; leave out"),
        (layerboard.Callback, {"tasks": "kn"}, "there is no task 'kn'"),
        (layerboard.Callback, {"imges": "photos"}, r"^Callback\(\) has no option 'imges'; did you mean"),
        (layerboard.Callback, {"log": "wandb"}, r"log= takes a function of a mapping, such as trainer.log"),
        (layerboard.from_module, {}, r"^from_module\(\): missing a required argument: 'net'"),
    )
    for function, options, words in calls:
        with pytest.raises(InputError, match=words):
            function(**options)
    with pytest.raises(InputError, match=r"^run\(\): too many positional arguments"):
        layerboard.run("mini-fs", "knn", "photos")  # type: ignore[call-arg]
