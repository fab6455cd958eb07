"""Training: recipes, losses, stages, checkpoints and the training loop."""
