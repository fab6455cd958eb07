"""The networks, with one module for each step from images to disparity."""
