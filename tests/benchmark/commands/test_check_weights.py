"""`check --weights`: the same, refused, new, or a user's own; from Python the same."""

from pathlib import Path

import pytest

import layerboard
from layerboard.mini.checkpoints import WEIGHTS
from layerboard.zoo.load import feature_fingerprint as fingerprints
from layerboard.zoo.load.feature_fingerprint import require_same_features, stored_fingerprint
from layerboard.zoo.registry.find import find
from tests.benchmark.runs import command

Capture = pytest.CaptureFixture[str]


def test_packaged_weights_are_the_same(capsys: Capture) -> None:
    said = command(capsys, "check", "--weights", "mini-resnet", "mini-fs64-*pct")
    checked = len(find(["mini-resnet", "mini-fs64-*pct"]))
    assert checked > 3
    assert (said.code, said.out.count(" same "), said.out.count(" refused ")) == (0, checked, 0)


def test_the_weights_of_another_are_refused(capsys: Capture) -> None:
    said = command(capsys, "check", "--weights", "mini-fs64", f"mini-dino={WEIGHTS / 'mini-moco'}")
    assert (said.code, said.out.count(" same "), said.out.count(" refused ")) == (1, 1, 1)
    assert "the features of mini-dino are not those of its fingerprint: at 64 px, layer 6" in said.out


def test_a_new_fingerprint_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "stored_fingerprint", lambda name: None)
    found = layerboard.check(weights="mini-resnet", output=tmp_path)
    assert found.frame["state"].tolist() == ["new"]
    written, stored = (stored_fingerprint("mini-resnet", *at) for at in ([tmp_path / "fingerprints"], []))
    assert written is not None
    assert stored is not None
    require_same_features(written, stored)
    given = layerboard.check(weights=[f"mini-dino={WEIGHTS / 'mini-dino'}"], output=tmp_path)
    assert given.frame["state"].tolist() == ["unknown"]
    assert len([*(tmp_path / "fingerprints").iterdir()]) == 1
