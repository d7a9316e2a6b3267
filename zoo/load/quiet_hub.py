"""Keeps the library of the Hub from writing to the terminal."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub.utils import logging as log
from huggingface_hub.utils.tqdm import (
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
)


@contextmanager
def quiet_hub() -> Iterator[None]:
    """No progress bars, retries and advice of downloads inside; exceptions still come out."""
    verbosity, shows_bars = log.get_verbosity(), not are_progress_bars_disabled()
    log.set_verbosity(logging.CRITICAL)
    disable_progress_bars()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if shows_bars:
            enable_progress_bars()
