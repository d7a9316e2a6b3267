"""The command `list`, and the page of the documentation that says the same."""

import json
from pathlib import Path

import pytest

from layerboard.benchmark.commands.list import BackboneFilters, facts, text_of
from layerboard.benchmark.plan.facts import teachers
from layerboard.leaderboards.answer.candidates import apply_limits
from layerboard.leaderboards.findings.facts import commercial_use
from layerboard.zoo.registry.find import all_specs, find
from tests.benchmark.commands.backbones_page import PATH, page
from tests.benchmark.runs import Cli
from tests.leaderboards.answer.test_candidates import candidates, given


def names(cli: Cli, *options: str) -> list[str]:
    """Names that `list backbones --json` gives."""
    said = cli("list", "backbones", "--json", *options)
    assert said.code == 0
    return [row["name"] for row in json.loads(said.out)]


def test_all_backbones_are_listed(cli: Cli) -> None:
    assert names(cli) == [spec.name for spec in all_specs()]
    table = cli("list", "backbones").out
    assert all(f"\n{spec.name} " in table for spec in all_specs())
    assert f"{len(all_specs())} backbones; 'list backbones NAME'" in table


def test_other_lists_are_for_machines_too(cli: Cli) -> None:
    tasks, suites = (json.loads(cli("list", what, "--json").out) for what in ("tasks", "suites"))
    assert [task["name"] for task in tasks][:2] == ["knn", "fewshot"]
    assert {suite["name"] for suite in suites} >= {"mini", "standard"}


@pytest.mark.parametrize(
    ("filters", "some", "none"),
    [
        (("family=dino",), "dino-b16", "dinov2-b14"),
        (("family=SWIN,convnext",), "swinv2-b", "resnet50"),
        (("licence=cc-by-nc",), "metaclip-b16", "clip-b16"),
        (("supervision=labels",), "convnextv2-t", "dino-b16"),
        (("supervision=texts",), "siglip2-b16", "dino-b16"),
        (("supervision=ImageNet-22k",), "beit-b16", "mae-b16"),
        (("parameters=30M",), "dinov2-s14", "dinov2-b14"),
    ],
)
def test_filters(cli: Cli, filters: tuple[str, ...], some: str, none: str) -> None:
    found = names(cli, "--where", *filters)
    assert some in found
    assert none not in found


def test_commercial_means_the_same_to_list_and_recommend(cli: Cli) -> None:
    """Of every licence of the registry: a word in its name does not decide, what it allows does."""
    listed = {spec.licence for spec in find(names(cli, "--where", "licence=commercial"))}
    for licence in {spec.licence for spec in all_specs()}:
        allowed, _ = apply_limits(given(candidates(("a", 1, 50, 1.0), licence=licence)), {}, commercial=True)
        assert (licence in listed) == (commercial_use(licence) == "allowed") == (len(allowed) == 1), licence


@pytest.mark.parametrize(("wanted", "count"), [("any", len(all_specs())), ("noncommercial", 5)])
def test_other_words_are_part_of_the_licence(cli: Cli, wanted: str, count: int) -> None:
    assert len(names(cli, "--where", f"licence={wanted}")) == count


def test_one_backbone(cli: Cli) -> None:
    said = " ".join(cli("list", "backbones", "dinov2-b14-reg").out.split())
    for text in ("DINOv2", "LVD-142M", "Apache-2.0", "86.6M", "input size 224", "grids 16", "; 12; final"):
        assert text in said
    assert "prefix tokens 5 class token yes" in said
    assert "pinned: a1d738ccfa7ae170945f210395d99dde8adb1805" in said
    assert "sha256 7a6f7b3b9fa4b8732e707476a03cd6cdce210048582f21aafb7991c17d98e362" in said
    assert cli("list", "backbones", "facebook/dinov2-with-registers-base").out.split() == said.split()


def test_one_backbone_for_machines(cli: Cli) -> None:
    (spec,) = find(["swin-t"])
    found = json.loads(cli("list", "backbones", "swin-t", "--json").out)
    assert found == json.loads(json.dumps(facts(spec)))
    assert found["stages"][1] == {"blocks": 2, "width": 192, "stride": 8}
    assert found["grids"] == [56, 28, 14, 7]
    assert found["layers"] == [*map(str, range(13)), "final"]
    assert (found["revision"][:7], found["parameters"], found["gated"]) == ("d00d478", 27_519_354, False)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("moco-s16", ("vit-s-300ep.pth.tar", "--weights moco-s16=FILE", "the digest of the file")),
        ("dinov3-7b16", ("gated: yes", "'hf auth login'", "6.72G")),
        ("resnet50", ("class_token: no", "blocks 3, width 256, stride 4; ")),
        ("resnet101-tv", ("IMAGENET1K_V1", "sha256 63fe2227", "resnet101-63fe2227.pth")),
        ("mini-dino", ("comes with the package", "rendered images", "fingerprint: yes")),
        ("mini-fs-untrained", ("comes from a seed", "trained: no")),
    ],
)
def test_how_a_backbone_is_had(name: str, texts: tuple[str, ...]) -> None:
    known = facts(find([name])[0])
    said = "\n".join(f"{title}: {text_of(title, value)}" for title, value in known.items())
    assert all(text in said for text in texts)


def test_every_backbone_says_which_weights_it_means_and_all_can_be_shown() -> None:
    """Commit, digest, bytes, recipe and licences, each with its source, or that it is not known."""
    for spec in all_specs():
        known = facts(spec)
        assert {"revision_policy", "recipe", "licence", "licence_from", "data_size"} <= {*known}
        assert {"name", "sha256", "size", "source", "note"} <= {*known["file"]}  # type: ignore[misc]
        if not spec.origin.supply:
            assert text_of("recipe", known["recipe"]) == (spec.recipe or "not known")
            assert spec.code in str(known["licence_from"]) or spec.repository
        assert json.dumps(known, allow_nan=False)
        assert not {"", "None"} & {text_of(name, value) for name, value in known.items()}, spec.name
        assert set(teachers(spec).split(", ")) <= {"images", "texts", "labels", "none"}, spec.name
    assert sum(bool(facts(spec)["recipe"]) for spec in all_specs()) > 130


def test_a_directory_tells_what_its_configuration_says(cli: Cli) -> None:
    place = Path("mini") / "weights" / "mini-dino"
    said = cli("list", "backbones", place).out
    assert "family           other\n" in said
    found, known = (json.loads(cli("list", "backbones", place, "--json").out), find(["mini-dino"])[0])
    of_the_network = ("stages", "heads", "prefix_tokens", "class_token", "final_norm")
    for name in (*of_the_network, "mean", "std", "input_size"):
        assert found[name] == json.loads(json.dumps(facts(known)[name]))


@pytest.mark.parametrize(
    ("text", "number"),
    [("86000000", 86_000_000), ("86M", 86_000_000), ("1.2g", 1_200_000_000), ("1B", 10**9)],
)
def test_numbers_of_weights(text: str, number: int) -> None:
    assert BackboneFilters(where={"parameters": text}).where == {"parameters": number}


def test_the_committed_page_is_current() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert text == page(), "python -m tests.benchmark.commands.backbones_page writes it again"
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(headings) == len(set(headings))
    assert all(f"`{spec.name}`" in text for spec in all_specs())
