"""Stand-ins for packages that an engine imports and an isolated environment lacks, so that its parser can be built.

Runs on its own inside that environment, beside `probe.py`; it may import nothing but the standard library.
Only a package that the engine's own files import, and that is not installed, is replaced: by a module whose every
attribute is an inert class. Numbers and texts that come from such a package are therefore unknown, which is why
`probe.py` records the names of all stand-ins in a schema's provenance.
"""

from __future__ import annotations

import abc
import importlib.abc
import importlib.machinery
import importlib.metadata
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

# Present or absent, these change which hardware an engine believes it runs on.
_HARDWARE = {"torch_npu", "torch_musa", "torch_xla", "torch_mlu", "habana_frameworks", "amdsmi", "torchada"}
_HARDWARE_ATTRIBUTES = {"npu", "musa", "mlu", "hpu", "xla"}
_VERSION = "9999.0.0"


class _Inert(abc.ABCMeta):
    """Type of every stand-in: any attribute exists, any operation returns something harmless and false."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **_: Any) -> Any:
        return super().__new__(mcs, name, bases, body)

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, body)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name not in {"__func__", "__class_validators__"}:
            raise AttributeError(name)
        if name == "get_current_target":
            return _no_device
        made = _Inert(name, (Standin,), {})
        setattr(cls, name, made)
        return made

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return args[0]  # used as a decorator
        return type.__call__(cls)

    def register(cls, *args: Any, **_: Any) -> Any:
        return args[-1] if args else cls

    def __or__(cls, other: Any) -> Any:
        return typing.Union[cls, other]  # noqa: UP007

    def __ror__(cls, other: Any) -> Any:
        return typing.Union[other, cls]  # noqa: UP007

    def _self(cls, *_: Any) -> Any:
        return cls

    def _other(cls, other: Any) -> Any:
        return other

    def _nothing(cls, *_: Any) -> None:
        return None

    def _false(cls, *_: Any) -> bool:
        return False

    def _zero(cls) -> int:
        return 0

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    __getitem__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _self
    __add__ = __radd__ = _other
    __setitem__ = __delitem__ = _nothing
    __bool__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = _false
    __int__ = __index__ = __len__ = _zero

    def __float__(cls) -> float:
        return 0.0


class Standin(metaclass=_Inert):
    """An object of an absent package."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __init_subclass__(cls, **_: Any) -> None:
        pass

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return args[0]
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __add__

    def __getitem__(self, _: Any) -> Any:
        return self

    def __bool__(self) -> bool:
        return False

    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = lambda self, _: False

    def __int__(self) -> int:
        return 0

    __index__ = __len__ = __int__

    def __float__(self) -> float:
        return 0.0

    def __str__(self) -> str:
        return ""

    __fspath__ = __str__


def _no_device(*_: Any, **__: Any) -> Any:
    raise RuntimeError("no device here")


def _infer_schema(function: Any = None, *_: Any, **__: Any) -> str:
    """`torch.library.infer_schema` from annotations alone: engines compare two such texts when they start."""

    def kind(hint: Any) -> str:
        return "Tensor" if "Tensor" in str(getattr(hint, "__name__", hint)) else "int"

    signature = inspect.signature(function)
    takes = ", ".join(f"{kind(p.annotation)} {name}" for name, p in signature.parameters.items())
    gives = signature.return_annotation
    if gives is None or gives is inspect.Signature.empty:
        out = "()"
    elif typing.get_origin(gives) is tuple:
        out = "(" + ", ".join(kind(hint) for hint in typing.get_args(gives)) + ")"
    else:
        out = kind(gives)
    return f"({takes}) -> {out}"


class _Module(types.ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return _VERSION
        if name.startswith("__") or (self.__name__ == "torch" and name in _HARDWARE_ATTRIBUTES):
            raise AttributeError(name)
        if name == "infer_schema":
            return _infer_schema
        if name == "get_current_target":
            return _no_device
        made = _Inert(name, (Standin,), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last finder on `sys.meta_path`: answers for packages that only the engine asks for.

    Attributes:
        used: top-level names that got a stand-in.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.used: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, rest = name.partition(".")
        if root in sys.stdlib_module_names or root in _HARDWARE or name == self.engine:
            return None
        compiled = root == self.engine and rest.startswith(("_", f"{self.engine}_"))  # extension modules
        if rest and not compiled and not isinstance(sys.modules.get(name.rpartition(".")[0]), _Module):
            return None
        if root == self.engine and not compiled:
            return None
        frame = sys._getframe(1)
        while frame.f_back and (
            frame.f_code.co_filename.startswith("<frozen") or "importlib" in frame.f_code.co_filename
        ):
            frame = frame.f_back
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in {self.engine, "__main__"}:
            return None  # an installed package probes for an optional one: let it find nothing
        self.used.add(root)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def install(engine: str) -> Finder:
    """Put the finder in place, and let engines ask for the version of a package that is not there."""
    finder = Finder(engine)
    sys.meta_path.append(finder)
    known = importlib.metadata.version

    def version(distribution_name: str) -> str:
        try:
            return known(distribution_name)
        except importlib.metadata.PackageNotFoundError:
            return _VERSION

    importlib.metadata.version = version
    return finder
