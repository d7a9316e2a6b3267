"""Where backbones come from: the table of origins, and one more."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.backbone import Backbone, RawPixels
from layerboard.zoo.load.backbone import (
    OriginLoader,
    describe_backbone,
    identify,
    identity_of,
    load_backbone,
    loader_of,
)
from layerboard.zoo.registry.find import find, require_named
from layerboard.zoo.spec import BackboneSpec, origin
from layerboard.zoo.spec.origin import ORIGINS, Origin, origin_by_mark, origin_of

TOY = Origin(name="toy", loader=f"{__name__}:Toys", mark="toy:", example="toy:pixels")


class Toys(OriginLoader):
    """Loader of a toy, which is the pixels."""

    def find(self, text: str, cache_dir: Path | None) -> BackboneSpec:
        (pixels,) = find(["mini-pixels"])
        return replace(pixels, name=text, origin=TOY)

    def identify(self, spec: BackboneSpec, cache_dir: Path) -> BackboneIdentity:
        return identity_of(spec, "sha256:toy")

    def load(self, spec: BackboneSpec, device: torch.device, cache_dir: Path) -> Backbone:
        return RawPixels(spec, self.identify(spec, cache_dir), device)


def test_names_and_marks_are_unique_and_loaders_exist() -> None:
    names, marks = [each.name for each in ORIGINS], [each.mark for each in ORIGINS if each.mark]
    assert len({*names}) == len(names)
    assert len({*marks}) == len(marks)
    assert all(isinstance(loader_of(each), OriginLoader) for each in ORIGINS)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("given:own#1", "module"),
        ("timm:vit_small", "timm"),
        ("onnx:net", "onnx"),
        ("package.module:make", "object"),
        ("mini-fs", ""),
        ("facebook/dinov2-base@main", ""),
        ("/some/folder", ""),
    ],
)
def test_the_form_of_a_name_tells_its_origin(text: str, name: str) -> None:
    assert (found.name if (found := origin_of(text)) else "") == name


def test_a_directory_is_no_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert origin_of("module:name") is not None
    Path("module:name").mkdir()
    assert origin_of("module:name") is None


def test_a_further_origin_is_a_row_and_a_loader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(origin, "ORIGINS", (*ORIGINS, TOY))
    assert origin_by_mark("toy:one") == TOY
    (spec,) = find(["toy:one"])
    assert spec.origin == TOY
    assert identify(spec, cache_dir=tmp_path).revision == "sha256:toy"
    assert load_backbone(spec, device=torch.device("cpu"), cache_dir=tmp_path).revision == "sha256:toy"
    assert describe_backbone(spec, tmp_path) == ""
    with pytest.raises(InputError, match="is a pattern; toy: takes a name, such as toy:pixels"):
        require_named("toy:*")
