"""One registry of everything that can be named in a configuration.

A component's name is "kind/name": "layers/dense", "optimizers/adamw". `register` puts a class
there, `create` builds one, `available` lists them. Packages of other people add theirs through the
entry point group `ember_ml.plugins`.
"""

from ember_ml.registry.base import Entry as Entry
from ember_ml.registry.base import RegistrationError as RegistrationError
from ember_ml.registry.base import Registry as Registry
from ember_ml.registry.base import UnknownComponentError as UnknownComponentError
from ember_ml.registry.components import REGISTRY as REGISTRY
from ember_ml.registry.components import available as available
from ember_ml.registry.components import build as build
from ember_ml.registry.components import create as create
from ember_ml.registry.components import get as get
from ember_ml.registry.components import register as register
