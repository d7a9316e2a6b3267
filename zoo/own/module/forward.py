"""Forward passes of a user's network that observe some of its modules."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.features.hooked import exact_float32
from layerboard.zoo.features.layers import first_tensor
from layerboard.zoo.spec import Normalisation

# Called with the path of a module that has run, and the first tensors of its input and output.
See = Callable[[str, Tensor | None, Tensor | None], None]


@dataclass(frozen=True, slots=True)
class Subject:
    """A network in evaluation mode, the paths of its blocks, and the square images that it is shown.

    ``size`` in pixels and the normalisation are those of its input; the sources say where each comes from.
    """

    net: nn.Module
    size: int
    normalisation: Normalisation
    size_source: str
    normalisation_source: str
    blocks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the network in sentences."""
        return type(self.net).__name__

    def images(self, pixels: Tensor) -> Tensor:
        """Input from pixels in [0, 1], [batch 3 height width], with the device and dtype of the weights."""
        first = next(iter(self.net.parameters()), None)
        mean, std = self.normalisation.mean, self.normalisation.std
        images = (pixels - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
        return images if first is None else images.to(first)

    def draw(self, height: int = 0, width: int = 0) -> Tensor:
        """Deterministic noise in [0, 1], [3 height width]; of the network's own size by default."""
        draw = torch.Generator().manual_seed(height)
        return torch.rand(3, height or self.size, width or self.size, generator=draw)


def run_watched(net: nn.Module, images: Tensor, paths: Iterable[str], see: See) -> None:
    """Run a forward pass on normalised images and show live inputs and outputs of modules, as they end."""

    def hook(path: str, _: nn.Module, inputs: object, options: object, output: object) -> None:
        see(path, first_tensor((inputs, options)), first_tensor(output))

    with ExitStack() as hooks, torch.no_grad(), exact_float32():
        for path in paths:
            module = net.get_submodule(path)
            try:
                handle = module.register_forward_hook(partial(hook, path), with_kwargs=True)
            except RuntimeError as error:
                raise InputError(
                    f"{type(net).__name__}.{path} is a {type(module).__name__}, which cannot be watched; "
                    "give the network as it was before it was compiled"
                ) from error
            hooks.callback(handle.remove)
        try:
            net(images)
        except Exception as error:
            reason = f"{type(error).__name__}: {shortened(str(error).strip().partition(chr(10))[0])}"
            raise InputError(
                f"{type(net).__name__} does not take images [{in_brackets(images)}]: {reason}; give "
                "image_size=, or a module whose forward takes a batch of images alone"
            ) from error


def in_brackets(tensor: Tensor) -> str:
    """Lengths of its axes in brackets, for sentences."""
    return " ".join(map(str, tensor.shape))


def streams_of(subject: Subject, pixels: Tensor) -> tuple[list[Tensor], list[str]]:
    """The input of the first block and the output of each; and paths of norms that were given the last."""
    net, order = subject.net, subject.blocks
    streams: list[Tensor] = []
    ran: list[str] = []
    last: list[Tensor] = []
    normed: list[tuple[str, Tensor]] = []

    def enter(_: nn.Module, inputs: object, options: object) -> None:
        if (entering := first_tensor((inputs, options))) is not None:
            streams.append(entering.clone())

    def see(path: str, before: Tensor | None, after: Tensor | None) -> None:
        if path not in order:
            if before is not None and after is not None and before.shape == after.shape:
                normed.append((path, before))
        elif after is None:
            raise InputError(f"block {path} returns no tensor")
        else:
            ran.append(path)
            streams.append(after.clone())
            last[:] = [after]

    norms = _norms_outside(net, order)
    handle = net.get_submodule(order[0]).register_forward_pre_hook(enter, with_kwargs=True)
    try:
        run_watched(net, subject.images(pixels), (*order, *norms), see)
    finally:
        handle.remove()
    _require_order(subject, ran)
    if len(streams) == len(order):
        raise InputError(f"block {order[0]} of {subject.name} is called without a tensor")
    for number, stream in enumerate(streams):
        if not torch.isfinite(stream).all():
            raise InputError(f"{subject.name} gives numbers that are not finite at layer {number}")
    return streams, sorted((path for path, before in normed if before is last[0]), key=len)


def _norms_outside(net: nn.Module, blocks: Sequence[str]) -> list[str]:
    """Paths of the norms that are in none of the blocks, by the names of their classes."""
    return [
        path
        for path, module in net.named_modules()
        if "norm" in type(module).__name__.lower()
        and not any(f"{path}.".startswith(f"{block}.") for block in blocks)
    ]


def _require_order(subject: Subject, ran: list[str]) -> None:
    if tuple(ran) == subject.blocks:
        return
    times = {path: ran.count(path) for path in subject.blocks}
    wrong = next((path for path, count in times.items() if count != 1), "")
    how = f"block {wrong} runs {times[wrong]} times" if wrong else f"blocks run in the order {', '.join(ran)}"
    raise InputError(f"{subject.name}: {how} in one forward; each should run once, in the order of blocks=")
