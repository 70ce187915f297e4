"""Every operation, under one namespace: the array API standard's names and more."""

from ember_ml.ops.elementwise import *
