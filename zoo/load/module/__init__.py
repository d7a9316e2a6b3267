"""Anybody's own ``torch.nn.Module`` as a backbone: what a trial forward finds out about it, and its copy."""
