"""Functions made of functions: gradients, batching, compilation."""
