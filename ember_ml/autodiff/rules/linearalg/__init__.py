"""VJP rules of `ember_ml.ops.linearalg`."""
