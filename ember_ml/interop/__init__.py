"""Ember modules inside PyTorch and MLX programs, and the reverse."""

from typing import TYPE_CHECKING

from ember_ml._core import namespaces as _namespaces

if TYPE_CHECKING:
    from ember_ml.interop.exporting import Export as Export
    from ember_ml.interop.exporting import ExportError as ExportError
    from ember_ml.interop.exporting import export as export
    from ember_ml.interop.mlx_layers import MLXLayer as MLXLayer
    from ember_ml.interop.mlx_layers import from_mlx as from_mlx
    from ember_ml.interop.mlx_modules import MLXModule as MLXModule
    from ember_ml.interop.mlx_modules import to_mlx as to_mlx
    from ember_ml.interop.nir_graphs import from_nir as from_nir
    from ember_ml.interop.nir_graphs import to_nir as to_nir
    from ember_ml.interop.nir_nodes import NIRError as NIRError
    from ember_ml.interop.torch_layers import TorchLayer as TorchLayer
    from ember_ml.interop.torch_layers import from_torch as from_torch
    from ember_ml.interop.torch_modules import EmberModule as EmberModule
    from ember_ml.interop.torch_modules import to_torch as to_torch

__getattr__, __dir__ = _namespaces.attach(
    __name__,
    {
        "EmberModule": "ember_ml.interop.torch_modules",
        "Export": "ember_ml.interop.exporting",
        "ExportError": "ember_ml.interop.exporting",
        "MLXLayer": "ember_ml.interop.mlx_layers",
        "MLXModule": "ember_ml.interop.mlx_modules",
        "NIRError": "ember_ml.interop.nir_nodes",
        "TorchLayer": "ember_ml.interop.torch_layers",
        "export": "ember_ml.interop.exporting",
        "from_mlx": "ember_ml.interop.mlx_layers",
        "from_nir": "ember_ml.interop.nir_graphs",
        "from_torch": "ember_ml.interop.torch_layers",
        "to_mlx": "ember_ml.interop.mlx_modules",
        "to_nir": "ember_ml.interop.nir_graphs",
        "to_torch": "ember_ml.interop.torch_modules",
    },
)
