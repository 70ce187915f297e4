"""Alias of the module classes of `ember_ml.nn`, and of its activations."""

from ember_ml.nn import Buffer as Buffer
from ember_ml.nn import Model as Model
from ember_ml.nn import Module as Module
from ember_ml.nn import ModuleDict as ModuleDict
from ember_ml.nn import ModuleList as ModuleList
from ember_ml.nn import Parameter as Parameter
from ember_ml.nn import Sequential as Sequential
from ember_ml.nn.modules import activations as activations
