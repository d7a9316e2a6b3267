"""Options that several commands share, in groups; together they are the `Request` of a run.

The command ``run`` and the function ``layerboard.run`` are made from it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.campaign import campaign_file, campaign_options, plain_value, require_harmless
from layerboard.benchmark.forms.option import (
    Form,
    OnePath,
    Option,
    OptionalPath,
    Plain,
    Wholes,
    Words,
    declared,
    require_something,
)
from layerboard.tasks.framework.sets import parse_sets
from layerboard.tasks.framework.transforms import parse_compression, parse_transform
from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.spec import Dtype, Tap, entry_name

_FLAG = re.compile(r"(?<![\w-])--(?=[a-z])")
StoreDtype = Literal["float32", "float16"]
TargetChoice = Literal["class", "number", "labels"]
# auto, or a rule of `zoo.load.adapters`
InterpolationChoice = Literal["auto", "huggingface", "dino", "timm", "google"]

ENGINES = {  # where the function is that makes an engine (`benchmark.engines.choose.EngineMaker`)
    "auto": "layerboard.benchmark.engines.choose:suited_engine",
    "local": "layerboard.benchmark.engines.choose:local_engine",
    "processes": "layerboard.benchmark.engines.choose:process_engine",
    "ray": "layerboard.benchmark.engines.choose:ray_engine",
}

IMAGES = (
    "Your own images; each folder is one dataset: one folder per class, optionally inside train and val; "
    "images with a metadata.csv or --labels; images without labels; a .zip of any of these; shards of "
    "WebDataset ('photos-{000..003}.tar', or their folder); or hf:DATASET from the Hub; from "
    "Python also a dataset of datasets or torch, or a list of images."
)
# images per batch: on a CPU mini-dino takes 3.2 ms an image in batches of 32, and 3.7 of 64
BATCH_CPU = 32
BATCH_GPU = 64
DATA = "Folder of the official datasets, or one that is read from the Hub, such as hf:uoft-cs/cifar100."
BACKBONES = (
    "Names or patterns ('dino-*') of the registry, Hub ids (owner/name[@revision]), directories, Python "
    "functions (module:function), timm models (timm:NAME) or ONNX files (onnx:FILE); from Python also what "
    "from_module returns."
)
WEIGHTS = (
    "NAME=PATH: weights of the backbone NAME, a directory in Hugging Face format or the authors' checkpoint "
    "(.safetensors, .pth)."
)

Images = Option[str | Path | Sequence[str | Path] | object, tuple[str, ...]]  # or data in memory
Weights = Option[str | Sequence[str] | Mapping[str, str | Path], Mapping[str, Path]]
Cache = Option[str | Path | None, Path]
Workers = Option[int | None, int]
Device = Option[str | Sequence[str], str]


def cache_option(help: str, usual: str = "below the user's cache folder") -> Cache:  # noqa: A002
    """The option for a folder of files that can be computed again."""
    return Option(None, help, instead=parsers.default_cache, usual=usual)


class GivenNetwork(Protocol):
    """A network that lives in this process, as returned by ``layerboard.from_module``."""

    @property
    def reference(self) -> str: ...  # name by which the run finds the network


Backbones = str | Path | GivenNetwork | Sequence[str | Path | GivenNetwork]


class DataOptions(Form, panel="Data"):
    """The data, and what their labels are."""

    data: OptionalPath = Option(None, DATA, parsers.datasets)
    images: Images = Option((), IMAGES, parsers.images)
    labels: OptionalPath = Option(
        None,
        "CSV file with the labels of --images DIR: columns file (relative to DIR), label (or columns of "
        "numbers) and optionally split and group; none: do not take folder names as labels.",
        parsers.table,
        usual="DIR/metadata.csv, or the folder names",
    )
    groups: OptionalPath = Option(
        None,
        "CSV file with the columns file (relative to --images DIR) and group. Images of one group (one "
        "patient, camera, place or series) are resampled together.",
        parsers.table,
        usual="the column group of the labels",
    )
    target: Plain[TargetChoice | None] = Option(
        None,
        "What the labels are: class, one class per image; number, one or several columns of numbers "
        "(regression); or labels, several labels per image, separated by | or given as columns of 0 and 1.",
        usual="inferred from the table",
    )


class LayerOptions(Form, panel="Layers and vectors"):
    """The layers."""

    layers: Plain[str] = Option(
        "all",
        "Layers: all, or a list such as 4,8-12,final; 0 is the input of the first block.",
        parsers.layers,
    )


class DeviceOptions(Form, panel="Machine"):
    """Where a backbone runs, and what it leaves there."""

    device: Device = Option(
        "auto", "Device of the forward passes: auto, cpu, cuda or cuda:N.", parsers.commas, several=False
    )
    cache: Cache = cache_option("Folder of downloads, vectors and unpacked images, which later calls reuse.")


class ResultsOptions(Form, panel="Output"):
    """Where the results of a run are, or go."""

    output: OnePath = Option(
        "results", "Output folder of a run: records, per-item scores and tables.", also="-o"
    )


class ProgressOption(Form, panel="Output"):
    """Whether a Python function shows how far it is."""

    progress: Plain[bool | None] = Option(
        None, "Show progress (Python only).", usual="in a notebook or a terminal", only="python"
    )


class JsonOption(Form, panel="Output"):
    """Output for machines."""

    json: Plain[bool] = Option(False, "Print JSON.", only="command")


class Request(ResultsOptions, DeviceOptions, LayerOptions, DataOptions, kw_only=False):
    """What to run, and how: the options of the command ``run`` and of the function ``layerboard.run``.

    An invalid value of a single option raises InputError when the request is made.
    """

    backbones: Option[Backbones, tuple[str, ...]] = Option(
        (), BACKBONES, parsers.backbones, also="-b", usual="the suite's", panel="Backbones"
    )
    tasks: Words = Option(
        (),
        "Tasks, see `list tasks`.",
        parsers.tasks,
        also="-t",
        usual="all that the data allow",
        panel="Tasks",
    )
    _: KW_ONLY
    weights: Weights = Option((), WEIGHTS, parsers.weights, panel="Backbones")
    protocol: Words = Option(
        (),
        "Evaluation protocols: standard; paper, as in the code of Teaching Matters; or that of one task, "
        "such as insid3; see `list protocols`.",
        parsers.protocols,
        usual="the suite's",
        panel="Tasks",
    )
    limit: Plain[int | None] = Option(
        None,
        "Use at most this many images per class, videos, pairs, ..., for a trial.",
        least=1,
        usual="all data",
        panel="Data",
    )
    taps: Option[str | Sequence[str], tuple[Tap, ...]] = Option(
        "block",
        "Tensors to read of each block (taps), comma-separated: block, input, norm1, query, key, value, "
        "heads, attention, mid, norm2, mlp_hidden, mlp, block-normed (the block behind the network's final "
        "norm); in ResNets block, input, skip, branch.",
        partial(parsers.some_of, choices=parsers.TAPS),
        several=False,
        panel="Layers and vectors",
    )
    batch_size: Option[int | str | None, int | Literal["auto"] | None] = Option(
        None,
        "Images per batch; auto: on a GPU the fastest batch size, as the task cost measures it.",
        parsers.batch,
        usual="32 on a CPU, 64 on a GPU",
        panel="Machine",
    )
    workers: Workers = Option(
        None,
        "Threads for decoding and scoring.",
        least=1,
        most=1024,
        instead=parsers.default_workers,
        usual="number of processors",
        panel="Machine",
    )
    poolings: Words = Option(
        "cls,mean",
        "Image vectors: cls (class token), mean (mean of the patch tokens), cls+mean (both, one after the "
        "other), gem (generalised mean of the patch tokens, p = 3), or patchwise (for networks without a "
        "class token: blocks of neighbouring cells are concatenated, then averaged).",
        parsers.poolings,
        several=False,
        panel="Layers and vectors",
    )
    input_size: Option[int | str | Sequence[int | str] | None, tuple[int, ...]] = Option(
        (),
        "Input resolution in pixels; with several (224,448), every backbone is run at each and a table "
        "compares them.",
        parsers.sides,
        usual="each backbone's own resolution",
        panel="Layers and vectors",
    )
    dtype: Option[str | Sequence[str], tuple[Dtype, ...]] = Option(
        "float32",
        "Dtypes of the forward pass. amp-bfloat16: mixed precision, weights in float32 and products in "
        "bfloat16; auto: amp-bfloat16 on a GPU with the standard protocol, else float32. With several, each "
        "backbone is run in each (NAME@bfloat16), and a table compares them.",
        parsers.dtypes,
        several=False,
        choices=parsers.DTYPES,
        panel="Machine",
    )
    compile: Plain[bool] = Option(
        False,
        "Compile the blocks of transformers (torch.compile): slow start, then faster forward passes.",
        panel="Machine",
    )
    suite: Plain[str | None] = Option(
        None,
        "Named set of datasets and backbones; see `list suites`.",
        usual="mini, or standard with data",
        panel="Data",
    )
    interpolation: Plain[InterpolationChoice] = Option(
        "auto",
        "Interpolation of position embeddings at other resolutions; auto: as the authors do it.",
        panel="Layers and vectors",
    )
    device: Device = Option(
        "auto",
        "Device of the forward passes: auto, cpu, cuda or cuda:N; or several, with one process each: "
        "cuda:0,cuda:1 or all.",
        parsers.commas,
        also="--devices",
        several=False,
        panel="Machine",
    )
    engine: Plain[str] = Option(
        "auto",
        "Where to compute: this process (local), several processes, or a Ray cluster: a new one (ray), or "
        "the one at ray:HOST:PORT.",
        partial(parsers.engine, choices=ENGINES),
        choices=ENGINES,
        panel="Machine",
    )
    copies: Plain[bool] = Option(
        False,
        "With --images: make copies of each image (compressed, cropped, rotated, ...) and score how well "
        "images and copies retrieve each other (near-duplicates).",
        panel="Data",
    )
    store_dtype: Plain[StoreDtype] = Option("float32", "Dtype of cached features.", panel="Machine")
    campaign: Option[str | Path | None, str | None] = Option(
        None,
        "File (YAML or TOML) whose keys are options of run, such as run.yaml of an output folder; papers or "
        "today for one that comes with the package. What else is given replaces what the file has.",
        parsers.word,
        usual="none",
        panel="Data",
    )
    series: Plain[bool] = Option(
        False,
        "Backbones are checkpoints of trainings, named by patterns ('runs/*/checkpoint-*', or --weights "
        "'NAME=runs/*/ckpt-*.pt'); the number after step or epoch in a name, or its only one, is the "
        "step. Pages follow each training.",
        panel="Backbones",
    )
    steps: OptionalPath = Option(
        None,
        "With --series: CSV file with the steps of the checkpoints, columns file and step.",
        parsers.table,
        usual="from their names",
        panel="Backbones",
    )
    floor: Plain[bool] = Option(
        True, "Also score untrained baselines: random features and raw pixels.", panel="Backbones"
    )
    shots: Wholes = Option(
        (),
        "Training images per class for fewshot; reference images for anomaly, which is also scored with all.",
        least=1,
        usual="10, 1, 5, 25; 1, 4",
        panel="Tasks",
    )
    transform: Words = Option(
        (),
        "Transforms of vectors to score in addition to plain ones: whiten and zscore.",
        partial(parsers.each_once, parse_transform),
        usual="nothing",
        panel="Layers and vectors",
    )
    compress: Words = Option(
        (),
        "Score compressed vectors in addition to float32: pca:N, rp:N, first:N, int8, binary, pq:M, or a "
        "chain such as pca:128+int8.",
        partial(parsers.each_once, parse_compression),
        usual="nothing",
        panel="Layers and vectors",
    )
    fuse: Words = Option(
        (),
        "Also score sets of layers jointly: last4, quarters, all, pairs, blocks such as 3+6+9, or "
        "greedy:3, chosen by scores.",
        lambda value: parse_sets(parsers.listed(value)),
        usual="none",
        panel="Layers and vectors",
    )
    again: Plain[bool] = Option(
        False,
        "Repeat cost measurements that exist for this device, and take weights although earlier runs into "
        "the folder had others.",
        panel="Machine",
    )
    examples: Plain[bool] = Option(True, "Save thumbnails and predictions of a few images.", panel="Output")

    @classmethod
    def filled(cls, given: Mapping[str, Any]) -> Self:
        """The form with what a user gave, and with what a campaign file has besides; raises InputError."""
        name = Request(campaign=given.get("campaign")).campaign
        if name is None:
            return cls(**given)
        every = declared(Request)
        options = campaign_options(name, every)
        try:
            for option in every:
                require_something(option, options.get(option.name, ...))
            values = vars(Request(**options))
            alone = [each for each in declared(Request) if each.name in options.keys() - given.keys()]
        except InputError as error:
            # a sentence about an option as one about the key of a file
            raise InputError(f"{campaign_file(name)}: {_FLAG.sub('', str(error))}") from error
        require_harmless(name, values, alone)
        for own, other in (("data", "images"), ("images", "data")):
            if own in given and other in options and other not in given:
                raise InputError(
                    f"--{own} contradicts the key {other} of {campaign_file(name)}: leave --{own} out, or "
                    f"take {other} out of the file"
                )
        weights = values["weights"]
        if "backbones" in given and "weights" not in given:  # those of backbones that are left are not needed
            patterns = [entry_name(each) for each in parsers.backbones(given["backbones"])]
            weights = {k: v for k, v in weights.items() if any(fnmatchcase(k, each) for each in patterns)}
        return cls(**{**{option: values[option] for option in options}, "weights": weights, **given})

    @property
    def replaced(self) -> tuple[str, ...]:
        """What was given in place of what the campaign file has: a phrase for each such key."""
        if self.campaign is None:
            return ()
        options = campaign_options(self.campaign, declared(Request))
        file, before = campaign_file(self.campaign), vars(Request(**options))
        pairs = {name: (before[name], vars(self)[name]) for name in options}
        return tuple(
            f"{name} is {shortened(plain_value(now))}, in place of {shortened(plain_value(was))} in {file}"
            for name, (was, now) in pairs.items()
            if was != now
        )

    @property
    def engine_name(self) -> str:
        """The engine without an address."""
        return self.engine.partition(":")[0]

    @property
    def cluster(self) -> str | None:
        """Address of an existing Ray cluster, as Ray takes it; None for a new one, and without Ray."""
        address = self.engine.partition(":")[2]
        return f"ray:{address}" if address.startswith("//") else address or None

    def batch_on(self, device: str) -> int:
        """Images per batch on a type of device, where the fastest batch size has not been measured."""
        usual = BATCH_CPU if device == "cpu" else BATCH_GPU
        return self.batch_size if isinstance(self.batch_size, int) else usual
