"""Stereo matching over HTTP and in a browser: one process, one port, and a bounded queue per matcher."""
