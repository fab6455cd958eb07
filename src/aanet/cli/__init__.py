"""The `aanet` command: one file per subcommand, heavy imports inside the functions."""
