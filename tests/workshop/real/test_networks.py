"""Trained networks of the workshop: fetched at their digest, converted, and with their stored features."""

import os
import re
import subprocess
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.feature_fingerprint import require_same_features, stored_fingerprint
from workshop.real import convert
from workshop.real.__main__ import write_network
from workshop.real.fetch import Repository
from workshop.real.networks import NETWORKS, RealNetwork
from workshop.real.trials import FINGERPRINTS, fingerprint_of

ROOT = Path(__file__).parents[3]
BUILT = os.environ.get("LAYERBOARD_REAL", "")


@pytest.mark.skipif(not BUILT, reason="LAYERBOARD_REAL=DIR, which `python -m workshop.real --to DIR` wrote")
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.saved_as)
def test_a_trained_network_has_its_stored_features(network: RealNetwork) -> None:
    weights = Path(BUILT, network.saved_as)
    stored = stored_fingerprint(weights.stem, FINGERPRINTS)
    assert {len(row) for row in stored.numbers.values()} == {12}
    require_same_features(fingerprint_of(network, weights), stored)


def test_files_of_a_repository_are_those_of_its_commit(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "a.bin").write_bytes(b"weights")
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "net"], [*name, "commit", "-qm", "net"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=tmp_path, text=True).strip()
    source = Repository(str(tmp_path), head)
    assert [*source.files(["net"], tmp_path / "downloads")] == [("net/a.bin", b"weights")]
    with pytest.raises(InputError, match="cannot be had: git says"):
        [*replace(source, commit="0" * 40).files(["net"], tmp_path / "downloads")]
    network = replace(NETWORKS[0], source=source, path="net", sha256="0")
    with pytest.raises(InputError, match=r"net has the SHA-256 [0-9a-f]{64}, not 0\."):
        write_network(network, tmp_path / "converted", tmp_path / "downloads")


def test_tensors_of_other_names_and_strides_are_those_of_timm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4)).to(memory_format=torch.channels_last)
    monkeypatch.setattr(convert, "create_untrained", lambda _: deepcopy(network))
    state = network.state_dict()
    torch.save({f"stem_{name}": tensor for name, tensor in state.items()}, tmp_path / "net.pth")
    convert.efficientnet_lite("net")(tmp_path / "net.pth", tmp_path / "net.safetensors")
    for name, tensor in load_file(tmp_path / "net.safetensors").items():
        assert torch.equal(tensor, state[name])


def test_what_the_readme_says_of_trained_networks_is_on_their_board() -> None:
    said = re.findall(
        r"(\d+\.\d ± \d\.\d)\** (?:≈ )?\((?:layer )?(\d+)", (ROOT / "README.md").read_text("utf-8")
    )
    assert len(said) == 20
    board = (ROOT / "leaderboards" / "real" / "images-tiny-imagenet-50-fb244128.md").read_text("utf-8")
    assert [each for each in said if "{} ({}/".format(*each) not in board] == []
