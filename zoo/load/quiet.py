"""Keeps the Hugging Face libraries from writing to the terminal."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub.utils import logging as hub_log
from huggingface_hub.utils.tqdm import (
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
)
from transformers.utils import logging as log


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, load reports, retries and advice inside; exceptions still come out."""
    verbosity, loading, fetching = log.get_verbosity(), log.is_progress_bar_enabled(), _shows_fetching()
    hub_verbosity = hub_log.get_verbosity()
    log.set_verbosity(logging.CRITICAL)
    hub_log.set_verbosity(logging.CRITICAL)
    log.disable_progress_bar()  # type: ignore[no-untyped-call]
    disable_progress_bars()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        hub_log.set_verbosity(hub_verbosity)
        if loading:
            log.enable_progress_bar()  # type: ignore[no-untyped-call]
        if fetching:
            enable_progress_bars()


def _shows_fetching() -> bool:
    return not are_progress_bars_disabled()
