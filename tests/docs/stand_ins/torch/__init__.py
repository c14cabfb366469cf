"""What `examples/torch_stream.py` and its guide need of PyTorch, for machines without it."""
