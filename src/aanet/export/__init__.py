"""Networks as files for other runtimes, ONNX, OpenVINO IR and `torch.export`, each held against PyTorch."""
