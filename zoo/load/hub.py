"""Files of a backbone from the Hugging Face Hub, or from what an earlier run has left of them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from huggingface_hub import errors, hf_hub_download
from huggingface_hub.utils import logging as hub_log
from huggingface_hub.utils.tqdm import are_progress_bars_disabled

from layerboard.zoo.errors import InputError, first_line
from layerboard.zoo.load.checkpoint import SMALL_FILES, WEIGHT_FILES, Checkpoint, in_directory, shards
from layerboard.zoo.online import hub_within_limits, without_secrets


def fetch(repository: str, revision: str | None, cache_dir: Path | None) -> Checkpoint:
    """Files of a repository of the Hub: of a commit, branch or tag, or of its main branch for None.

    The user's own cache of the Hub is read and never written; what is incomplete there is downloaded below
    ``cache_dir``, or not at all for None. Raises InputError if the repository, the revision or its weights
    are unavailable.
    """
    folder = _folder(repository, revision, None, offline=True)
    if folder is None and cache_dir is not None:
        with hub_within_limits() as answers:
            fetch_folder = _download if answers else partial(_folder, offline=True)
            folder = fetch_folder(repository, revision, cache_dir / "hub")
    if folder is None:
        raise InputError(
            f"{repository} is neither a directory nor in the cache of the Hugging Face Hub, and the Hub "
            "cannot be reached; connect once, or give a directory in Hugging Face format."
        )
    return in_directory(folder, folder.name)


def is_cached(repository: str, cache_dir: Path | None) -> bool:
    """Whether weights of a repository's main branch are in the user's own cache or below ``cache_dir``."""
    caches = [None] if cache_dir is None else [None, cache_dir / "hub"]
    return any(_folder(repository, None, cache, offline=True) for cache in caches)


def _download(repository: str, revision: str | None, cache: Path) -> Path | None:
    at = f"revision {revision} of {repository}" if revision else repository
    gated = f"accept its terms on https://huggingface.co/{repository} and log in with 'hf auth login'."
    said: dict[type[Exception], str] = {  # the first that fits; a gated repository is one that is not found
        errors.GatedRepoError: f"{repository} is gated: {gated}",
        errors.RevisionNotFoundError: f"The Hub has {repository}, but not its revision {revision}.",
        errors.RepositoryNotFoundError: f"The Hub has no public repository {repository}; check the name or "
        "log in.",
        errors.HFValidationError: f"'{repository}' is no Hub id (owner/name) and no directory.",
        errors.EntryNotFoundError: f"{at} has no weights called {' or '.join(WEIGHT_FILES)}.",
    }
    try:
        with quiet():
            return _folder(repository, revision, cache, offline=False)
    except Exception as error:  # also of its HTTP library, of what the server sent, or of the disk
        other = f"{at} could not be downloaded: {without_secrets(first_line(error))}"
        raise InputError(next((said[kind] for kind in said if isinstance(error, kind)), other)) from error


def _folder(repository: str, revision: str | None, cache: Path | None, *, offline: bool) -> Path | None:
    """Directory of a snapshot with weights in the first available form; None if the network fails."""

    def get(name: str, commit: str | None) -> Path:
        return Path(
            hf_hub_download(repository, name, revision=commit, cache_dir=cache, local_files_only=offline)
        )

    try:
        for name in WEIGHT_FILES:
            try:
                path = get(name, revision)
                break
            except errors.EntryNotFoundError as error:
                if isinstance(error, errors.LocalEntryNotFoundError) and not offline:
                    raise
        else:
            raise (errors.LocalEntryNotFoundError if offline else errors.EntryNotFoundError)("no weights")
        folder = path.parent
        for shard in shards(path) if path.name.endswith(".index.json") else ():
            get(shard.name, folder.name)
        for name in SMALL_FILES:
            with suppress(errors.EntryNotFoundError):
                get(name, folder.name)
    except errors.LocalEntryNotFoundError:
        return None
    except errors.HFValidationError:
        if offline:
            return None
        raise
    return folder


@contextmanager
def quiet() -> Iterator[None]:
    """Context without progress bars, reports and advice of both libraries; exceptions pass through."""
    from transformers.utils import logging as transformers_log

    usual = [(log, log.get_verbosity()) for log in (hub_log, transformers_log)]
    shows_bars = transformers_log.is_progress_bar_enabled() and not are_progress_bars_disabled()
    for log, _ in usual:
        log.set_verbosity(logging.CRITICAL)
    transformers_log.disable_progress_bar()  # type: ignore[no-untyped-call]  # the Hub's, too
    try:
        yield
    finally:
        for log, verbosity in usual:
            log.set_verbosity(verbosity)
        if shows_bars:
            transformers_log.enable_progress_bar()  # type: ignore[no-untyped-call]
