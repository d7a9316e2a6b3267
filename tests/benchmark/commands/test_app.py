"""Commands and options, from the command line as a user types them."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from layerboard.benchmark.commands.app import COMMANDS, PANELS, app, command_line, repeat_options
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import read_frame
from tests import fakes
from tests.benchmark.conftest import Whole
from tests.benchmark.runs import Cli

NAMES = [each.name for each in COMMANDS]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["run", "--tasks", "a", "b"], ["run", "--tasks", "a", "--tasks", "b"]),
        (["run", "-t", "a", "-b", "x", "y"], ["run", "-t", "a", "-b", "x", "-b", "y"]),
        (["run", "-b", "x", "-b", "y", "z"], ["run", "-b", "x", "-b", "y", "-b", "z"]),
        (["list", "tasks"], ["list", "tasks"]),
        (
            ["score", "knn", "--features", "a", "--config", "k=1", "seed=2"],
            ["score", "knn", "--features", "a", "--config", "k=1", "--config", "seed=2"],
        ),
        (["recommend", "--licence", "any"], ["recommend", "--licence", "any"]),
    ],
)
def test_an_option_takes_several_values(given: list[str], meant: list[str]) -> None:
    assert repeat_options(given) == meant


def test_the_help_is_one_screen_in_panels(cli: Cli) -> None:
    text = cli("--help").out
    assert re.findall("╭─ (.*?) ─", text) == ["Options", *PANELS]
    assert {*re.findall("^│ ([a-z]+) ", text, re.MULTILINE)} == {*NAMES}
    assert len(text.splitlines()) <= 40


def test_a_command_that_was_seen_alone_still_knows_its_short_help(cli: Cli) -> None:
    command_line().commands["show"].make_context("layerboard", [])
    assert cli("show", "-h").code == 0


def test_without_arguments_there_is_help(cli: Cli) -> None:
    said = cli()
    assert "Usage" in said.out + said.err
    assert "leaderboard" in said.out + said.err


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(cli: Cli, name: str) -> None:
    said = cli(name, "-h")
    assert said.code == 0
    assert "Usage" in said.out
    has_example = name not in ("run", "check", "score")
    assert not has_example or f"layerboard {name}" in said.out.split("Example:")[1]


def test_options_of_a_run_stand_in_groups(cli: Cli) -> None:
    parts = re.split("╭─ (.*?) ─", cli("run", "--help").out)
    groups = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert [*groups] == ["Options", "Data", "Backbones", "Tasks", "Layers and vectors", "Machine", "Output"]
    assert re.findall(" (--[a-z-]+)", groups["Options"]) == ["--help"]
    assert all(option in groups["Machine"] for option in ("--workers", "--dtype", "--engine"))


def test_a_shell_completes_commands_options_and_choices() -> None:
    asked = {"layerboard ru": ["run"], "layerboard run --ba": ["--backbones", "--batch-size"]}
    for words, completions in (asked | {"layerboard run --dtype b": ["bfloat16"]}).items():
        place = str(len(words.split()) - 1)
        given = {"_LAYERBOARD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
        done = CliRunner().invoke(app, prog_name="layerboard", env=given)
        assert done.output.split() == completions


def test_help_keeps_its_placeholders(cli: Cli) -> None:
    out = " ".join(cli("score", "--help").out.replace("│", " ").split())
    words = ["<sequence>/*.png", "[<category>/]<image>.npy", "[x, y]", "[side", "[database queries]"]
    assert [word for word in words if word not in out] == []


@pytest.mark.parametrize("words", [("show",), ("compare", "a", "b"), ("recommend",), ("list", "tasks")])
def test_what_is_for_machines_can_be_turned_off(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    given = [] if words[0] == "list" else ["--output", str(tmp_path / "none")]
    plain, turned_off = (cli(*words, *given, *more) for more in ([], ["--no-json"]))
    assert (turned_off.code, turned_off.out, turned_off.err) == (plain.code, plain.out, plain.err)


def test_leaderboard_writes_and_checks(cli: Cli, of_knn: Path, tmp_path: Path) -> None:
    out, tables = of_knn, tmp_path / "tables"
    assert cli("leaderboard", "-o", out).code == 0
    said = cli("leaderboard", "-o", out, "--tables", tables)
    assert said.code == 0
    assert (tables / "standard.md").read_text() == (out / "tables" / "standard.md").read_text()
    said = cli("leaderboard", "-o", out, "--tables", tables, "--check")
    assert (said.code, said.out) == (0, f"The pages in {tables} are current.\n")
    said = cli("leaderboard", "-o", out, "--check")
    assert "the package has no pages of standard; name yours: --tables DIR" in said.error
    path = out / "records" / "mini-fs" / "knn.imagenet.standard.parquet"
    frame = read_frame(path)
    frame["value"] = frame["value"] / 2 - 3
    write_checked(frame, path)
    said = cli("leaderboard", "-o", out, "--tables", tables, "--check")
    assert said.code == 1
    assert "mini-fs, knn on imagenet (standard)" in said.out
    error = cli("leaderboard", "-o", tmp_path / "empty").error
    assert f"in {tmp_path / 'empty' / 'records'} but found none" in error


def test_own_images_are_told_apart_by_content_and_have_files_whatever_their_name(
    cli: Cli, tmp_path: Path
) -> None:
    for seed, name in enumerate(("a/im", "猫\nnew")):
        fakes.write_fake_class_folders(tmp_path / name, images=4, seed=seed)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    folders = ("-o", tmp_path / "out", "--cache", tmp_path / "cache", "--no-floor")
    options = ("-b", "mini-random", "-t", "knn", "--layers", "1", "--workers", "1", "--limit", "2")
    for name in ("a/im", "猫\nnew", "copy/im"):
        said = cli("run", "--images", tmp_path / name, *options, *folders)
        assert (said.code, "1 backbone, 9 images, " in said.err) == (0, True)
    tables = {path.stem[:-9]: path.stem[-8:] for path in (tmp_path / "out" / "tables").glob("*.md")}
    assert {*tables} == {"images-im", "images-猫-new"}
    paths = [*(tmp_path / "out" / "records").rglob("*.parquet")]
    assert sorted(path.name.split(".")[1][-8:] for path in paths) == sorted(tables.values())
    for frame in map(read_frame, paths):
        assert frame["partial"].all()
        assert frame["coverage"].str.contains("limited to 3 images a class: 9 images were used").all()
        assert {*frame["n"]} == {9}


@pytest.mark.usefixtures("no_pages")
def test_the_floor_is_added_unless_it_is_left_out(cli: Cli, whole: Whole, data: Path, tmp_path: Path) -> None:
    folders = ("-o", tmp_path / "out", "--cache", whole.place / "cache")
    options = ("-b", "mini-fs", "-t", "knn", "--layers", "1", "--workers", "1", "--data", data)
    assert cli("run", *options, *folders, "--no-floor").code == 0
    assert [path.name for path in (tmp_path / "out" / "records").iterdir()] == ["mini-fs"]
    shutil.copytree(whole.place / "cache", tmp_path / "cache")
    assert cli("run", *options, *folders, "--cache", tmp_path / "cache").code == 0
    assert {path.name for path in (tmp_path / "out" / "records").iterdir()} == {
        *("mini-fs", "mini-random", "mini-pixels")
    }
