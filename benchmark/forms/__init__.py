"""Forms: the options of commands, how they are read, and the request of a run."""
