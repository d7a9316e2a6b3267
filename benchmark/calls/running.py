"""Functions that show images to backbones."""

from typing import TYPE_CHECKING

from benchmark.calls.result import Files, Result, RunResult
from benchmark.request import ELSEWHERE
from benchmark.request.calls import ModuleCall, RunCall
from benchmark.request.loading import LoadRequest
from benchmark.request.option import called_with

if TYPE_CHECKING:
    from zoo.features.cut import CutBackbone
    from zoo.load.module.network import GivenNetwork


@called_with(RunCall)
def run(call: RunCall) -> RunResult:
    """Run backbones through tasks and give the best of each task, and the records of the folder's suite.

    Does what ``python -m benchmark run`` does, with the same options. Work that is done already is not done
    again. Without options: the mini suite, offline, in two to four minutes.

    Returns:
        It shows the answers. ``frame`` has one row a number, with the columns of
        ``leaderboards.records.record.Record``; ``best`` the answers; ``pages`` the pages. Failures of single
        backbones or tasks do not raise; they are sentences in ``failures``.

    Raises:
        zoo.errors.InputError: Something that was given is wrong.

    Example:
        >>> import benchmark
        >>> found = benchmark.run(["mini-dino", "mini-resnet"], ["knn", "cka"], images="photos", floor=False)
        >>> found
        suite images-photos-...
        <BLANKLINE>
        task       best backbone    layer    vectors    score ...
        ...
        knn top-1  mini-... ± ...
        >>> sorted(set(found.frame["backbone"])), found.failures
        (['mini-dino', 'mini-resnet'], ())
    """
    from benchmark.api import carry_out
    from benchmark.calls.reading import shown_answers
    from benchmark.engines.progress import reporter_for
    from benchmark.exchange.answering import answers_of

    summary = carry_out(call.request, reporter_for(call.progress))
    failures = tuple(str(failure) for failure in summary.done.failures)
    missing = [*map(str, summary.plan.tasks.absent), *summary.done.unreadable]
    records = summary.records
    title, best, table, notes = shown_answers(
        [answers_of(records, summary.suite, summary.ties)] if len(records) else []
    )
    notes += [f"Left out: {one}." for one in missing] + [f"Failed: {one}" for one in failures]
    return RunResult(
        title=title,
        frame=records,
        table=table,
        notes=tuple(notes),
        best=best,
        failures=failures,
        pages=summary.pages,
    )


@called_with(RunCall)
def forecast(call: RunCall) -> Result:
    """Say what a run would take on this machine: images, forwards, hours, disk and memory; keeps nothing.

    Does what ``python -m benchmark run --plan`` does: shows some images to the backbones with most to do, as
    the run would, for at most a tenth of what it expects. What is stored already is not counted.

    Returns:
        ``frame`` has one row a step: backbone, what, source, images through the backbone, seconds, and bytes
        that it leaves on the disk. ``notes`` sum them up.

    Raises:
        zoo.errors.InputError: Something that was given is wrong.

    Example:
        >>> import benchmark
        >>> found = benchmark.forecast("mini-dino", "knn", images="photos", floor=False)
        >>> sorted(found.frame)
        ['backbone', 'disk', 'images', 'seconds', 'source', 'what']
    """
    from benchmark.engines.progress import reporter_for
    from benchmark.exchange.planning import forecast_frame, forecast_lines, forecast_table
    from benchmark.jobs.forecast import forecast as foreseen

    found = foreseen(call.request, reporter_for(call.progress))
    return Result(
        title=f"suite {found.suite}, planned",
        frame=forecast_frame(found),
        table=forecast_table(found),
        notes=tuple(forecast_lines(found)),
    )


@called_with(RunCall, without=("floor", "transform", *ELSEWHERE))
def features(call: RunCall) -> Files:
    """Write the vectors of backbones, layers and poolings as files that ``score`` and any code can read.

    Does what ``python -m benchmark features`` does, with the same options.

    Returns:
        ``frame`` has one row a file: backbone, task, layer, pooling and path.

    Raises:
        zoo.errors.InputError: Something that was given is wrong.

    Example:
        >>> import benchmark
        >>> import numpy as np
        >>> written = benchmark.features("mini-dino", "knn", images="photos", layers="11,12", poolings="cls")
        >>> written.frame[["backbone", "layer", "pooling"]].values.tolist()
        [['mini-dino', '11', 'cls'], ['mini-dino', '12', 'cls']]
        >>> np.load(written.paths[0])["train"].shape[1]
        96
    """
    import pandas as pd

    from benchmark.engines.progress import reporter_for
    from benchmark.exchange.vectors import write_vectors

    found = write_vectors(call.request, reporter_for(call.progress))
    columns = ("backbone", "task", "layer", "pooling", "path")
    rows = [(*path.parts[-3:-1], *path.stem.rsplit(".", 1), str(path)) for _, path in found.files]
    failures = tuple(map(str, found.failures))
    count = len(rows)
    return Files(
        title=f"{count} {'file' if count == 1 else 'files'} of vectors",
        frame=pd.DataFrame(rows, columns=list(columns)),
        notes=(*(f"Left out: {one}." for one in found.left_out), *(f"Failed: {one}" for one in failures)),
        paths=tuple(path for _, path in found.files),
        failures=failures,
    )


@called_with(LoadRequest)
def load(request: LoadRequest) -> "CutBackbone":
    """Load a backbone that ends after a layer: a function from images to vectors.

    Blocks after the layer are never run and their weights not kept, so that it costs what the table of costs
    says of that depth. Images are shown as the run shows them.

    Returns:
        An object that maps one image of Pillow, several, or uint8 pixels [images 3 height width] to vectors
        [images dim] (grids [images rows columns dim] with ``pooling="grid"``), float32 on its device. It has
        ``spec``, ``layer``, ``dim`` and ``parameters``.

    Raises:
        zoo.errors.InputError: There is no such backbone or layer, or its files cannot be had.

    Example:
        >>> import benchmark
        >>> from PIL import Image
        >>> encode = benchmark.load("mini-dino", layer=8, pooling="cls")
        >>> encode(Image.new("RGB", (80, 60), "green")).shape
        torch.Size([1, 96])
    """
    from benchmark.exchange.loading import loaded

    return loaded(request)


@called_with(ModuleCall)
def from_module(call: ModuleCall) -> "GivenNetwork":
    """Make a backbone of any ``torch.nn.Module``, for ``run(backbones=[...])`` of this process.

    A few forwards of noise tell its blocks, what they pass on, its grids and its prefix tokens; what was
    found is printed. It is copied: nothing is changed, and what is trained later is another backbone.

    Returns:
        What runs take among names, as long as it is kept.

    Raises:
        zoo.errors.InputError: The network cannot be read so, or is not what was said; the sentence tells how.

    Example:
        >>> import benchmark
        >>> import torch
        >>> net = torch.nn.Sequential(
        ...     torch.nn.Conv2d(3, 16, kernel_size=8, stride=8),
        ...     *(torch.nn.Sequential(torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU()) for _ in "abc"),
        ... )
        >>> mine = benchmark.from_module(net, name="mine", blocks=list(net)[1:], image_size=64)
        mine: 3 blocks of net..., 0 prefix tokens + 8x8 grid of patch 8, 16 channels, no final norm
          blocks as told; they pass on feature maps [batch dim height width]
          images of 64 px (as told); mean (0.485, 0.456, 0.406) and std ... (assumed: ImageNet's)
          no norm was given what the last block gives; final_norm= names one
        >>> found = benchmark.run([mine, "mini-dino"], "knn", images="photos", floor=False, output="own")
        >>> sorted(set(found.frame["backbone"]))
        ['mine', 'mini-dino']
    """
    import sys

    from zoo.load.module.hints import Told
    from zoo.load.module.network import given_network

    words = {name: getattr(call, name) for name in Told.__dataclass_fields__}
    network = given_network(call.net, Told(**words))
    if call.verbose:
        sys.stdout.write(f"{network}\n")
    return network
