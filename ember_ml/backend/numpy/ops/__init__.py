"""Native functions, mirrored file by file with `ember_ml.ops`."""
