"""ONNX, https://onnx.ai: a model of any kind as two graphs in one file or a directory, and onnxruntime as an engine."""
