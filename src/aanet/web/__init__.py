"""Stereo over HTTP and in a browser: one process, one port, one bounded queue in front of each matcher."""
