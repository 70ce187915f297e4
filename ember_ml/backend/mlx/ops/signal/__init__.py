"""Signal processing: windows, convolutions, pooling."""
