"""Networks that this package did not export: ONNX, OpenVINO IR and frozen TensorFlow graphs of any publisher.

The way of a file: `files` reads and checks it, `running` opens it, `readings` lists how it may be fed and
read, `recognition` tries that on a real pair (in a child process, see `inspection`), `adapter` is the engine.
"""
