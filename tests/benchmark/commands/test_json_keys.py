"""Keys of JSON that programs read: a key that goes or changes its name fails here, a new one does not."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.benchmark.runs import Cli
from tests.leaderboards.outputs import measured_items, records_of, write_output

CANDIDATE = "task dataset protocol metric backbone layer depth pooling score ci_low ci_high loss"
# By command line: the keys of its object or of each object of its list; after a dot those of what it holds.
KEYS = {
    "show": {
        "": "suite answers notes beyond",
        "answers": f"{CANDIDATE} data partial held_out milliseconds timed_at disturbed device rivals "
        "untested layers elsewhere baselines thresholds",
    },
    "recommend": {
        "": "recommended pareto device notes python",
        "pareto": f"{CANDIDATE} difference ms parameters dim",
        "recommended": f"{CANDIDATE} rank difference ms timed_at parameters gflops dim bytes image_bytes "
        "licence compression thresholds other_layers reason partial",
    },
    "compare mini-clip mini-dino": {
        "": "first second layers comparisons left_out conclusion",
        "comparisons": "task dataset data protocol metric partial layer depth pooling score other_layer "
        "other_depth other_pooling other_score difference ci_low ci_high p p_corrected higher",
    },
    "recommend --literature --task spair": {
        "": "published notes",
        "published": "task dataset metric group networks rank backbone registered value decimals better "
        "layer depth rule pooling measured protocol input_size source table publication second_hand frozen "
        "not_comparable conditions",
    },
    "run -b mini-random -t knn --layers 1 --no-floor --plan": {
        "": "suite device workers images steps seconds memory warm_up notes forwards disk",
        "steps": "backbone what source images seconds disk",
    },
    "list tasks": {"": "name,what,primary metric,standard data"},
    "list suites": {"": "name what backbones"},
    "list backbones mini-dino": {
        "": "name family supervision learned_from data data_size seen seen_by retrained trained parameters "
        "depth width heads patch stages input_size trained_size grids layers prefix_tokens class_token "
        "final_norm mean std licence licence_from gated paper recipe code checkpoint repository original "
        "revision file revision_policy fingerprint load",
        "stages": "blocks width stride",
        "file": "name sha256 size source note",
    },
}
SCORED = "command schema protocol parameters n unit scale scores details notes"
# Of `score`, by scorer: the keys of what it tells besides its scores.
DETAILS = {
    "knn": "classes intervals train_items",
    "fewshot": "classes intervals train_items",
    "linear": "classes intervals train_items",
    "clustering": "classes clusters intervals",
    "regress": "folds intervals items",
    "multilabel": "folds intervals items",
    "instances": "groups intervals",
    "cka": "batches samples_left_out",
}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made output folder."""
    folder = tmp_path_factory.mktemp("keys")
    every = measured_items()
    write_output(records_of(every), every, folder)
    return folder


@pytest.mark.parametrize("line", KEYS)
def test_commands_keep_their_keys(line: str, output: Path, cli: Cli) -> None:
    words = line.split()
    reads = words[0] in ("show", "recommend", "compare") and "--literature" not in words
    given = json.loads(cli(*words, *(("-o", output) if reads else ()), "--json").out)
    given = given[0] if isinstance(given, list) else given
    for part, names in KEYS[line].items():
        content = given[part] if part else given
        content = content[0] if isinstance(content, list) else content
        assert set(names.split("," if "," in names else " ")) <= set(content), (line, part)


@pytest.mark.parametrize("scorer", DETAILS)
def test_scorers_keep_their_keys(scorer: str, tmp_path: Path, cli: Cli) -> None:
    drawn = np.random.default_rng(0)
    first, second = drawn.normal(size=(2, 80, 6))
    labels = np.arange(80) % 4
    targets = labels[:, None] == np.arange(4) if scorer == "multilabel" else first @ drawn.normal(size=6)
    arrays = {"train": first, "test": second, "train_labels": labels, "test_labels": labels}
    arrays |= {"features": first, "labels": labels, "groups": labels, "targets": targets}
    reads = {"clustering": "features labels", "instances": "features groups", "cka": ""}
    reads |= dict.fromkeys(("regress", "multilabel"), "features targets")
    np.save(tmp_path / "0.npy", first)
    np.save(tmp_path / "1.npy", second)
    names = reads.get(scorer, "train test train_labels test_labels").split()
    np.savez(tmp_path / "a.npz", **{name: arrays[name] for name in names})
    paths = [tmp_path / name for name in (("0.npy", "1.npy") if scorer == "cka" else ("a.npz",))]
    said = cli("score", scorer, "--features", *paths, "--json")
    assert said.code == 0, said.err
    given = json.loads(said.out)
    assert set(SCORED.split()) <= set(given)
    assert set(DETAILS[scorer].split()) <= set(given["details"])
