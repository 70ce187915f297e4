"""Values of tensors that only one thread sees.

A gradient replaces the values of parameters by traced ones while a function runs. Another thread
that uses the same parameters must not see these. For as long, the tensors belong to a class whose
slots are properties that look up the thread; other tensors cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import get_ident
from typing import Any, NamedTuple

from ember_ml._core.errors import ConcurrentUseError
from ember_ml._core.tensor import EmberTensor


class _Public(NamedTuple):
    """What other threads than the owner see."""

    owner: int
    data: Any
    backend: str
    tag: str


_public: dict[int, _Public] = {}  # by the id of a tensor
_classes: dict[type[EmberTensor], type[EmberTensor]] = {}


def make_private(tensors: Iterable[EmberTensor]) -> list[EmberTensor]:
    """Let only this thread see changes of tensors from now on.

    Args:
        tensors: The tensors. Another thread may keep using them, but not change them.

    Returns:
        The tensors to pass to `make_public`; others were private to this thread already.
    """
    private: list[EmberTensor] = []
    for tensor in tensors:
        now = _Public(get_ident(), tensor._data, tensor._backend, tensor._tag)
        known = _public.setdefault(id(tensor), now)
        if known is now:
            private.append(tensor)
            tensor.__class__ = _private_class(type(tensor))
        elif known.owner != now.owner:
            make_public(private)
            raise _in_use()
    return private


def make_public(tensors: Sequence[EmberTensor]) -> None:
    """Let all threads see the values of tensors again.

    Args:
        tensors: Tensors that `make_private` returned, with the values from before.
    """
    for tensor in tensors:  # a thread that still looks for the entry finds the same value
        tensor.__class__ = type(tensor).__bases__[0]
        del _public[id(tensor)]


def _private_class(cls: type[EmberTensor]) -> type[EmberTensor]:
    """Return the class whose slots are properties; the layout is the same."""
    known = _classes.get(cls)
    if known is None:
        slots = {name: _slot(name, at) for at, name in enumerate(_Public._fields) if at}
        members = {f"_{name}": slot for name, slot in slots.items()}
        names = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        known = _classes[cls] = type(cls.__name__, (cls,), {**members, **names})
    return known


def _slot(name: str, at: int) -> property:
    """Return a property for a slot: the owner uses the slot, others read the public value."""
    descriptor: Any = vars(EmberTensor)[f"_{name}"]
    read, write = descriptor.__get__, descriptor.__set__

    def get(self: EmberTensor) -> Any:
        public = _public.get(id(self))
        return read(self) if public is None or public[0] == get_ident() else public[at]

    def set_(self: EmberTensor, value: Any) -> None:
        public = _public.get(id(self))
        if public is not None and public[0] != get_ident():
            raise _in_use()
        write(self, value)

    return property(get, set_)


def _in_use() -> ConcurrentUseError:
    return ConcurrentUseError(
        "a parameter or buffer cannot be changed while another thread computes gradients or "
        "evaluates with other weights; switch the model to inference mode, which changes no "
        "buffers, or give each thread its own copy of the model"
    )
