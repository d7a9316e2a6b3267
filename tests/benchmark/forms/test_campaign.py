"""Campaign files: keys, paths, what replaces them, what is refused, and the file that a run leaves."""

import json
import shutil
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import layerboard
from layerboard.benchmark.forms.campaign import PACKAGED, PINS, RUN_FILE, campaign_text
from layerboard.benchmark.forms.option import declared
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.suites import SUITES
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import all_specs
from tests.benchmark.forms.test_request import filled
from tests.benchmark.runs import Cli, Tally, assert_same_records
from tests.zoo.load.test_infer import save


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path: Path, content: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return str(path)


def read(path: Path, content: str, **given: Any) -> Request:
    return Request.filled({"campaign": written(path, content)} | given)


def test_toml_and_yaml_mean_the_same(here: Path) -> None:
    toml = 'tasks = ["knn"]\ninput-size = [224, 448]\nfloor = false\n[weights]\ndino-b16 = "w.pth"\n'
    assert tomllib.loads(toml)
    text = "tasks: knn\ninput_size: 224,448\nfloor: false\nweights: dino-b16=w.pth\n"
    first, second = read(Path("a.toml"), toml), read(Path("a.yaml"), text)
    assert replace(first, campaign="a.yaml") == second
    assert (first.tasks, first.input_size, first.floor) == (("knn",), (224, 448), False)
    assert first.weights == {"dino-b16": Path("w.pth")}


def test_what_is_given_replaces_what_the_file_has(here: Path) -> None:
    path = written(Path("c.yaml"), "layers: '4'\ntasks: [knn, spair]\nworkers: 3\nfloor: false\n")
    typed = filled(Request, "--campaign", path, "--layers", "all", "--tasks", "cka", "--floor")
    assert (typed.layers, typed.tasks, typed.workers, typed.floor) == ("all", ("cka",), 3, True)
    assert typed.replaced == (
        f"layers is 'all', in place of '4' in {path}",
        f"tasks is ['cka'], in place of ['knn', 'spair'] in {path}",
        f"floor is True, in place of False in {path}",
    )
    plain = filled(Request, "--campaign", path, "--workers", "3")
    assert (plain.layers, plain.tasks, plain.floor, plain.replaced) == ("4", ("knn", "spair"), False, ())


def test_a_part_of_the_backbones_needs_their_weights_alone(here: Path) -> None:
    text = "backbones: [dino-s8-300ep, moco-s16]\nweights: {dino-s8-300ep: a.pth, moco-s16: b.pth}\n"
    part = read(Path("c.yaml"), text, backbones="moco-*")
    assert (part.backbones, part.weights) == (("moco-*",), {"moco-s16": Path("b.pth")})


def test_paths_start_at_the_folder_of_the_file(here: Path) -> None:
    for name in ("lab/nets/mine", "facebook/dinov2-base", "b"):
        (here / name).mkdir(parents=True)
    text = """
        backbones: [nets/mine, nets/mine@448px, facebook/dinov2-base, onnx:a.onnx, dino-*, ../b]
        images: [photos, ../b.zip, hf:owner/name]
        labels: none
        groups: g.csv
        weights: {dino-b16: w/a=b.pth}
        output: results
    """
    request = read(Path("lab/c.yaml"), text)
    assert request.backbones == (
        *("lab/nets/mine", "lab/nets/mine@448px", "facebook/dinov2-base"),
        *("onnx:lab/a.onnx", "dino-*", "b"),
    )
    assert request.images == ("lab/photos", "b.zip", "hf:owner/name")
    assert (request.labels, request.groups) == (Path("none"), Path("lab/g.csv"))
    assert request.weights == {"dino-b16": Path("lab/w/a=b.pth")}
    assert request.output == Path("lab/results")
    assert read(Path("lab/c.yaml"), text, output="results").output == Path("results")
    assert read(Path("lab/d.yaml"), "data: hf:owner/name").data == Path("hf:owner/name")


def test_a_file_says_nothing_of_this_machine(here: Path) -> None:
    content = yaml.safe_load(campaign_text(vars(Request()), declared(Request), Path("results")))
    assert {"cache", "workers", "campaign", "again", "data", "copies"} & {*content} == set()
    assert (content["output"], content["layers"], content["floor"]) == (".", "all", True)
    assert {*content} <= {option.name for option in fields(Request)}


WRONG = (
    ("tusks: knn", "a.yaml has the key 'tusks', which no campaign has; did you mean tasks?"),
    ("1: 2", "a.yaml, which is malformed (expected str, got int, at key in $)"),
    ("plan: true", "a.yaml has the key plan, which belongs beside --campaign, not in its file"),
    ("campaign: b.yaml", "a.yaml has the key campaign, which belongs beside --campaign"),
    ("output: /tmp/out", "a.yaml: output has '/tmp/out', a path outside of "),
    ("cache: ../../up", "which a file cannot name alone; give --cache, too, if you trust it"),
    ("images: ~/photos", "a.yaml: images has '~/photos', a path outside of "),
    ("weights: {mini-fs: out/net.pth}", "a.yaml: weights has 'out/net.pth', a path outside of "),
    ("images: 'hf:/etc'", "a.yaml: images has 'hf:/etc', a path outside of "),
    ("backbones: '/**'", "a.yaml: backbones has '/**', a path outside of "),
    ("backbones: my_code:net@448px", "backbones has 'my_code:net@448px', Python code, which a file cannot"),
    ("tasks: my_code:task", "a.yaml: tasks has 'my_code:task', Python code, which a file cannot name alone"),
    ("engine: ray:head:6379", "a.yaml: engine has 'ray:head:6379', a cluster, which a file cannot name"),
    ("workers: 10000000", "a.yaml: workers takes a whole number of at most 1024; found 10000000"),
    ('output: "\\ud800"', "malformed (\\ud800 is half a character)"),
    ("a: &a [" + "1," * 2**8 + "]\nb: [" + "*a," * 2**8 + "]", "malformed (it has more than 65,536 values)"),
    ("tasks:", "a.yaml has the key tasks without a value"),
    ("tasks: knn\ntasks: spair", "the key 'tasks' comes twice"),
    ("input-size: 3\ninput_size: 4", "a.yaml has the key input_size twice"),
    ("tasks: nonsense", "a.yaml: there is no task 'nonsense'"),
    ("layers: 4", "a.yaml: layers takes a text such as '4,8-12,final'; found 4"),
    ("backbones: knn", "a.yaml: backbones has 'knn', which is a task"),
    ("limit: 0", "a.yaml: limit takes a whole number of at least 1; found 0"),
    ("suite: yes", "a.yaml: suite takes a word; found True"),
    ("weights: {dino-b16: 3}", "a.yaml: weights takes a path; found 3"),
    ("weights: [a]", "a.yaml: weights takes NAME=PATH, such as moco-s16=vit-s-300ep.pth.tar; found 'a'"),
    ("backbones: &a [*a]", "a.yaml, which is malformed (it is nested too deeply)"),
    ("", "expected YAML in a.yaml, which is malformed (expected object, got null); it takes keys with"),
    ("- a", "malformed (expected object, got list); it takes keys with values, such as 'tasks: knn'"),
    ("tasks: [", "expected YAML in a.yaml, which is malformed (line 1: expected the node content"),
    ("? [a]\n: b", "a.yaml, which is malformed (line 1: found unhashable key"),
    ("suite: !!python/object/apply:os.getcwd []", "malformed (line 1: could not determine a constructor"),
    ("[" * 600, "a.yaml, which is malformed (it is nested too deeply)"),
    (
        "suite: '" + "x" * 2**20 + "'",
        "a.yaml, which cannot be read: it has 1,048,585 bytes, of at most 131,072",
    ),
)


@pytest.mark.parametrize(("content", "sentence"), WRONG)
def test_what_is_wrong_is_one_sentence_with_the_key(here: Path, content: str, sentence: str) -> None:
    (here / "out").symlink_to(here.parent)
    with pytest.raises(InputError) as caught:
        read(Path("a.yaml"), content)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(here: Path) -> None:
    for name, sentence in (
        ("nowhere.yaml", "nowhere.yaml, which cannot be read: No such file or directory"),
        ("below/nowhere", "below/nowhere, which cannot be read"),
        ("paper", "there is no campaign 'paper'; did you mean 'papers'?"),
        ("nonsense", "there is no campaign 'nonsense'; there are papers, today, FILE.yaml, FILE.toml"),
        (str(here), "run.yaml, which cannot be read"),
        ("", "--campaign takes a word; found ''"),
    ):
        with pytest.raises(InputError) as caught:
            Request.filled({"campaign": name})
        assert sentence in str(caught.value)
    for toml in (".".join("a" * 10_000) + " = 1", 'x = {"a"' + ' . "a"' * 10_000 + " = 1}"):
        with pytest.raises(InputError, match=r"slow\.toml, which is malformed \(it is nested too deeply\)"):
            read(Path("slow.toml"), toml)
    (here / "broken.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"TOML in broken\.toml, which is malformed \('utf-8' codec"):
        Request.filled({"campaign": Path("broken.toml")})


def test_data_in_the_file_and_images_beside_it_contradict(here: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(Path("c.yaml"), "data: official", images="photos")
    assert str(caught.value) == (
        "--images contradicts the key data of c.yaml: leave --images out, or take data out of the file"
    )


def test_an_output_folder_names_its_own_file(here: Path) -> None:
    written(here / "results" / RUN_FILE, "tasks: knn\noutput: .\n")
    assert Request.filled({"campaign": "results"}).output == Path("results")


def test_the_packaged_campaigns_are_of_twenty_backbones() -> None:
    papers, today = (Request.filled({"campaign": name}) for name in ("papers", "today"))
    assert {path.stem for path in PACKAGED.iterdir()} == {"papers", "today"}
    (suite,) = (suite for suite in SUITES if suite.name == papers.suite)
    assert (papers.backbones, len(suite.backbones), suite.protocol) == ((), 20, "paper")
    specs = {spec.name: spec for spec in all_specs()}
    assert len({*today.backbones}) == 20
    assert all(specs[name].repository and not specs[name].origin.supply for name in today.backbones)
    assert {
        option for option in ("data", "output", "cache") if vars(today)[option] != vars(Request())[option]
    } == set()
    for path in PACKAGED.iterdir():  # the registry pins what is known: it stands in one place
        assert PINS not in yaml.safe_load(path.read_text(encoding="utf-8"))


def campaign(path: Path, **options: object) -> Path:
    path.write_text(yaml.safe_dump(options), encoding="utf-8")
    return path


@pytest.mark.usefixtures("no_pages")
def test_an_output_runs_again_by_the_file_that_it_carries(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with networks, data and a campaign is moved, and its run goes on from elsewhere."""
    (first := tmp_path / "first").mkdir()
    shutil.copytree(data / "imagenet", first / "data" / "imagenet")
    save(first / "nets" / "mine", "ViTModel")
    options = {"backbones": ["nets/mine", "mini-fs"], "tasks": "knn", "layers": "1"}
    options |= {"floor": False, "workers": 1}
    file = campaign(first / "lab.yaml", data="data", output="out", cache="cache", **options)
    records = layerboard.run(campaign=file).frame
    assert {*records["backbone"]} == {"mine", "mini-fs"}
    kept = yaml.safe_load((first / "out" / RUN_FILE).read_text())
    assert (kept["suite"], kept["protocol"], kept["layers"]) == ("standard", ["standard"], "1")

    first.rename(second := tmp_path / "second")
    monkeypatch.chdir(second)
    by_hand = layerboard.run(campaign="lab.yaml", output="by-hand", workers=1).frame
    carried = yaml.safe_load((second / "by-hand" / RUN_FILE).read_text())
    assert [carried[key] for key in ("backbones", "data", "cache")] == [
        ["../nets/mine", "mini-fs"],
        "../data",
        "../cache",
    ]
    monkeypatch.chdir(tmp_path)
    with Tally().watching() as tally:
        again = layerboard.run(campaign="second/by-hand/run.yaml", output="again", workers=1).frame
        assert layerboard.run(campaign="second/by-hand").frame.equals(by_hand)
    assert tally.rows.total() == 0  # all vectors are in the cache that the file names
    for frame in (by_hand, again):
        assert_same_records(frame, records)


@pytest.mark.usefixtures("no_pages")
def test_the_file_says_what_truly_ran(
    cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ['backbones = "mini-fs"', 'tasks = ["spair"]', 'layers = "2"', 'dtype = "auto"']
    lines += ['cache = "cache"']
    (tmp_path / "c.toml").write_text("\n".join(lines), encoding="utf-8")
    words = ("run", "--campaign", "c.toml", "--tasks", "knn", "--layers", "1", "--no-floor", "-o", "out")
    said = cli(*words, "--data", str(data))
    assert said.code == 0
    assert "tasks is ['knn'], in place of ['spair'] in c.toml" in said.err
    assert "layers is '1', in place of '2' in c.toml" in said.err
    kept = yaml.safe_load(Path("out", RUN_FILE).read_text())
    ran = {"backbones": ["mini-fs"], "tasks": ["knn"], "layers": "1", "dtype": ["float32"], "floor": False}
    assert {key: kept[key] for key in ran} == ran
    planned = cli("run", "--campaign", "out", "--plan", "--json", "--data", str(data))
    assert (planned.code, json.loads(planned.out)["forwards"]) == (0, 0)
