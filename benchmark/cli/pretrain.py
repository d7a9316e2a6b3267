"""The command `pretrain`: trains a mini backbone. Heavy libraries are imported when it runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from benchmark.request import default_cache, default_workers


class ObjectiveName(StrEnum):
    """Objectives of `zoo.pretrain.methods`."""

    fs = "fs"
    clip = "clip"
    dino = "dino"
    moco = "moco"
    mae = "mae"
    beit = "beit"
    resnet = "resnet"


class TrainingDtype(StrEnum):
    """Dtypes of the forward pass of a training."""

    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"


class PoolingName(StrEnum):
    """What FS's classifier sees."""

    cls = "cls"
    mean = "mean"


def pretrain_command(
    objective: Annotated[ObjectiveName, typer.Argument(help="What the backbone learns by.")],
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Updates of the weights.", show_default="those of the packaged weights"),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=2, help="Images in each.")] = 64,
    images: Annotated[int, typer.Option(min=2, help="Different training images.")] = 48_000,
    image_size: Annotated[
        int, typer.Option(min=16, help="Their side in pixels; crops are taken from them.")
    ] = 96,
    seed: Annotated[int, typer.Option(min=0, help="Of images, weights and every draw.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    dtype: Annotated[
        TrainingDtype,
        typer.Option(help="Of the forward; auto: bfloat16 where the device multiplies in it, else float32."),
    ] = TrainingDtype.auto,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder below which the backbone's directory is written.")
    ] = Path("results/pretrained"),
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder of rendered images; they serve later runs.", show_default=False),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that render.", show_default="processors")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on from the checkpoint in the output folder.")] = True,
    pooling: Annotated[
        PoolingName | None, typer.Option(help="fs: what the classifier sees.", show_default=False)
    ] = None,
    no_skip: Annotated[
        int | None,
        typer.Option("--no-skip", min=1, help="fs: block without skip connections.", show_default=False),
    ] = None,
    fraction: Annotated[float, typer.Option(help="fs, resnet: share of the images of each class.")] = 1.0,
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak, for batches of 256.", show_default="the recipe's")
    ] = None,
    log_every: Annotated[int, typer.Option(min=1, help="Steps from one line to the next.")] = 50,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Steps from checkpoint to checkpoint.")] = 500,
    probe_every: Annotated[
        int, typer.Option(min=0, help="Steps from one k-NN and linear probe to the next; 0: at the end.")
    ] = 0,
    install: Annotated[
        bool, typer.Option("--install", help="Copy the result into the package, for the mini suite.")
    ] = False,
) -> None:
    """Train a mini backbone with its family's own objective on rendered images.

    Images are rendered once. A training that was interrupted goes on when it is started again. The result is
    a directory in Hugging Face format with a model card. Without options it does what made the packaged
    weights.
    """
    from benchmark.engines.progress import Terminal
    from benchmark.pretrain.pretrain import Pretraining, pretrain
    from zoo.pretrain.methods import method

    wish = Pretraining(
        objective=objective.value,
        steps=steps or method(objective.value).steps,
        batch_size=batch_size,
        images=images,
        image_size=image_size,
        seed=seed,
        device=device,
        dtype=dtype.value,
        output=output,
        cache=cache or default_cache(),
        workers=workers or default_workers(),
        resume=resume,
        pooling=None if pooling is None else pooling.value,
        no_skip=no_skip,
        fraction=fraction,
        learning_rate=learning_rate,
        log_every=log_every,
        checkpoint_every=checkpoint_every,
        probe_every=probe_every,
        install=install,
    )
    report = Terminal()
    try:
        folder = pretrain(wish, report)
    except KeyboardInterrupt:
        report.say("interrupted; run again to go on from the last checkpoint")
        raise typer.Exit(130) from None
    typer.echo(folder)
