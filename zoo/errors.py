"""Errors for bad input."""


class InputError(ValueError):
    """Something that the user gave is wrong: a path, a name, a file, an option.

    Its message is one sentence: what was expected, what was found, what to do. The command line prints it
    without a traceback and exits with 2.
    """


class MissingDataError(InputError):
    """Data that is not there at all, as opposed to data that is wrong."""
