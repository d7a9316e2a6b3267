"""A user's own ``torch.nn.Module`` as a backbone: findings of trial forward passes, and its copy."""
