"""Backbones that are not in the registry: any Hub id or directory in Hugging Face format."""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
import transformers
from huggingface_hub import errors

from layerboard.zoo.errors import InputError
from layerboard.zoo.load import rotary_vit
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.hub import quiet
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Stage
from tests.zoo.conftest import CPU, Loader, Small
from tests.zoo.reduced import grids_of, normalised, pixels

VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 56,
    "patch_size": 14,
}
CONV = {"hidden_sizes": [16, 32], "depths": [1, 2], "num_stages": 2}


def save(folder: Path, name: str, **options: object) -> transformers.PreTrainedModel:
    """A random model of a transformers class, saved as its library does; nothing is left at zero.

    Without ``embed_dim`` or ``hidden_sizes`` in the options, it is one of two blocks, or of two stages.
    """
    model, files = _made(name, json.dumps(options, sort_keys=True))
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return deepcopy(model)


@cache
def _made(name: str, described: str) -> tuple[transformers.PreTrainedModel, dict[str, bytes]]:
    """The model and its files, which many tests ask for."""
    options = json.loads(described)
    model_class = getattr(transformers, name, None) or getattr(rotary_vit, name)
    is_whole = "embed_dim" in options or "hidden_sizes" in options
    shape = {} if is_whole else CONV if "ConvNext" in name else VIT
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**shape, **options))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return model.eval(), files


@pytest.mark.parametrize(
    ("name", "options", "prefix", "has_cls", "has_final"),
    [
        ("Dinov2Model", {}, 1, True, True),
        ("Dinov2WithRegistersModel", {"num_register_tokens": 3}, 4, True, True),
        ("DINOv3ViTModel", {"num_register_tokens": 4}, 5, True, True),
        ("DeiTModel", {}, 2, True, True),
        ("IJepaModel", {}, 0, False, True),
        ("SiglipVisionModel", {}, 0, False, True),
        ("Data2VecVisionModel", {"use_relative_position_bias": True}, 1, True, False),
        ("BeitModel", {"use_mean_pooling": False}, 1, True, True),
        ("CLIPVisionModel", {}, 1, True, True),
        ("MetaClip2VisionModel", {}, 1, True, True),
        ("MLCDVisionModel", {}, 1, True, True),
        ("ViTMSNModel", {}, 1, True, True),
        ("Aimv2VisionModel", {}, 0, False, True),
        ("Aimv2VisionModel", {"is_native": True}, 0, False, True),
        ("RadioModel", {"max_img_size": 112, "num_cls_tokens": 2, "num_registers": 3}, 5, True, False),
        ("Tipsv2VisionModel", {}, 2, True, True),
        ("PixioModel", {"n_cls_tokens": 3}, 3, True, True),
    ],
)
def test_transformers(
    name: str,
    options: dict[str, object],
    prefix: int,
    has_cls: bool,
    has_final: bool,
    tmp_path: Path,
    loader: Loader,
) -> None:
    model = save(tmp_path, name, **options)
    spec = infer(str(tmp_path), None, None)
    assert spec.stages == (Stage(2, 32, 14),)
    assert (spec.prefix_tokens, spec.has_cls, spec.has_final) == (prefix, has_cls, has_final)
    side = 224 if options.get("is_native") else 56  # positions of any size tell none
    assert (spec.heads, spec.input_size, spec.name) == (4, side, str(tmp_path))
    images = pixels(2, 56, 56)
    backbone = loader(spec)
    layers = {layer: grid.flatten(1, 2) for layer, grid in grids_of(backbone, images).items()}
    with torch.no_grad():
        out = model(normalised(spec, images), output_hidden_states=True)
    for index in range(3):
        torch.testing.assert_close(
            layers[str(index)], out.hidden_states[index][:, prefix:], rtol=1e-4, atol=1e-4
        )
    if has_final and name not in ("CLIPVisionModel", "MetaClip2VisionModel", "MLCDVisionModel"):
        torch.testing.assert_close(layers["final"], out.last_hidden_state[:, prefix:], rtol=1e-4, atol=1e-4)
    backbone.visit(pixels(1, 3 * 14, 5 * 14), lambda _: None)


@pytest.mark.parametrize("name", ["ConvNextModel", "ConvNextV2Model"])
def test_convolutional(name: str, tmp_path: Path, loader: Loader) -> None:
    save(tmp_path, name)
    spec = infer(str(tmp_path), None, None)
    assert spec.stages == (Stage(1, 16, 4), Stage(2, 32, 8))
    assert (spec.heads, spec.has_cls, spec.prefix_tokens, spec.input_size) == (None, False, 0, 224)
    loader(spec).visit(pixels(1, 24, 40), lambda _: None)


OFFICIAL = {"dino-s16": "ViTModel", "clip-b16": "CLIPVisionModel", "mae-b16": "ViTModel"}
OFFICIAL |= {"beit-b16": "BeitForMaskedImageModeling", "resnet50": "ResNetModel"}


@pytest.mark.parametrize("name", OFFICIAL)
def test_known_families_give_the_entry_and_the_layers_of_transformers(
    name: str, small: Small, loader: Loader
) -> None:
    """From repositories under the names of transformers 4; of a ResNet, the ends of stages."""
    entry = small(name).spec
    (spec,) = find([entry.repository])
    facts = ("stages", "heads", "prefix_tokens", "has_cls", "has_final", "stem_width")
    assert [getattr(spec, fact) for fact in facts] == [getattr(entry, fact) for fact in facts]
    assert spec.family == ("other" if name == "dino-s16" else entry.family)
    images = pixels(2, spec.input_size, spec.input_size)
    with quiet():
        model = getattr(transformers, OFFICIAL[name]).from_pretrained(entry.repository).eval()
    with torch.no_grad():
        hidden = model(normalised(spec, images), output_hidden_states=True).hidden_states
    ends = [0, *(index + 1 for index in range(spec.depth) if index + 1 == spec.depth or spec.heads)]
    found = grids_of(loader(spec), images)
    for index, expected in zip(ends, hidden if spec.heads else (hidden[0], hidden[-1]), strict=True):
        tokens = expected if expected.ndim == 3 else expected.flatten(2).mT
        grid = tokens[:, spec.prefix_tokens :]
        torch.testing.assert_close(found[str(index)].flatten(1, 2), grid, rtol=1e-4, atol=1e-4)


def test_large_native_sizes_are_evaluated_at_224(tmp_path: Path) -> None:
    save(tmp_path, "Dinov2Model")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"image_size": 518}))
    assert infer(str(tmp_path), None, None).input_size == 224


def test_unknown_model_type_lists_the_supported_ones(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "pvt"}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="'pvt', which is not supported; supported are aimv2, ") as caught:
        find([str(tmp_path)])
    there = str(caught.value).rstrip(".").split(", ")
    assert {"vit", "deit", "vit_mae", "dinov2", "resnet", "siglip", "data2vec-vision"} <= {*there}


@pytest.mark.parametrize("nested", [True, False])
def test_a_tower_inside_a_whole_model(nested: bool, tmp_path: Path, loader: Loader) -> None:
    """Its configuration is a part of the whole's, or, of AIMv2's vision repositories, all there is."""
    save(tmp_path, "Aimv2VisionModel", use_head=True)
    values = json.loads((tmp_path / "config.json").read_text())
    whole = {"model_type": "aimv2", "vision_config": values} if nested else values | {"model_type": "aimv2"}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    spec = infer(str(tmp_path), None, None)
    assert (spec.stages, spec.heads, spec.prefix_tokens) == ((Stage(2, 32, 14),), 4, 0)
    loader(spec).visit(pixels(1, 56, 56), lambda _: None)


def test_timm_directories_need_an_entry(small: Small) -> None:
    with pytest.raises(InputError, match=r"has no config.json|describes model type 'none'"):
        infer(str(small("moco-b16").folder), None, None)


def test_a_repository_in_the_cache_of_the_hub(small: Small, tmp_path: Path) -> None:
    """Offline, from a cache laid out as huggingface_hub does, at the commit that its main branch names."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    store = tmp_path / "cache" / "hub" / "models--somebody--vit"
    (store / "refs").mkdir(parents=True)
    (store / "refs" / "main").write_text(commit)
    (store / "snapshots").mkdir()
    small("dino-s16").folder.rename(store / "snapshots" / commit)
    (spec,) = find(["somebody/vit"], tmp_path / "cache")
    assert spec.name == "somebody/vit"
    backbone = load_backbone(spec, device=CPU, cache_dir=tmp_path / "cache")
    assert backbone.revision == commit
    (pinned,) = find([f"somebody/vit@{commit}"], tmp_path / "cache")
    assert (pinned.name, pinned.revision) == (f"somebody/vit@{commit}", commit)
    with pytest.raises(InputError, match="nor in the cache"):
        find(["somebody/vit@fedcba"], tmp_path / "cache")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.GatedRepoError, "somebody/vit is gated: accept its terms"),
        (errors.RepositoryNotFoundError, "The Hub has no public repository somebody/vit"),
        (errors.RevisionNotFoundError, "The Hub has somebody/vit, but not its revision v2"),
        (errors.EntryNotFoundError, "revision v2 of somebody/vit has no weights called"),
        (errors.LocalEntryNotFoundError, "vit is neither a directory nor in the cache .*; connect once, or"),
        (errors.HTTPError, "somebody/vit could not be downloaded: a proxy failed$"),  # type: ignore[attr-defined]
        (OSError, "revision v2 of somebody/vit could not be downloaded: a proxy failed$"),
        (RuntimeError, "somebody/vit could not be downloaded: a proxy failed$"),
    ],
)
def test_what_the_hub_answers(
    error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object, local_files_only: bool, **__: object) -> str:
        if local_files_only:
            raise errors.LocalEntryNotFoundError("not here")
        failure = error.__new__(error)
        failure.args = ("a proxy failed\nand much more",)
        raise failure

    monkeypatch.setattr("layerboard.zoo.load.hub.hf_hub_download", answer)
    monkeypatch.setattr("layerboard.zoo.online.hub_answers", lambda: True)
    with pytest.raises(InputError, match=message):
        find(["somebody/vit@v2"], tmp_path)
    (entry,) = find(["dino-s16"])
    with pytest.raises(InputError, match="facebook/dino-vits16") as told:
        load_backbone(replace(entry, revision=None), device=CPU, cache_dir=tmp_path)
    assert "\n" not in str(told.value)
