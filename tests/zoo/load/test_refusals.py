"""What is refused, and by which sentence: checkpoints that do not fit their entry, and files without one."""

import json
import zipfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.config import check_facts, read_network
from layerboard.zoo.load.network import check_count
from layerboard.zoo.registry.find import all_specs, find
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import ORIGINAL, TRANSFORMERS
from tests.zoo.conftest import Loader, Small
from tests.zoo.hub_models import MINIMAL_WIDTH, of
from tests.zoo.layouts import Tensors
from tests.zoo.published import LAYOUTS, Published, publish
from tests.zoo.reduced import reduce
from tests.zoo.today import pe_content

Change = Callable[[Published], BackboneSpec]
"""Changes a file, or what is asked of it; gives the entry that is asked for."""


def entry(**facts: object) -> Change:
    """The file, asked for by an entry with other facts."""
    return lambda given: replace(given.spec, **facts)  # type: ignore[arg-type]


def stage(**numbers: int) -> Change:
    return lambda given: replace(given.spec, stages=(replace(given.spec.stages[0], **numbers),))


def asked(name: str) -> Change:
    """The file, asked for as another entry of the registry."""
    return lambda given: replace(find([name])[0], repository=given.spec.repository)


def of_its_size(name: str) -> Change:
    """The same, of an entry that has the sizes of the file."""

    def change(given: Published) -> BackboneSpec:
        spec, own = asked(name)(given), given.spec
        return replace(spec, stages=own.stages, heads=own.heads, input_size=own.input_size)

    return change


def typed(name: str) -> Change:
    """The same sizes, asked for by an entry of the type of another."""
    return lambda given: replace(given.spec, name=name, model_types=find([name])[0].model_types)


def content(new: Callable[[Tensors], object]) -> Change:
    """A file that holds something else, made of the tensors."""

    def change(given: Published) -> BackboneSpec:
        torch.save(new(dict(given.tensors)), given.spec.repository)
        return given.spec

    return change


def edited(edit: Callable[[Tensors], Tensors]) -> Change:
    """A directory in Hugging Face format with other tensors."""

    def change(given: Published) -> BackboneSpec:
        folder = Path(given.spec.repository)
        path, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
        tensors = edit(torch.load(pickled, weights_only=True) if pickled.exists() else load_file(path))
        torch.save(tensors, pickled) if pickled.exists() else save_file(tensors, path)
        return given.spec

    return change


def described(values: str | dict[str, object], then: Change = lambda given: given.spec) -> Change:
    """A directory with another ``config.json``, or with other values in it."""

    def change(given: Published) -> BackboneSpec:
        path = Path(given.spec.repository) / "config.json"
        new = values if isinstance(values, str) else json.dumps(json.loads(path.read_text()) | values)
        path.write_text(new)
        return then(given)

    return change


def alone(given: Published) -> BackboneSpec:
    """The file of a directory in Hugging Face format, without its configuration."""
    folder = Path(given.spec.repository)
    (folder / "config.json").unlink()
    return replace(given.spec, repository=str(folder / "model.safetensors"))


def by_timm(config: dict[str, object]) -> Change:
    """The tensors in a directory with a configuration of timm."""

    def change(given: Published) -> BackboneSpec:
        folder = Path(given.spec.repository).parent
        save_file(given.tensors, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config))
        return replace(given.spec, repository=str(folder))

    return change


def other(key: str, new: Callable[[Tensor], Tensor], tensors: Tensors) -> Tensors:
    """Tensors of which one is replaced."""
    return tensors | {key: new(tensors[key]).clone()}


def without(key: str, tensors: Tensors) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if name != key}


def surprised(tensors: Tensors) -> Tensors:
    return tensors | {"surprise": torch.ones(3)}


def shorter(tensor: Tensor) -> Tensor:
    return tensor[:-1]


def filled(value: float, tensor: Tensor) -> Tensor:
    """The same with a number somewhere inside."""
    tensor = tensor.clone()
    tensor.view(-1)[1] = value
    return tensor


def narrow(tensors: Tensors) -> Tensors:
    """100 channels inside each MLP."""
    sides = {"fc1.weight": 0, "fc1.bias": 0, "fc2.weight": 1}
    places = {name: sides.get(name.partition(".mlp.")[2]) for name in tensors}
    return {
        name: tensor if places[name] is None else tensor.narrow(places[name], 0, 100).clone()
        for name, tensor in tensors.items()
    }


def two_norms(tensors: Tensors) -> object:
    """The norm behind the pooling, and the same before it."""
    return {"model": tensors | {f"norm.{kind}": tensors[f"fc_norm.{kind}"] for kind in ("weight", "bias")}}


def only(*prefixes: str) -> Callable[[Tensors], object]:
    return lambda tensors: {name: t for name, t in tensors.items() if name.startswith(prefixes)}


def under(prefix: str, tensors: Tensors) -> Tensors:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def endless(tensors: Tensors) -> object:
    found: dict[str, object] = {}
    found["model"] = found
    return found


Row = tuple[str, Change, str]
FUSED, TABLE = "blocks.1.attn.qkv.bias", "rel_pos_bias.relative_position_bias_table"
VARIANCE, PATCHES = "layer2.0.bn2.running_var", "patch_embed.proj.weight"
REAL = "should be floating-point numbers; layers.1.mlp"
TOKEN, FINITE = "embeddings.cls_token", "should be finite; "
MLP, PROJECTION = "blocks.1.mlp.fc1.weight", "transformer.resblocks.1.attn.in_proj_bias"
OF_VIT, OF_DINOV2, OF_PE = "a Vision Transformer with timm's names", "DINOv2", "the Perception Encoder"
FOREIGN = {"model.layers.0.mlp.up_proj.weight": torch.ones(3, 2), "rows": torch.arange(4)}
SIZES: tuple[Row, ...] = (
    *((name, entry(trained_size=384), "images: 64, not 384") for name in ("timm", "moco", "beit", "clip")),
    ("beit", entry(heads=6), "attention heads: 12, not 6"),
    ("moco", entry(heads=7), "width of 48 cannot be split into the 7 heads of the entry, whose width is 48"),
    ("moco", by_timm({"model_args": {"num_heads": 6}}), "attention heads: 6, not 12"),
    ("moco", by_timm({"num_heads": 6}), "attention heads: 6, not 12"),
    ("moco", by_timm({"architecture": "vit_small_patch16_224.moco"}), "attention heads: 6, not 12"),
    ("beit-tuned", entry(has_final=True), "a final norm: False, not True"),
    ("dinov2-registers", entry(prefix_tokens=1), "prefix tokens: 5, not 1"),
    ("resnet50", entry(stem_width=16), "channels of the stem: 8, not 16"),
    ("dino", content(narrow), "differs from the entry: width inside the MLP: 100, not 192"),
    ("clip-b16", entry(mlp_width=100), "width inside the MLP: 192, not 100"),
    ("dino-s16", described({"num_hidden_layers": 2}, stage(blocks=2)), "unknown tensors .*: layers.2"),
)
KINDS: tuple[Row, ...] = (
    *(
        (name, of_its_size(entry), f"^{entry}: .* of another architecture .*: its type is {found}; ")
        for name, entry, found in (
            ("beit", "dino-b16", "beit, not vit"),
            ("beit", "mae-b16", "beit, not vit_mae or vit"),
            ("beit", "clip-b16", "beit, not clip_vision_model"),
            ("dino", "beit-b16", "vit, not beit"),
            ("dino", "clip-b16", "vit, not clip_vision_model"),
            ("mae", "dino-b16", "vit_mae, not vit"),
            ("clip", "dino-b16", "clip_vision_model, not vit"),
            ("dinov2", "dino-b16", "dinov2, not vit"),
        )
    ),
    *(
        (name, typed(entry), "is of another architecture than the entry")
        for name, entry in (("beit-b16", "mae-b16"), ("dino-b16", "beit-b16"), ("mae-b16", "dino-b16"))
    ),
    ("dino", asked("resnet50"), "it is a Vision Transformer, and the entry is a ConvNet"),
    ("resnet", asked("dino-b16"), "it is a ResNet, and the entry is a transformer"),
    ("pe-spatial", asked("pe-core-s16"), "a final norm: False, not True"),
    ("pe-core", asked("pe-spatial-s16"), "cannot be split into|a final norm: True, not False"),
    ("pe-scaled", asked("pe-spatial-l14"), "prefix tokens: 0, not 1; a class token: False, not True"),
    ("capi", asked("pe-core-l14"), "its type is capi, not perception_encoder"),
    ("pe-scaled", asked("capi-l14-in1k"), "its type is perception_encoder, not capi"),
)
TENSORS: tuple[Row, ...] = (
    ("dino-s16", edited(partial(without, "layernorm.bias")), "lack tensors of a vit network: layernorm.bias"),
    ("dino-s16", edited(surprised), "have unknown tensors of a vit network: surprise"),
    ("dino-s16", edited(partial(other, "layernorm.bias", shorter)), r"misshapen .*: layernorm.bias \["),
    ("beit-b16", edited(partial(without, "layernorm.weight")), "lack .* a beit network: layernorm.weight"),
    ("dino", content(only(*"cnhp", "blocks.0", "blocks.2")), "lacks .*: blocks.1.attn.proj.bias,.* and 9"),
    ("dino", content(partial(other, FUSED, shorter)), f"{FUSED} .* cannot be split into 3 equal parts"),
    ("dino", content(partial(other, "blocks.1.norm1.weight", shorter)), "vit .*: layers.1.layernorm_before"),
    ("dino", content(partial(other, "pos_embed", lambda table: table[:, :-1])), "pos_embed has 15 beside"),
    ("dino", content(partial(other, "pos_embed", lambda table: table[0])), r"\[17, 48\], not one of 3 dim"),
    ("dino", content(partial(other, PATCHES, lambda each: each[..., :-1])), ".* has 16 x 15 px"),
    ("beit", content(partial(other, TABLE, shorter)), "positions of a square grid are expected"),
    ("resnet", content(partial(other, "layer1.1.conv2.weight", shorter)), "misshapen tensors of a resnet"),
    (
        "pe-core",
        content(lambda tensors: pe_content(other(PROJECTION, lambda bias: bias[:-3], tensors))),
        "have misshapen tensors of a perception_encoder network",
    ),
    *(
        ("dino", content(partial(other, MLP, partial(Tensor.to, dtype=dtype))), f"{REAL}.*{kind}")
        for dtype, kind in ((torch.int8, "int8"), (torch.int64, "int64"), (torch.complex64, "complex64"))
    ),
    *(
        row
        for value in (float("nan"), float("inf"))
        for row in (
            ("resnet", content(partial(other, VARIANCE, partial(filled, value))), f"{FINITE}.*running_var"),
            ("dino-s16", edited(partial(other, TOKEN, partial(filled, value))), f"{FINITE}{TOKEN}"),
        )
    ),
    ("beit-tuned", content(two_norms), "it has two final norms: norm and fc_norm"),
)
CONTENTS: tuple[Row, ...] = (
    *(
        ("moco", content(new), words)
        for new, words in (
            (lambda tensors: {"head.weight": tensors["norm.weight"]}, r"holds only a head \(head.weight\)"),
            (
                lambda tensors: {"state_dict": under("module.momentum_encoder.", tensors)},
                "holds the momentum encoder only; the features meant are those of the query encoder",
            ),
            (
                lambda tensors: {"student": under("module.backbone.", tensors)},
                "holds a student without its teacher",
            ),
            (lambda tensors: {}, "have names of no known layout: none; known are those of timm's"),
            (endless, "have names of no known layout: none"),
            (lambda tensors: {"a.b": torch.ones(3)}, "have names of no known layout: a.b; known are"),
            (only("patch_embed", "cls_token", "pos_embed", "norm"), "no blocks of a Vision Transformer"),
            (lambda tensors: [*tensors.values()], "should hold a dictionary of tensors, not a list"),
            (
                lambda tensors: {"teacher": tensors, "args": Namespace(callback=print)},
                "is refused: it is damaged, or holds more than tensors",
            ),
            (lambda tensors: FOREIGN, "^moco-s16: .*names of no known layout"),
        )
    ),
    ("dino-s16", alone, "there is no config.json beside .*, whose tensors have names of transformers"),
    ("dino-s16", edited(lambda tensors: FOREIGN), "^dino-s16: .*floating-point"),
    *(
        ("dino-s16", described(config), words)
        for config, words in (
            ("{", "config.json, which is malformed"),
            ("{}", "config.json describes model type 'none'"),
            ('{"model_type": "bert"}', "config.json describes model type 'bert'"),
            (
                '{"model_type": "beit", "architectures": 5}',
                "describes no network that transformers can build",
            ),
            ('{"model_type": "clip", "vision_config": [1]}', "describes no network that transformers can"),
            ('{"model_type": "vit", "hidden_size": "wide"}', "describes no network that transformers can"),
        )
    ),
)


@pytest.mark.parametrize(("name", "change", "words"), [*SIZES, *KINDS, *TENSORS, *CONTENTS])
def test_what_does_not_fit_is_one_sentence(
    name: str, change: Change, words: str, tmp_path: Path, small: Small, loader: Loader
) -> None:
    """Of files of a layout, and of directories of an entry."""
    given = publish(name, tmp_path) if name in LAYOUTS else small(name)
    spec = change(given)
    with pytest.raises(InputError, match=words) as raised:
        loader(spec)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if not name.startswith("resnet")])
def test_wrong_depth_width_and_patch(name: str, tmp_path: Path, loader: Loader) -> None:
    given = publish(name, tmp_path)
    width, patch = given.spec.width, given.spec.patch_size
    for wrong, words in (
        (stage(blocks=4), "differs from the entry: blocks: 3, not 4."),
        (stage(width=2 * width), f"differs from the entry: width: {width}, not {2 * width}; channels"),
        (stage(stride=2 * patch), f"differs from the entry: patch size: {patch}, not {2 * patch}."),
    ):
        with pytest.raises(InputError, match=words):
            loader(wrong(given))


@pytest.mark.parametrize(
    ("name", "key", "layout"),
    [
        ("dino", "blocks.1.attn.qkv.bias", OF_VIT),
        ("moco", "norm.weight", OF_VIT),
        ("deit-distilled", "pos_embed", OF_VIT),
        ("beit", "blocks.2.gamma_1", "BEiT"),
        ("beit", TABLE, "BEiT"),
        ("dinov2", "blocks.0.ls2.gamma", OF_DINOV2),
        ("clip", "ln_pre.bias", "OpenAI's CLIP"),
        ("resnet", VARIANCE, "torchvision's ResNet"),
        ("franca", "blocks.1.mlp.w3.bias", OF_DINOV2),
        ("capi", "encoder.blocks.1.residual1.fn.rope.freqs", "CAPI"),
        ("capi", "registers", "CAPI"),
        ("pe-core", "positional_embedding", OF_PE),
        ("pe-scaled", "transformer.resblocks.2.ls_2.gamma", OF_PE),
    ],
)
def test_missing_and_unknown_tensors(
    name: str, key: str, layout: str, tmp_path: Path, loader: Loader
) -> None:
    given, around = publish(name, tmp_path), LAYOUTS[name].content
    for edit, words in (
        (partial(without, key), f"does not fit: it lacks tensors of {layout}: {key}."),
        (surprised, f"does not fit: it has unknown tensors of {layout}: surprise."),
    ):
        with pytest.raises(InputError, match=words):
            loader(content(lambda tensors, edit=edit: around(edit(tensors)))(given))  # type: ignore[misc]


def test_the_encoder_of_an_mae_alone_is_taken(tmp_path: Path, loader: Loader) -> None:
    loader(content(dict)(publish("mae", tmp_path)))


def test_entries_say_the_type_and_the_mlp_of_their_network() -> None:
    """Against the classes of transformers that hold them at full size."""
    for spec in (spec for spec in all_specs() if not spec.origin.supply):
        values = json.loads(of(spec)[1].to_json_string(use_diff=False))
        architecture, _, facts = read_network(values, Path("config.json"))
        assert architecture.model_type in spec.model_types, spec.name
        if facts.mlp_width is not None and spec.width >= MINIMAL_WIDTH:
            assert facts.mlp_width == (spec.mlp_width or 4 * spec.width), spec.name


def test_the_activation_of_a_clip_is_said_and_never_guessed(tmp_path: Path, loader: Loader) -> None:
    """Trainings of open_clip have OpenAI's names, and GELU or QuickGELU."""
    given = publish("clip", tmp_path)
    plain = under("module.visual.", given.tensors)
    training = {"epoch": 3, "name": "2026-model_ViT-B-16-lr_1", "state_dict": plain}

    def activation(holds: object) -> str:
        backbone = loader(content(lambda _: holds)(given))
        return str(backbone._network.body.config.hidden_act)  # type: ignore[attr-defined]

    for holds in (training, plain):
        with pytest.raises(InputError, match=r"no tensor tells whether .* is QuickGELU, .* or GELU"):
            activation(holds)
    assert activation(training | {"name": "2026-model_ViT-B-16-quickgelu-lr_1"}) == "quick_gelu"
    for stated, name in ((True, "quick_gelu"), (False, "gelu"), (None, "gelu")):
        (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": {"quick_gelu": stated}}))
        assert activation(training) == name


@pytest.mark.parametrize(
    ("name", "file"),
    [("sam-b16", "a.pth"), ("tipsv2-b14", "a.npz"), ("ijepa-h14", "a.tar"), ("dinov3-b16", "a.pth")],
)
def test_an_entry_of_which_the_authors_files_are_not_read(
    name: str, file: str, tmp_path: Path, loader: Loader
) -> None:
    """Whatever is in the file; a directory with timm's configuration is no other."""
    given = publish("dinov2", tmp_path)
    torch.save({"model": given.tensors}, tmp_path / file)
    words = rf"^{name}: this entry is read from a directory in Hugging Face format, .*{file} is in another"
    with pytest.raises(InputError, match=words):
        loader(replace(find([name])[0], repository=str(tmp_path / file)))
    folder = by_timm({"architecture": "vit_base_patch16_224"})(given).repository
    with pytest.raises(InputError, match=words.replace(file, "model.safetensors")):
        loader(replace(find([name])[0], repository=folder))


def test_a_program_of_torchscript_is_refused_and_says_how_to_export(tmp_path: Path, loader: Loader) -> None:
    spec, path = publish("clip", tmp_path).spec, tmp_path / "ViT-B-16.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "code/__torch__.py", "constants.pkl"):
            archive.writestr(f"ViT-B-16/{name}", b"")
    words = r"^\S+ is a TorchScript program, which is not run; .* torch.save\(torch.jit.load\('ViT-B-16.pt', "
    with pytest.raises(InputError, match=words):
        loader(replace(spec, repository=str(path)))


def test_a_file_that_is_not_there_is_never_replaced(tmp_path: Path, loader: Loader) -> None:
    spec = publish("moco", tmp_path).spec
    Path(spec.repository).unlink()
    with pytest.raises(InputError, match=r"neither a directory nor in the cache|no Hub id .* no directory"):
        loader(spec)
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"{empty} has no weights; expected model.safetensors"):
        loader(replace(spec, repository=str(empty)))


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("code ran",)


@pytest.mark.parametrize("name", ["beit-b16", "moco-b16"])
def test_a_pickle_with_code_is_refused(
    name: str, small: Small, loader: Loader, capsys: pytest.CaptureFixture[str]
) -> None:
    reduced = small(name)
    torch.save({"cls_token": torch.zeros(1), "evil": Evil()}, reduced.folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="is refused: it is damaged, or holds more than tensors"):
        loader(reduced.spec)
    assert "code ran" not in capsys.readouterr().out


def test_an_index_names_the_files(small: Small, loader: Loader) -> None:
    reduced = small("dino-s16")
    (reduced.folder / "model.safetensors").rename(reduced.folder / "part.safetensors")
    index = reduced.folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "part.safetensors", "b": "part.safetensors"}}))
    assert loader(reduced.spec).revision.startswith("sha256:")


def test_nothing_is_written_to_the_terminal(
    small: Small, loader: Loader, capfd: pytest.CaptureFixture[str]
) -> None:
    loader(small("clip-b16").spec)
    assert capfd.readouterr() == ("", "")


def facts_of(spec: BackboneSpec, **options: object) -> BackboneSpec:
    """What the configuration of an entry's repository says, with other options."""
    values = json.loads(of(spec)[1].to_json_string(use_diff=False)) | options
    return read_network(values, Path("config.json"))[2]


def family_of(spec: BackboneSpec) -> tuple[str, str, tuple[str, ...], bool]:
    """What the sizes of a family share: those of one family_of are told apart by their numbers alone."""
    return spec.family, spec.origin.name, spec.model_types, spec.heads is None


def pairs() -> Iterator[tuple[str, str]]:
    """The smallest and the largest network of each family_of."""
    loaded = [spec for spec in all_specs() if spec.origin in (TRANSFORMERS, ORIGINAL)]
    for _, group in groupby(sorted(loaded, key=family_of), key=family_of):
        every = sorted(group, key=lambda spec: (spec.width, spec.depth, spec.parameters or 0))
        if every[0].stages != every[-1].stages:
            yield every[0].name, every[-1].name


@pytest.mark.parametrize(("given", "asked"), [*pairs()])
def test_another_size(given: str, asked: str, tmp_path: Path, loader: Loader) -> None:
    found, (said,) = reduce(find([given])[0], tmp_path).spec, find([asked])
    with pytest.raises(InputError) as caught:
        loader(replace(said, repository=found.repository, revision=None))
    message = str(caught.value)
    assert message.startswith(f"{asked}: the checkpoint {found.repository} d")
    assert message.endswith(".")
    assert "\n" not in message
    if len(said.stages) > 1:
        numbers = [[(s.blocks, s.width, s.stride) for s in one.stages] for one in (found, said)]
        assert f"stages (blocks, width, stride): {numbers[0]}, not {numbers[1]}" in message
    elif "does not fit" in message:  # The width cannot even be split into the heads.
        assert f"a width of {found.width} " in message
        assert f" heads of the entry, whose width is {said.width}" in message
    else:
        assert f"width: {found.width}, not {said.width}" in message


def test_which_families_have_one_size() -> None:
    asked = {find([name])[0].family for pair in pairs() for name in pair}
    loaded = {spec.family for spec in all_specs() if spec.origin in (TRANSFORMERS, ORIGINAL)}
    assert loaded - asked == {"CAPI", "RADIO"}


def test_a_gated_network_of_the_same_numbers(tmp_path: Path, loader: Loader) -> None:
    """DINOv3's S+ has the numbers of S, but for its gates, which make half as many weights again."""
    (plain, gated) = find(["dinov3-s16", "dinov3-s16plus"])
    reduced = reduce(gated, tmp_path).spec
    loader(reduced)
    count = 3 * 24 * 96
    with pytest.raises(InputError, match=rf"differs from the entry: weights: [0-9,]+, not {count:,}\."):
        loader(replace(reduced, parameters=count))
    assert gated.parameters is not None
    with pytest.raises(InputError, match="weights: 28,692,864, not 21,596,544"):
        check_count(plain, gated.parameters)
    assert plain.parameters is not None
    check_count(plain, round(1.09 * plain.parameters))


FULL_SIZE: tuple[tuple[str, str, dict[str, object], str], ...] = (
    ("franca-b14-in21k", "dinov2-b14", {}, "MLP: 2048, not 3072; a gated MLP: True, not False"),
    ("dinov2-b14", "franca-b14-in21k", {}, "MLP: 3072, not 2048; a gated MLP: False, not True"),
    ("dinov3-s16plus", "dinov3-s16", {}, "a gated MLP: True, not False"),
    ("franca-b14-in21k-224", "franca-b14-in21k", {}, r"training images: 224, not 518\."),
    ("franca-l14-laion600m", "franca-l14-laion600m-224", {}, r"training images: 518, not 224\."),
    ("aimv2-l14", "aimv2-l14", {"image_size": 336}, r"training images: 336, not 224\."),
    ("aimv2-l14", "aimv2-l14", {"is_native": True}, r"training images: any, not 224\."),
    ("sam-b16", "sam-b16", {"image_size": 512}, r"training images: 512, not 1024\."),
    ("swin-b", "swin-b", {"image_size": 384}, r"training images: 384, not 224\."),
)
"""What files describe, options of theirs that were changed, and what the entry that is asked for has."""


@pytest.mark.parametrize(("given", "asked", "option", "words"), FULL_SIZE)
def test_what_a_file_describes_is_that_of_its_entry_alone(
    given: str, asked: str, option: dict[str, object], words: str
) -> None:
    (own,), (said,) = find([given]), find([asked])
    check_facts(own, facts_of(own))
    with pytest.raises(InputError, match=f"differs from the entry: .*{words}"):
        check_facts(said, facts_of(own, **option))


@pytest.mark.parametrize(("given", "asked"), [("vjepa2-g16-384", "vjepa2-g16"), ("siglip-l16", "siglip-b16")])
def test_a_network_for_another_size_of_images(given: str, asked: str, tmp_path: Path, loader: Loader) -> None:
    """Told by what it was trained at, whatever ``--input-size`` says."""
    reduced = reduce(find([given])[0], tmp_path).spec
    (said,) = find([asked])
    with pytest.raises(InputError, match=f"images: {reduced.input_size}, not {said.trained_size}"):
        loader(replace(reduced, trained_size=said.trained_size))
    loader(replace(reduced, input_size=2 * reduced.input_size))
