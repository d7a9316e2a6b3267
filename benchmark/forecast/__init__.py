"""The forecast of a run's time and memory."""
