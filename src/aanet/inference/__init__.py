"""What surrounds a network when it predicts: sizes, tiles, checks of the pair, post-processing."""
