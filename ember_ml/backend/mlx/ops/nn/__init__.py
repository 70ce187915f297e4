"""Kernels for neural networks."""
