"""Files of weights as trainings write them: prefixes before all names, and two networks in one file."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import identify
from layerboard.zoo.load.checkpoint import read_weights
from layerboard.zoo.load.files import locate
from layerboard.zoo.load.network import read_network_of
from layerboard.zoo.load.networks import choice_in_words, networks_of
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec
from tests.faults.broken_fields import problem_of
from tests.faults.counts import Count
from tests.zoo.layouts import Tensors
from tests.zoo.published import publish
from tests.zoo.reduced import reduce

LAYOUTS = ("timm", "dino", "moco", "beit", "dinov2", "dinov2-registers", "clip", "resnet", "capi")
WORDS = ("module", "_orig_mod", "model", "net", "network", "backbone", "encoder")
KEYS = ("state_dict", "model", "model_state_dict", "weights", "checkpoint", "network")
STRANGE = ("wrapped_by_me", "det", "tower", "0", "my.own", "Classifier1", "stem_")
SIDES = (
    *(("student", "teacher"), ("online_encoder", "target_encoder"), ("base_encoder", "momentum_encoder")),
    *(("backbone", "momentum_backbone"), ("encoder_q", "encoder_k"), ("model", "ema_model")),
    *(("net", "ema"), ("module", "averaged_module"), ("query_encoder", "key_encoder"), ("net", "netEMA")),
    *(("model", "swa_model"), ("online_network", "target_network"), ("current_model", "average_model")),
)
"""Labels of a network, and of its average."""
DICTIONARIES = (
    ("state_dict", "state_dict_ema"),
    ("model", "model_ema"),
    ("student", "teacher"),
    ("model", "ema"),
)
MORE = {
    "optimizer": {"state": {0: {"exp_avg": torch.ones(2)}}},
    "epoch": 3,
    "head": {"weight": torch.ones(2)},
}
HEADS = ("head.weight", "fc.bias", "projector.0.weight", "predictor.weight", "dino_head.mlp.0.weight")


def draw_prefixes(root: Path, times: int, seed: int = 0) -> Count:
    """Put prefixes before the names of a file, known ones and strange ones, and read it.

    What is wanted: the tensors of the plain file, or a sentence with the option that gives them.
    """
    draw, count = random.Random(seed), Count("prefixes of weights")
    for number in range(times):
        if number % 5 == 4:
            count.note(*_in_a_directory(root / str(number), draw))
            continue
        name = draw.choice(LAYOUTS)
        spec, plain = _published(name, root / str(number))
        words = [draw.choice(WORDS) for _ in range(draw.randint(0, 4))]
        strange = draw.random() < 0.3
        if strange:
            words.insert(draw.randint(0, len(words)), draw.choice(STRANGE))
        content: object = _under(".".join(words), plain) | _heads(draw)
        for key in draw.sample(KEYS, draw.randint(0, 3)):
            content = {key: content, **(MORE if draw.random() < 0.5 else {})}
        torch.save(content, spec.repository)
        what = f"{name} {'.'.join(words)} in {type(content).__name__}"
        count.note(what, _problem(spec, plain, strange=strange))
    return count


def draw_pairs(root: Path, times: int, seed: int = 0) -> Count:
    """Write two networks into one file, and read it for an entry that means one of them, or none.

    What is wanted: the one that is meant, with a line about the choice, and the other by the option in it.
    """
    draw, count = random.Random(seed), Count("two networks in one file")
    for number in range(times):
        name = draw.choice(LAYOUTS)
        spec, own = _published(name, root / str(number))
        mean = {key: tensor + 1 for key, tensor in own.items()}
        meant = draw.choice(["", "average", "trained"])
        if in_one := draw.random() < 0.6:
            labels = draw.choice(SIDES)
            prefix = ".".join(draw.choice(WORDS[:3]) for _ in range(draw.randint(0, 1)))
            places = [".".join(filter(None, [prefix, label])) for label in labels]
            content: object = _under(places[0], own) | _under(places[1], mean) | _heads(draw)
            content = {"state_dict": content, **MORE} if draw.random() < 0.5 else content
        else:
            labels = draw.choice(DICTIONARIES)
            words = draw.choice(["", "module", "backbone", "model.net"])
            content = {
                label: _under(words, net) for label, net in zip(labels, (own, mean), strict=True)
            } | MORE
        torch.save(content, spec.repository)
        spec = replace(spec, network=meant)
        is_average = meant == "average" or (not meant and "student" in labels)
        wanted, other = (mean, own) if is_average else (own, mean)
        what = f"{name} {labels} {'in one' if in_one else 'apart'}, meant: {meant or 'none'}"
        count.note(what, _problem_of_pair(spec, wanted, other))
    return count


def _published(name: str, folder: Path) -> tuple[BackboneSpec, Tensors]:
    """An entry whose file is a pickle of torch, still to be written, and its tensors."""
    published = publish(name, folder)
    return replace(published.spec, repository=str(folder / "net.pth")), published.tensors


def _under(prefix: str, tensors: Tensors) -> Tensors:
    return {f"{prefix}.{name}" if prefix else name: tensor for name, tensor in tensors.items()}


def _heads(draw: random.Random) -> Tensors:
    return {name: torch.ones(2) for name in HEADS if draw.random() < 0.3}


def _read(spec: BackboneSpec) -> Tensors:
    return read_network_of(spec, locate(spec, None))[2]


def _of_plain(spec: BackboneSpec, tensors: Tensors) -> Tensors:
    """The same tensors, read from a file of their own."""
    folder = Path(spec.repository).parent
    path = folder / f"plain-{len(list(folder.iterdir()))}.pth"  # a file that was read stays in use
    torch.save(tensors, path)
    return _read(replace(spec, repository=str(path)))


def _alike(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def _problem(spec: BackboneSpec, plain: Tensors, *, strange: bool) -> str:
    expected = _of_plain(spec, plain)

    def read() -> None:
        if strange:
            option = _option_of(lambda: _read(spec), spec)
            assert option, "a strange prefix was taken off without a word, or without the option"
            assert _alike(_read(replace(spec, repository=option)), expected), "the option gives others"
        else:
            assert _alike(_read(spec), expected), "other tensors than the plain file's"

    return problem_of(read) or ("" if strange else _refusal(lambda: _read(spec)))


def _refusal(read: Callable[[], object]) -> str:
    try:
        read()
    except InputError as error:
        return f"refused: {str(error)[:200]}"
    return ""


def _option_of(read: Callable[[], object], spec: BackboneSpec) -> str:
    """The file and the label that a sentence names."""
    try:
        read()
    except InputError as error:
        mark = f"--weights {spec.entry}="
        return str(error).partition(mark)[2].partition(",")[0].split(" or ")[0].rstrip(".")
    return ""


def _problem_of_pair(spec: BackboneSpec, wanted: Tensors, other: Tensors) -> str:
    expected, rest = (_of_plain(spec, tensors) for tensors in (wanted, other))

    def read() -> None:
        assert _alike(_read(spec), expected), "the other one was taken"
        line = choice_in_words(networks_of(read_weights((Path(spec.repository),))), spec)
        option = line.partition(f"--weights {spec.entry}=")[2]
        assert option, f"no word about the choice: {line!r}"
        named = replace(spec, repository=option)
        assert _alike(_read(named), rest), "the option does not give the other one"
        assert identify(named, cache_dir=Path()) != identify(spec, cache_dir=Path()), "both have one digest"

    return problem_of(read) or _refusal(lambda: _read(spec))


def _in_a_directory(root: Path, draw: random.Random) -> tuple[str, str]:
    """The same for a directory in Hugging Face format."""
    root.mkdir(parents=True)
    reduced = reduce(find([draw.choice(["dino-s16", "clip-b32", "dinov2-s14", "resnet50"])])[0], root)
    path = reduced.folder / "model.safetensors"
    expected = _read(reduced.spec)
    prefix = ".".join(draw.choice(WORDS[:6]) for _ in range(draw.randint(1, 3)))
    save_file(_under(prefix, load_file(path)), path)
    found: list[str] = []

    def read() -> None:
        if not _alike(_read(reduced.spec), expected):
            found.append("other tensors than without the prefix")

    return f"directory of {reduced.spec.name}, {prefix}", problem_of(read) or next(iter(found), "")
