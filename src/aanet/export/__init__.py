"""Export of networks to ONNX, OpenVINO IR and `torch.export`, each file verified against PyTorch."""
