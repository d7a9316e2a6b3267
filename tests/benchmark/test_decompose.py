"""The steps between two protocols, from the command to the page: both ends are what plain runs say."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from layerboard.benchmark.commands.decompose import decompose
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.plan import PlanRecipe, make_plan
from layerboard.benchmark.plan.suites import STANDARD_SUITE
from layerboard.leaderboards.sections.decomposition import difference_interval
from layerboard.tasks.decompose.paths import TAP, TRANSFORM
from layerboard.tasks.decompose.task import Given, steps_protocols, task_steps
from layerboard.tasks.framework.base import Items, Statistic
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer
from tests.benchmark.runs import command, run

LAYERS = "11,12"
Decomposed = tuple[pd.DataFrame, list[Path], Path]  # changes, files of the page, and the folder of the run


def decomposed(place: Path, given: Request, task: str, both: tuple[Given, Given]) -> Decomposed:
    changed, files, failures = decompose(given, task, both, Silent())
    assert not failures
    return changed, files, place


def by(changed: pd.DataFrame, chosen: str) -> list[Any]:
    """The changes of one way to choose layers, in order."""
    return [*changed[changed["chosen"] == chosen].itertuples()]


def request(place: Path, data: Path) -> Request:
    return Request(
        ["mini-resnet"], data=data, output=place / "out", cache=place / "cache", workers=1, layers=LAYERS
    )


def ends(first: str, second: str) -> tuple[Given, Given]:
    """Two protocols with the usual features."""
    return Given(find_protocol(first)), Given(find_protocol(second))


def scores(
    place: Path, data: Path, task: str, protocols: str, limit: int | None = None
) -> dict[str, dict[int, float]]:
    """Primary scores of plain runs, by protocol and block."""
    found = run(place, ["mini-resnet"], task, data=data, protocol=protocols, layers=LAYERS, limit=limit)
    return {name: by_layer(found, name, found["primary"].astype(bool)) for name in protocols.split(",")}


def by_layer(records: pd.DataFrame, protocol: str, chosen: pd.Series) -> dict[int, float]:
    """Chosen records of a protocol, by block."""
    rows = records[chosen & (records["protocol"] == protocol)]
    return dict(zip(rows["layer"], rows["value"], strict=True))


@pytest.fixture(scope="module")
def keypoints(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Decomposed:
    place = tmp_path_factory.mktemp("keypoints")
    return decomposed(place, request(place, data), "spair", ends("standard", "paper"))


def test_both_ends_are_the_scores_of_plain_runs(keypoints: Decomposed, data: Path) -> None:
    changed, _, place = keypoints
    plain = scores(place, data, "spair", "standard,paper")
    fixed, best = by(changed, "fixed"), by(changed, "best")
    layer = fixed[0].layer_before.index
    assert fixed[0].before == plain["standard"][layer] == max(plain["standard"].values())
    assert fixed[-1].after == plain["paper"][layer]
    assert best[0].before == max(plain["standard"].values())
    assert best[-1].after == max(plain["paper"].values())
    for rows in (fixed, best):
        assert sum(one.delta for one in rows) == pytest.approx(rows[-1].after - rows[0].before)
        assert [one.after for one in rows[:-1]] == [one.before for one in rows[1:]]
        assert rows[0].alone == pytest.approx(rows[0].delta)  # the first choice comes first
        assert rows[-1].last == pytest.approx(rows[-1].delta)  # and the last one last
        assert all(one.low <= one.delta <= one.high for one in rows if np.isfinite(one.low))
    steps = task_steps("spair", *ends("standard", "paper"))
    assert [one.choice for one in fixed] == [choice.name for choice in steps.choices]
    assert [one.forward for one in fixed] == [one.choice.startswith("resize") for one in fixed]


def test_ceilings_are_those_of_plain_runs(keypoints: Decomposed, data: Path) -> None:
    changed, _, place = keypoints
    plain = run(place, ["mini-resnet"], "spair", data=data, protocol="standard,paper", layers=LAYERS)
    is_ceiling = plain["metric"] == "PCK@0.1 ceiling"
    first, last = (by_layer(plain, name, is_ceiling) for name in ("standard", "paper"))
    for rows in (by(changed, chosen) for chosen in ("best", "fixed")):
        assert rows[0].ceiling_before == first[rows[0].layer_before.index] > 0
        assert rows[-1].ceiling_after == last[rows[-1].layer_after.index] > 0


@pytest.fixture(scope="module")
def transformed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Decomposed:
    """From the blocks of a transformer to its last one behind the final norm, without positions."""
    place = tmp_path_factory.mktemp("transformed")
    return decomposed(place, small_transformer(place, data), "spair", far_ends())


def small_transformer(place: Path, data: Path) -> Request:
    return replace(request(place, data), backbones=("mini-dino",), limit=2)


def far_ends() -> tuple[Given, Given]:
    first, second = ends("standard", "paper")
    return first, replace(second, tap="final", transform="debias:4")


def test_layers_and_transforms_are_steps_whose_last_is_the_score_of_a_run(
    transformed: Decomposed, data: Path
) -> None:
    changed, _, place = transformed
    options = {"transform": "debias:4", "layers": f"{LAYERS},final", "limit": 2}
    plain = run(place, ["mini-dino"], "spair", data=data, protocol="standard,paper", **options)
    scored = (
        plain[plain["primary"].astype(bool)].set_index(["protocol", "transform", "tap"]).sort_index()["value"]
    )
    for chosen in ("best", "fixed"):
        rows = by(changed, chosen)
        assert rows[0].before == scored["standard", "", "block"].max()
        assert rows[-1].after == scored["paper", "debias:4", "final"].item()
        assert sum(one.delta for one in rows) == pytest.approx(rows[-1].after - rows[0].before)
        names = [one.choice for one in rows]
        tap, transform = (rows[names.index(name)] for name in (TAP, TRANSFORM))
        assert (tap.layer_before.tap, tap.layer_after) == ("block", Layer(12, "final"))
        layers = {each for one in (transform, rows[-1]) for each in (one.layer_before, one.layer_after)}
        assert layers == {Layer(12, "final")}
        assert not tap.forward  # every layer is of one pass


def test_the_page_says_layers_transforms_and_ceilings(transformed: Decomposed) -> None:
    changed, files, _ = transformed
    (page,) = (path for path in files if path.suffix == ".md")
    text = page.read_text()
    assert "from standard to paper+final+debias:4" in text
    assert "last block behind the final norm" in text
    rows = pd.read_csv(page.with_suffix(".csv"))
    assert rows["layer_after"].iloc[-1] == "final"
    assert set(rows["metric"]) == {"PCK@0.1"}
    assert rows["ceiling_after"].iloc[-1] == changed["ceiling_after"].iloc[-1]
    assert "| ceiling |" in " ".join(text.split())


def test_the_way_back_from_other_features_adds_up_to_the_opposite(
    transformed: Decomposed, data: Path
) -> None:
    changed, _, place = transformed
    first, second = far_ends()
    back, *_ = decomposed(place, small_transformer(place, data), "spair", (second, first))
    totals = [sum(one.delta for one in by(each, "best")) for each in (changed, back)]
    assert totals[0] == pytest.approx(-totals[1])


def test_its_page_says_choices_and_what_a_protocol_is_not(keypoints: Decomposed) -> None:
    changed, files, place = keypoints
    (page,) = (path for path in files if path.suffix == ".md")
    text = page.read_text()
    assert page.parent == place / "out/tables"
    assert "resize and padding" in text
    assert "centred on black, Lanczos" in text
    assert "the order here is alphabetical" in text
    rows = pd.read_csv(page.with_suffix(".csv"))
    assert len(rows) == 2 * len(task_steps("spair", *ends("standard", "paper")).choices)
    assert rows["delta"].to_numpy() == pytest.approx(changed["delta"].to_numpy())


def test_propagation_is_decomposed_too(data: Path, tmp_path: Path) -> None:
    small = replace(request(tmp_path, data), limit=1)
    changed, *_ = decomposed(tmp_path, small, "davis", ends("standard", "dino"))
    plain = scores(tmp_path, data, "davis", "standard,dino", limit=1)
    best = by(changed, "best")
    assert best[0].before == pytest.approx(max(plain["standard"].values()), abs=1e-9)
    assert best[-1].after == pytest.approx(max(plain["dino"].values()), abs=1e-9)
    assert all(0 < one.ceiling_before <= 100 and 0 < one.ceiling_after <= 100 for one in changed.itertuples())


def test_rules_with_the_same_view_share_a_pass(data: Path) -> None:
    # insid3 has another size and another resize; paper another resize and, in the same view, drawn pairs
    for name, views in (("insid3", 4), ("paper", 2)):
        both = ends("standard", name)
        steps = task_steps("spair", *both)
        every = steps_protocols("spair", steps, *both)
        assert [*every] == [*range(len(steps.stops))]
        one, *further = every.values()
        at = DataLocation(STANDARD_SUITE.datasets, data, protocol=one, further=tuple(further))
        plan = make_plan(PlanRecipe((), ("layerboard.tasks.decompose.task:spair",), at))
        assert len(plan.passes) == views
        assert sum(len(each.measured) for each in plan.passes) == len(every)


@pytest.mark.parametrize("name", ["paper", "insid3+final", "insid3+debias:4", "insid3+final+debias:20"])
def test_a_protocol_with_its_features_goes_by_one_name(name: str) -> None:
    assert Given.of(name).name == name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("spair", "--to", "standard"), "standard and standard do the same in spair"),
        (("spair", "--to", "pe"), "the protocol pe is of davis, not of spair"),
        (("knn", "--to", "paper"), "protocols of spair and davis can be decomposed, not of knn"),
        (("spair", "--from", "standart"), "did you mean 'standard'"),
        (("spair", "--to", "insid3+whiten"), "whiten acts on vectors of images"),
        (("spair", "--to", "insid3+debias"), "insid3+debias:20 or insid3+final+debias:20; found"),
        (("spair", "--to", "insid3+norm1"), "insid3+debias:20 or insid3+final+debias:20; found"),
        (("spair", "--to", "insid3+debias:2+debias:3"), "insid3+final+debias:20; found"),
        (("spair", "--to-tap", "final"), "is `layerboard decompose spair --to PROTOCOL+final` now"),
    ],
)
def test_what_cannot_be_decomposed(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = command(capsys, "decompose", *words)
    assert found.code == 2
    assert said in found.err


def hits(values: list[float], over: str = "items") -> tuple[Items, str]:
    """Items of one value each, in clusters of their own."""
    keys = tuple(f"item{place}" for place in range(len(values)))
    column = np.array(values)
    statistic = Statistic("hit", over)  # type: ignore[arg-type]
    return Items("items", keys, keys, ("",) * len(keys), {"hit": column}, {"hit": statistic}), "hit"


def test_pairs_of_equal_values_leave_no_doubt_and_other_items_leave_more() -> None:
    rng = np.random.default_rng(0)
    values = [float(value) for value in rng.uniform(0, 100, 40)]
    raised = [value + 3 for value in values]
    low, high = difference_interval(hits(values), hits(raised))
    assert (low, high) == (pytest.approx(3), pytest.approx(3))
    nan = float("nan")
    apart = hits([*values, *[nan] * 40]), hits([*[nan] * 40, *raised])
    low, high = difference_interval(*apart)
    spread = 2 * np.std(values, ddof=1) ** 2 / 40
    assert (high - low) / 2 == pytest.approx(2.0227 * np.sqrt(spread), rel=1e-3)  # Student's t of 39


def test_too_few_units_have_no_interval() -> None:
    assert all(np.isnan(difference_interval(hits([1.0]), hits([2.0]))))


def test_an_unknown_backbone_is_one_sentence(data: Path, tmp_path: Path) -> None:
    wrong = Request(["no/body"], data=data, output=tmp_path / "out", cache=tmp_path / "cache")
    with pytest.raises(InputError, match="no/body"):
        decompose(wrong, "spair", ends("standard", "paper"), Silent())
