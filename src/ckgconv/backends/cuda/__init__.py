"""What makes a model fast on a CUDA GPU: fused passes, batches of static capacity, several streams."""
