"""Pages of the documentation that are generated from the code when the site is built; see `docs_hook.py`."""
