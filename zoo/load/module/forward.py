"""One forward of somebody's network with an eye on some of its modules."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from zoo.errors import InputError, shortened
from zoo.look.layout import first_tensor
from zoo.look.precision import exact_float32

See = Callable[[str, Tensor | None, Tensor | None], None]
"""Told the path of a module that has run, the first tensor that it was given and the first that it gave."""


def run_watched(net: nn.Module, images: Tensor, modules: Mapping[str, nn.Module], see: See) -> None:
    """Run a forward and tell what passes through some modules, as they end.

    Args:
        net: The network, in evaluation mode.
        images: Its input, [batch 3 height width], normalised.
        modules: Modules by path.
        see: Is called with live activations.

    Raises:
        InputError: The network does not take the images, or the modules cannot be watched.
    """

    def hook_of(path: str) -> Callable[..., None]:
        def hook(_: nn.Module, given: object, options: object, gives: object) -> None:
            see(path, first_tensor((given, options)), first_tensor(gives))

        return hook

    with ExitStack() as hooks, torch.no_grad(), exact_float32():
        for path, module in modules.items():
            try:
                hook = module.register_forward_hook(hook_of(path), with_kwargs=True)
            except RuntimeError as error:
                raise InputError(
                    f"{type(net).__name__}.{path} is a {type(module).__name__}, which cannot be watched; "
                    "give the network as it was before it was compiled"
                ) from error
            hooks.callback(hook.remove)
        try:
            net(images)
        except Exception as error:
            sides = " ".join(str(length) for length in images.shape)
            raise InputError(
                f"{type(net).__name__} does not take images [{sides}]: {type(error).__name__}: "
                f"{shortened(str(error).strip().partition(chr(10))[0])}; give image_size=, or a module whose "
                "forward takes a batch of images alone"
            ) from error
