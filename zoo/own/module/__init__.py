"""A user's own ``torch.nn.Module`` as a backbone: what a forward pass shows of it, and its copy."""
