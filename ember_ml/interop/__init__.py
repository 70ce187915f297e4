"""Ember modules inside PyTorch and MLX programs, and the reverse."""

from ember_ml._core import namespaces as _namespaces

__getattr__, __dir__ = _namespaces.attach(
    __name__,
    {
        "Export": "ember_ml.interop.exporting",
        "ExportError": "ember_ml.interop.exporting",
        "EmberModule": "ember_ml.interop.torch_modules",
        "MLXLayer": "ember_ml.interop.mlx_layers",
        "MLXModule": "ember_ml.interop.mlx_modules",
        "TorchLayer": "ember_ml.interop.torch_layers",
        "export": "ember_ml.interop.exporting",
        "from_mlx": "ember_ml.interop.mlx_layers",
        "from_torch": "ember_ml.interop.torch_layers",
        "to_mlx": "ember_ml.interop.mlx_modules",
        "to_torch": "ember_ml.interop.torch_modules",
    },
)
