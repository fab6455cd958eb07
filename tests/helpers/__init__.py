"""What several tests need: small networks, naive twins, datasets on disk, a fake engine, a server."""
