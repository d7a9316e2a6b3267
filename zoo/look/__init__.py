"""Looking into a network while one forward runs: layers, sublayers, attention."""
