"""The engines that run networks: implementations of the `Engine` protocol and a table that lists them."""

import sys

# Importing OpenVINO sends a message to its vendor and stores an identifier of the user in the home folder,
# unless this package is missing. It must be hidden before the first import.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # None blocks the import
