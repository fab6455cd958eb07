"""Training: recipes, losses, stages, checkpoints and one readable loop."""
