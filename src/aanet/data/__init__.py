"""Images, disparity files, datasets and the procedural stereo world."""
