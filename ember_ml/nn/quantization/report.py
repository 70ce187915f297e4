"""What a quantization did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QuantizationReport:
    """Layers and memory of a quantization; `str(report)` is a summary in a few lines.

    Attributes:
        bits: Bits per weight.
        group_size: Number of consecutive weights with one scale.
        quantized: Names of the quantized layers.
        kept: Name of each dense layer and embedding that was not quantized -> reason.
        bytes_before: Memory of the parameters and buffers of the model before.
        bytes_after: Memory of the parameters and buffers of the quantized model.
    """

    bits: int
    group_size: int
    quantized: tuple[str, ...]
    kept: dict[str, str]
    bytes_before: int
    bytes_after: int

    @property
    def ratio(self) -> float:
        """Memory of the quantized model relative to that before."""
        return self.bytes_after / self.bytes_before if self.bytes_before else 1.0

    def __str__(self) -> str:
        count = len(self.quantized)
        lines = [
            f"{count} layer{'' if count == 1 else 's'} with {self.bits}-bit weights in groups of "
            f"{self.group_size}",
            f"memory: {self.bytes_before:,} -> {self.bytes_after:,} bytes ({self.ratio:.3f}x)",
        ]
        lines += [f"not quantized: {name or '(model)'} ({why})" for name, why in self.kept.items()]
        return "\n".join(lines)
