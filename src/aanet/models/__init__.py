"""The networks: one place for each step from images to disparity."""
