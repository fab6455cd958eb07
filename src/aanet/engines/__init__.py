"""The engines that run networks: implementations of the `Engine` protocol and a table that lists them."""
