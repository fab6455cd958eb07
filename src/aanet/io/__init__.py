"""Reading and writing files: images, disparity, depth, point clouds, and lists of pairs."""
