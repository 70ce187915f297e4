"""What changes parameters, and the gradients it goes by."""
