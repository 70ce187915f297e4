"""The registry of components: everything that a config can name.

A component's name is "kind/name", such as "layers/dense" or "optimizers/adamw". `register` adds a
class, `create` builds a component, `available` lists them. Other packages add components through
the entry point group `ember_ml.plugins`.
"""

from ember_ml.registry.base import Entry as Entry
from ember_ml.registry.base import RegistrationError as RegistrationError
from ember_ml.registry.base import Registry as Registry
from ember_ml.registry.base import UnknownComponentError as UnknownComponentError
from ember_ml.registry.components import REGISTRY as REGISTRY
from ember_ml.registry.components import available as available
from ember_ml.registry.components import build as build
from ember_ml.registry.components import get as get
from ember_ml.registry.components import register as register
from ember_ml.registry.creation import create as create
