"""Selection rules of self-training: which predictions become pseudo-labels."""

from ember_ml.training.selection.adaptive import Adaptive
from ember_ml.training.selection.agreement import Agreement
from ember_ml.training.selection.base import SelectionRule
from ember_ml.training.selection.confidence import Entropy, Margin, Threshold
from ember_ml.training.selection.top_k import TopK

__all__ = ["Adaptive", "Agreement", "Entropy", "Margin", "SelectionRule", "Threshold", "TopK"]
