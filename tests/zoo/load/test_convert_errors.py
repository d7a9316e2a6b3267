"""The sentence for every original checkpoint that does not fit, and for files that cannot be had or read."""

import json
import zipfile
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec
from tests.zoo.conftest import Loader
from tests.zoo.layouts import Tensors, hub_vit
from tests.zoo.published import LAYOUTS, publish
from tests.zoo.reduced import Published


def store(published: Published, content: object) -> BackboneSpec:
    """Replace what the file holds, and give the entry."""
    torch.save(content, published.spec.repository)
    return published.spec


def stage(spec: BackboneSpec, **numbers: int) -> BackboneSpec:
    return replace(spec, stages=(replace(spec.stages[0], **numbers),))


@pytest.mark.parametrize("name", [name for name in LAYOUTS if not name.startswith("resnet")])
def test_wrong_depth_width_and_patch(name: str, tmp_path: Path, loader: Loader) -> None:
    spec = publish(name, tmp_path).spec
    width, patch = spec.width, spec.patch_size
    for wrong, words in (
        (stage(spec, blocks=4), "differs from the entry: blocks: 3, not 4."),
        (stage(spec, width=2 * width), f"differs from the entry: width: {width}, not {2 * width}; channels"),
        (stage(spec, stride=2 * patch), f"differs from the entry: patch size: {patch}, not {2 * patch}."),
    ):
        with pytest.raises(InputError, match=words):
            loader(wrong)


@pytest.mark.parametrize("name", ["timm", "moco", "beit", "clip"])
def test_positions_of_another_size(name: str, tmp_path: Path, loader: Loader) -> None:
    spec = publish(name, tmp_path).spec
    with pytest.raises(InputError, match=r"pixels a side of its training images: 64, not 384"):
        loader(replace(spec, trained_size=384))
    loader(replace(spec, input_size=384))  # Where it is evaluated is another matter.


def test_heads(tmp_path: Path, loader: Loader) -> None:
    spec = publish("beit", tmp_path).spec
    with pytest.raises(InputError, match="attention heads: 12, not 6"):
        loader(replace(spec, heads=6))
    with pytest.raises(
        InputError, match="width of 48 cannot be split into the 7 heads of the entry, whose width is 48"
    ):
        loader(replace(publish("moco", tmp_path).spec, heads=7))


@pytest.mark.parametrize(
    "config",
    [{"model_args": {"num_heads": 6}}, {"num_heads": 6}, {"architecture": "vit_small_patch16_224.moco"}],
)
def test_six_heads_of_moco_in_the_configuration_of_timm(
    config: dict[str, object], tmp_path: Path, loader: Loader
) -> None:
    published = publish("moco", tmp_path)
    save_file(published.tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="attention heads: 6, not 12"):
        loader(replace(published.spec, repository=str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "key", "layout"),
    [
        ("dino", "blocks.1.attn.qkv.bias", "a Vision Transformer with timm's names"),
        ("moco", "norm.weight", "a Vision Transformer with timm's names"),
        ("deit-distilled", "pos_embed", "a Vision Transformer with timm's names"),
        ("beit", "blocks.2.gamma_1", "BEiT"),
        ("beit", "rel_pos_bias.relative_position_bias_table", "BEiT"),
        ("dinov2", "blocks.0.ls2.gamma", "DINOv2"),
        ("clip", "ln_pre.bias", "OpenAI's CLIP"),
        ("resnet", "layer2.0.bn2.running_var", "torchvision's ResNet"),
        ("franca", "blocks.1.mlp.w3.bias", "DINOv2"),
        ("capi", "encoder.blocks.1.residual1.fn.rope.freqs", "CAPI"),
        ("capi", "registers", "CAPI"),
        ("pe-core", "positional_embedding", "the Perception Encoder"),
        ("pe-scaled", "transformer.resblocks.2.ls_2.gamma", "the Perception Encoder"),
    ],
)
def test_missing_and_unknown_tensors(
    name: str, key: str, layout: str, tmp_path: Path, loader: Loader
) -> None:
    published = publish(name, tmp_path)
    kept = dict(published.tensors)
    tensor = kept.pop(key)
    content = LAYOUTS[name].content
    with pytest.raises(InputError, match=f"does not fit: it lacks tensors of {layout}: {key}."):
        loader(store(published, content(kept)))
    with pytest.raises(InputError, match=f"does not fit: it has unknown tensors of {layout}: surprise."):
        loader(store(published, content({**kept, key: tensor, "surprise": tensor.clone()})))


def test_a_missing_block(tmp_path: Path, loader: Loader) -> None:
    published = publish("dino", tmp_path)
    moved = {name.replace("blocks.1.", "blocks.987654321."): t for name, t in published.tensors.items()}
    with pytest.raises(InputError, match=r"lacks tensors of .*: blocks.1.attn.proj.bias, .* and 9 more"):
        loader(store(published, moved))


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("dino", "blocks.1.attn.qkv.bias", "blocks.1.attn.qkv.bias .* cannot be split into 3 equal parts"),
        (
            "dino",
            "blocks.1.norm1.weight",
            r"have misshapen tensors of a vit network: layers.1.layernorm_before",
        ),
        ("dino", "pos_embed", "positions of a square grid are expected, and pos_embed has 15 beside"),
        ("beit", "rel_pos_bias.relative_position_bias_table", "positions of a square grid are expected"),
        ("resnet", "layer1.1.conv2.weight", "have misshapen tensors of a resnet network"),
    ],
)
def test_misshapen_tensors(name: str, key: str, words: str, tmp_path: Path, loader: Loader) -> None:
    published = publish(name, tmp_path)
    tensor = published.tensors[key]
    wrong = tensor[:, :-1] if key == "pos_embed" else tensor[:-1]
    with pytest.raises(InputError, match=words):
        loader(store(published, {**published.tensors, key: wrong.clone()}))


def test_patches_and_dimensions(tmp_path: Path, loader: Loader) -> None:
    published = publish("dino", tmp_path)
    patches = published.tensors["patch_embed.proj.weight"]
    wrong = {"patch_embed.proj.weight": patches[..., :-1].clone()}
    with pytest.raises(InputError, match=r"square patches are expected, and .* has 16 x 15 px"):
        loader(store(published, published.tensors | wrong))
    wrong = {"pos_embed": published.tensors["pos_embed"][0]}
    with pytest.raises(InputError, match=r"pos_embed has the shape \[17, 48\], not one of 3 dimensions"):
        loader(store(published, published.tensors | wrong))


def _only(*prefixes: str) -> Callable[[Tensors], object]:
    return lambda tensors: {name: t for name, t in tensors.items() if name.startswith(prefixes)}


def _momentum(tensors: Tensors) -> object:
    return {"state_dict": {f"module.momentum_encoder.{name}": tensor for name, tensor in tensors.items()}}


def _student(tensors: Tensors) -> object:
    return {"student": {f"module.backbone.{name}": tensor for name, tensor in tensors.items()}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda tensors: {"head.weight": tensors["norm.weight"]}, r"holds only a head \(head.weight\)"),
        (_momentum, "holds the momentum encoder only; the features meant are those of the query encoder"),
        (_student, "holds a student without its teacher"),
        (lambda tensors: {}, "have names of no known layout: none; known are those of timm's"),
        (lambda tensors: {"a.b": tensors["norm.weight"]}, "have names of no known layout: a.b; known are"),
        (_only("patch_embed", "cls_token", "pos_embed", "norm"), "it has no blocks of a Vision Transformer"),
        (lambda tensors: list(tensors.values()), "should hold a dictionary of tensors, not a list"),
        (
            lambda tensors: hub_vit(tensors),
            "no config.json beside .*, whose tensors have names of transformers",
        ),
    ],
)
def test_files_without_the_backbone(
    content: Callable[[Tensors], object], words: str, tmp_path: Path, loader: Loader
) -> None:
    published = publish("moco", tmp_path)
    with pytest.raises(InputError, match=words):
        loader(store(published, content(published.tensors)))


def test_another_kind_of_network(tmp_path: Path, loader: Loader) -> None:
    vit, resnet = publish("dino", tmp_path).spec, publish("resnet", tmp_path).spec
    with pytest.raises(InputError, match="it is a Vision Transformer, and the entry is a ConvNet"):
        loader(replace(resnet, repository=vit.repository))
    with pytest.raises(InputError, match="it is a ResNet, and the entry is a transformer"):
        loader(replace(vit, repository=resnet.repository))
    tuned = publish("beit-tuned", tmp_path).spec
    with pytest.raises(InputError, match="a final norm: False, not True"):
        loader(replace(tuned, has_final=True))
    with pytest.raises(InputError, match="prefix tokens: 5, not 1"):
        loader(replace(publish("dinov2-registers", tmp_path).spec, prefix_tokens=1))


def test_the_activation_of_a_clip_is_said_and_never_guessed(tmp_path: Path, loader: Loader) -> None:
    """Trainings of open_clip have OpenAI's names, and GELU or QuickGELU."""
    published = publish("clip", tmp_path)
    plain = {f"module.visual.{name}": tensor for name, tensor in published.tensors.items()}
    training = {"epoch": 3, "name": "2026-model_ViT-B-16-lr_1", "state_dict": plain}
    for content in (training, plain):
        spec = store(published, content)
        with pytest.raises(InputError, match=r"no tensor tells whether .* is QuickGELU, .* or GELU"):
            loader(spec)
    quick = {"name": "2026-model_ViT-B-16-quickgelu-lr_1"}
    assert _activation(loader(store(published, training | quick))) == "quick_gelu"
    for stated, name in ((True, "quick_gelu"), (False, "gelu"), (None, "gelu")):
        described = {"model_cfg": {"quick_gelu": stated}}
        (tmp_path / "open_clip_config.json").write_text(json.dumps(described))
        assert _activation(loader(store(published, training))) == name


def _activation(backbone: object) -> str:
    return str(backbone._network.body.config.hidden_act)  # type: ignore[attr-defined]  # of a loaded backbone


def test_two_final_norms(tmp_path: Path, loader: Loader) -> None:
    tuned = publish("beit-tuned", tmp_path)
    norm = {f"norm.{part}": tuned.tensors[f"fc_norm.{part}"] for part in ("weight", "bias")}
    with pytest.raises(InputError, match="it has two final norms: norm and fc_norm"):
        loader(store(tuned, {"model": dict(tuned.tensors) | norm}))


@pytest.mark.parametrize(
    ("name", "file"),
    [("sam-b16", "a.pth"), ("tipsv2-b14", "a.npz"), ("ijepa-h14", "a.tar"), ("dinov3-b16", "a.pth")],
)
def test_an_entry_of_which_the_authors_files_are_not_read(
    name: str, file: str, tmp_path: Path, loader: Loader
) -> None:
    """Whatever is in the file; a directory with timm's configuration is no other."""
    published = publish("dinov2", tmp_path)
    torch.save({"model": published.tensors}, tmp_path / file)
    words = rf"^{name}: this entry is read from a directory in Hugging Face format, .*{file} is in another"
    with pytest.raises(InputError, match=words):
        loader(replace(find([name])[0], repository=str(tmp_path / file)))
    save_file(published.tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_base_patch16_224"}))
    with pytest.raises(InputError, match=words.replace(file, "model.safetensors")):
        loader(replace(find([name])[0], repository=str(tmp_path)))


def test_a_program_of_torchscript_is_refused_and_says_how_to_export(tmp_path: Path, loader: Loader) -> None:
    published = publish("clip", tmp_path)
    path = tmp_path / "ViT-B-16.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "code/__torch__.py", "constants.pkl"):
            archive.writestr(f"ViT-B-16/{name}", b"")
    words = (
        r"^\S+ is a TorchScript program, which is not run; .* torch.save\(torch.jit.load\('ViT-B-16.pt', .*\)"
    )
    with pytest.raises(InputError, match=words):
        loader(replace(published.spec, repository=str(path)))


def test_options_of_a_training_are_data_and_code_in_them_is_not(tmp_path: Path, loader: Loader) -> None:
    published = publish("dino-training", tmp_path)
    content = {"teacher": published.tensors, "args": Namespace(callback=print)}
    with pytest.raises(InputError, match="is refused: it is damaged, or holds more than tensors"):
        loader(store(published, content))


def test_a_file_that_is_not_there_is_never_replaced(tmp_path: Path, loader: Loader) -> None:
    spec = publish("moco", tmp_path).spec
    Path(spec.repository).unlink()
    with pytest.raises(
        InputError, match=r"is neither a directory nor in the cache|is no Hub id .* and no directory"
    ):
        loader(spec)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=f"{empty} has no weights; expected model.safetensors"):
        loader(replace(spec, repository=str(empty)))
