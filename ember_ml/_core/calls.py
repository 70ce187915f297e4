"""Fast paths of a call, one for each form of an op's signature.

A call is a closure over plain data (a key, dictionaries of functions) that every framework's
compiler can trace. The usual call, of tensors with one backend and dtype, costs a lookup and a
wrapper. Everything else (scalars of another kind, lists, promotion, two backends, an error) goes to
`recover`. While a tape is open in any thread, calls go through `traced`: each path takes the list
of open tapes, which is empty otherwise, or `()` for the variant that never looks.

The four lines that create the resulting tensor (`_new(EmberTensor)` and its three slots) are
written out in every path. A helper function would add 0.03 us per op to the
0.22 us that dispatch costs on a unary op (NumPy, Python 3.11), and torch.compile would trace it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from ember_ml._core import runtime
from ember_ml._core.dtype import EmberDType
from ember_ml._core.errors import EmberError
from ember_ml._core.op import OPS, Op
from ember_ml._core.recording import current
from ember_ml._core.tensor import EmberTensor, wrap

_new = object.__new__
_tag_of = runtime.TAG_OF
_dtype_of_tag = runtime.DTYPE_OF_TAG
_integer_tags = runtime.INTEGER_TAGS
_native_of = runtime.NATIVE
_INT32 = 2**31
_MISSING: Any = object()
_RAW = (TypeError, ValueError, LookupError, AttributeError, ZeroDivisionError)
_FAILURES = (*_RAW, RuntimeError, ArithmeticError, AssertionError, MemoryError, ImportError)
"""Errors of native functions. Others are control flow, such as that of torch's checkpointing."""
Tapes: TypeAlias = Sequence[Any]
Kernels: TypeAlias = dict[str, tuple[Callable[..., Any], str | None]]


def recover(
    key: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception | None = None
) -> Any:
    """Convert the operands and call again; raise the explained error if they need no conversion."""
    from ember_ml._core import align, explain

    if error is not None and not isinstance(error, _FAILURES):
        raise error
    op = OPS[key]
    if error is None or not align.is_aligned(op, args, kwargs):
        args, kwargs = align.align(op, args, kwargs)
        return op.function(*args, **kwargs)
    if op.body is not None and not explain.lacks_memory(error):
        try:
            op.body(*args, **kwargs)
        except _RAW as reference:  # the body is the reference for errors as it is for values
            return explained(key, args, kwargs, reference)
    raise explain.explain(op, args, kwargs, error) from error


def explained(
    key: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> NoReturn:
    """Raise an error of a composite's body; errors of Python are replaced by an explanation."""
    from ember_ml._core import explain

    if isinstance(error, EmberError):
        raise error
    raise explain.explain(OPS[key], args, kwargs, error) from error


def by_body(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite's body: the native function has returned None to leave the call to it."""
    body: Any = OPS[key].body
    try:
        return body(*args, **kwargs)
    except _RAW as error:
        return explained(key, args, kwargs, error)


def traced(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op while some thread has a tape open."""
    mine = current()
    op = OPS[key]
    return mine[-1].call(op, args, kwargs, mine) if mine else op.plain(*args, **kwargs)


def traced_unary(key: str, x: Any) -> Any:
    """Call a unary op while some thread has a tape open."""
    mine = current()
    if len(mine) == 1 and (quick := mine[0].quick) is not None:
        out = quick.unary(OPS[key], x)
        if out is not None:
            return out
    return traced(key, (x,), {})


def traced_binary(key: str, x: Any, y: Any) -> Any:
    """Call a binary op while some thread has a tape open."""
    mine = current()
    if len(mine) == 1 and (quick := mine[0].quick) is not None:
        out = quick.binary(OPS[key], x, y)
        if out is not None:
            return out
    return traced(key, (x, y), {})


def _remember(table: Kernels, tag: str, kernel: Callable[..., Any], result: str) -> None:
    """Store the tag of an op's results; a change of precision is not the op's own.

    Inside `torch.autocast`, torch returns floats of another size.
    """
    x, y = _dtype_of_tag[tag], _dtype_of_tag[result]
    if x is y or not (x.is_floating and y.is_floating):
        table[tag] = kernel, result


def unary(op: Op, tapes: Tapes) -> Callable[..., Any]:
    """Return the fast path of an op of one tensor without other parameters."""
    if op.names != ("x",):
        return general(op, tapes)
    key, kernels = op.key, op.kernels

    def call(x: Any) -> Any:
        if tapes:
            return traced_unary(key, x)
        try:
            kernel, tag = kernels[x._tag]
            out = kernel(x._data)
        except Exception as error:
            return recover(key, (x,), {}, error)
        if tag is None:
            tag = _tag_of[x._backend][out.dtype]
            _remember(kernels, x._tag, kernel, tag)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = x._backend
        tensor._tag = tag
        return tensor

    return call


def binary(op: Op, tapes: Tapes) -> Callable[..., Any]:
    """Return the fast path of an op of two tensors without other parameters."""
    if op.names != ("x", "y"):
        return several(op, tapes)
    key, kernels = op.key, op.kernels
    with_scalar, floats, small = _with_scalar(op), op.right.floats, op.right.small

    def call(x: Any, y: Any) -> Any:
        if tapes:
            return traced_binary(key, x, y)
        if type(x) is EmberTensor and type(y) is EmberTensor and x._tag is y._tag:
            try:
                kernel, tag = kernels[x._tag]
                out = kernel(x._data, y._data)
            except Exception as error:
                return recover(key, (x, y), {}, error)
            if tag is None:
                tag = _tag_of[x._backend][out.dtype]
                _remember(kernels, x._tag, kernel, tag)
            tensor = _new(EmberTensor)
            tensor._data = out
            tensor._backend = x._backend
            tensor._tag = tag
            return tensor
        kind = type(y)
        table = floats if kind is float else small if kind is int and 0 <= y <= 127 else None
        if table is not None and type(x) is EmberTensor and x._tag in table:
            try:
                kernel, tag = table[x._tag]
                out = kernel(x._data, y)
            except Exception as error:
                return recover(key, (x, y), {}, error)
            if tag is None:
                tag = _tag_of[x._backend][out.dtype]
                _remember(table, x._tag, kernel, tag)
            tensor = _new(EmberTensor)
            tensor._data = out
            tensor._backend = x._backend
            tensor._tag = tag
            return tensor
        return with_scalar(x, y)

    return call


def _with_scalar(op: Op) -> Callable[..., Any]:
    """Return the path of a binary op of a tensor and a Python number or a Parameter."""
    key, plain = op.key, op.kernels
    right_float, right_small, right_wide = op.right.floats, op.right.small, op.right.wide
    left_float, left_small, left_wide = op.left.floats, op.left.small, op.left.wide

    def call(x: Any, y: Any) -> EmberTensor:
        try:
            if isinstance(x, EmberTensor):
                if type(y) is float:
                    table = right_float
                elif type(y) is int and -_INT32 <= y < _INT32:
                    table = right_small if 0 <= y <= 127 else right_wide
                elif isinstance(y, EmberTensor) and x._tag is y._tag:  # a Parameter
                    return wrap(plain[x._tag][0](x._data, y._data), x._backend)
                else:
                    return recover(key, (x, y), {})
                kernel, tag = table[x._tag]
                out, like = kernel(x._data, y), x
            else:
                if type(x) is float:
                    table = left_float
                elif type(x) is int and -_INT32 <= x < _INT32:
                    table = left_small if 0 <= x <= 127 else left_wide
                else:
                    return recover(key, (x, y), {})
                kernel, tag = table[y._tag]
                out, like = kernel(x, y._data), y
        except (KeyError, AttributeError):  # no fast path for this dtype, or not a tensor
            return recover(key, (x, y), {})
        except Exception as error:
            return recover(key, (x, y), {}, error)
        if tag is None:
            tag = _tag_of[like._backend][out.dtype]
            _remember(table, like._tag, kernel, tag)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = like._backend
        tensor._tag = tag
        return tensor

    return call


def general(op: Op, tapes: Tapes) -> Callable[..., Any]:
    """Return the fast path of an op of one tensor and other arguments."""
    key, kernels, output = op.key, op.kernels, op.output
    dtype_at = op.names.index("dtype") - 1 if "dtype" in op.names else len(op.names)

    def call(x: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if tapes:
            return traced(key, args if x is _MISSING else (x, *args), kwargs)
        try:
            kernel, tag = kernels[x._tag]
            if not kwargs and len(args) <= dtype_at:
                out = kernel(x._data, *args)
            elif "dtype" in kwargs or len(args) > dtype_at:
                args, kwargs = _native_dtype(args, kwargs, dtype_at, x._backend)
                out = kernel(x._data, *args, **kwargs)
                return wrap(out, x._backend) if output is None else output(out, x._backend)
            else:
                out = kernel(x._data, *args, **kwargs)
        except Exception as error:
            return recover(key, args if x is _MISSING else (x, *args), kwargs, error)
        if output is not None:
            return output(out, x._backend)
        if tag is None:
            tag = _tag_of[x._backend][out.dtype]
            _remember(kernels, x._tag, kernel, tag)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = x._backend
        tensor._tag = tag
        return tensor

    return call


def composite(op: Op, tapes: Tapes) -> Callable[..., Any]:
    """Return the path of a composite, with its body for backends without a native function."""
    key, kernels, output, natives = op.key, op.kernels, op.output, op.natives
    body: Any = op.body
    dtype_at = op.names.index("dtype") - 1 if "dtype" in op.names else None

    def call(x: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if tapes:
            return traced(key, args if x is _MISSING else (x, *args), kwargs)
        if not isinstance(x, EmberTensor):
            return recover(key, args if x is _MISSING else (x, *args), kwargs)
        backend = x._backend
        if backend not in natives:
            if x._tag not in kernels:
                return recover(key, (x, *args), kwargs)
            try:
                return body(x, *args, **kwargs)
            except _RAW as error:
                return explained(key, (x, *args), kwargs, error)
        try:
            kernel, tag = kernels[x._tag]
            if dtype_at is not None and ("dtype" in kwargs or len(args) > dtype_at):
                args, kwargs = _native_dtype(args, kwargs, dtype_at, backend)
                out = kernel(x._data, *args, **kwargs)
                return wrap(out, backend) if output is None else output(out, backend)
            out = kernel(x._data, *args, **kwargs) if kwargs else kernel(x._data, *args)
        except Exception as error:
            return recover(key, (x, *args), kwargs, error)
        if out is None:
            return by_body(key, (x, *args), kwargs)
        if output is not None:
            return output(out, backend)
        if tag is None:
            tag = _tag_of[backend][out.dtype]
            _remember(kernels, x._tag, kernel, tag)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = backend
        tensor._tag = tag
        return tensor

    return call


def _native_dtype(
    args: tuple[Any, ...], kwargs: dict[str, Any], at: int, backend: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with the dtype replaced by the backend's."""
    given = args[at] if len(args) > at else kwargs.get("dtype")
    if given is None:
        return args, kwargs
    name = given.name if type(given) is EmberDType else given
    native = _native_of[backend].get(name) if type(name) is str else None
    if native is None:
        from ember_ml._core.convert import as_dtype

        native = runtime.native_dtype(backend, as_dtype(given))
    if len(args) > at:
        return (*args[:at], native, *args[at + 1 :]), kwargs
    return args, {**kwargs, "dtype": native}


def several(op: Op, tapes: Tapes) -> Callable[..., Any]:
    """Return the fast path of an op of several tensors, some of which may be None."""
    key, kernels, output, body, natives = op.key, op.kernels, op.output, op.body, op.natives
    count = len(op.roles)
    is_operand = tuple(role == "operand" for role in op.roles)
    is_index = tuple(role == "index" for role in op.roles)
    names = frozenset(op.names[:count])
    pairs = all(is_operand[:2]) and output is None

    def call(*args: Any, **kwargs: Any) -> Any:
        if tapes:
            return traced(key, args, kwargs)
        if pairs and len(args) == 2 and not kwargs and type(args[0]) is EmberTensor:
            x, y = args  # the usual call, such as linear(x, weight), without the loop below
            if isinstance(y, EmberTensor) and x._tag is y._tag and x._backend in natives:
                try:
                    out = kernels[x._tag][0](x._data, y._data)
                except Exception as error:
                    return recover(key, args, kwargs, error)
                if out is None:
                    return by_body(key, args, kwargs)
                tensor = _new(EmberTensor)
                tensor._data = out
                tensor._backend = x._backend
                tensor._tag = _tag_of[x._backend][out.dtype]
                return tensor
        if kwargs and not names.isdisjoint(kwargs):
            return recover(key, args, kwargs)
        backend: Any = None
        tag: Any = None
        native = list(args)
        try:
            for at, value in enumerate(args[:count]):
                if value is None:
                    continue
                if value._tag is not tag:
                    if backend is None:
                        backend = value._backend
                    elif value._backend != backend:
                        return recover(key, args, kwargs)
                    if is_operand[at]:
                        if tag is not None:
                            return recover(key, args, kwargs)
                        tag = value._tag
                if is_index[at] and value._tag not in _integer_tags:
                    return recover(key, args, kwargs)
                native[at] = value._data
        except AttributeError:  # not a tensor
            return recover(key, args, kwargs)
        if tag is None:
            return recover(key, args, kwargs)
        if body is not None and backend not in natives:
            if tag not in kernels:
                return recover(key, args, kwargs)
            try:
                return body(*args, **kwargs)
            except _RAW as error:
                return explained(key, args, kwargs, error)
        try:
            out = kernels[tag][0](*native, **kwargs) if kwargs else kernels[tag][0](*native)
        except Exception as error:
            return recover(key, args, kwargs, error)
        if out is None and body is not None:
            return by_body(key, args, kwargs)
        if output is not None:
            return output(out, backend)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = backend
        tensor._tag = _tag_of[backend][out.dtype]
        return tensor

    return call


def sequence(op: Op, tapes: Tapes) -> Callable[..., Any]:
    """Return the fast path of an op whose first argument is a sequence of tensors."""
    key, kernels, output, body, natives = op.key, op.kernels, op.output, op.body, op.natives

    def call(tensors: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if tapes:
            return traced(key, args if tensors is _MISSING else (tensors, *args), kwargs)
        if tensors is _MISSING:
            return recover(key, args, kwargs)
        kind = type(tensors)
        if not (kind is list or kind is tuple) or not tensors:
            return recover(key, (tensors, *args), kwargs)
        native = []
        try:
            tag, backend = tensors[0]._tag, tensors[0]._backend
            for part in tensors:
                if part._tag is not tag:
                    return recover(key, (tensors, *args), kwargs)
                native.append(part._data)
        except AttributeError:  # not a tensor
            return recover(key, (tensors, *args), kwargs)
        if body is not None and backend not in natives:
            if tag not in kernels:
                return recover(key, (tensors, *args), kwargs)
            try:
                return body(tensors, *args, **kwargs)
            except _RAW as error:
                return explained(key, (tensors, *args), kwargs, error)
        try:
            kernel, result = kernels[tag]
            out = kernel(native, *args, **kwargs) if kwargs else kernel(native, *args)
        except Exception as error:
            return recover(key, (tensors, *args), kwargs, error)
        if output is not None:
            return output(out, backend)
        if result is None:
            result = _tag_of[backend][out.dtype]
            _remember(kernels, tag, kernel, result)
        tensor = _new(EmberTensor)
        tensor._data = out
        tensor._backend = backend
        tensor._tag = result
        return tensor

    return call


def by_roles(op: Op, tapes: Tapes) -> Callable[..., Any]:
    """Return the fast path that fits the op's parameters."""
    if op.roles == ("sequence",):
        return sequence(op, tapes)
    if len(op.roles) > 1:
        return several(op, tapes)
    return general(op, tapes) if op.body is None else composite(op, tapes)
