"""Networks of molecules for use without this package: a `torch.export` program, ONNX, tables and a script."""
