"""Files in and out: images, disparity, depth, points and lists of pairs."""
