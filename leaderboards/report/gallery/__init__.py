"""What layers predicted, drawn: one file for each kind of task."""
