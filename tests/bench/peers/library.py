"""The optional third-party library behind a peer."""

from importlib import import_module
from types import ModuleType


def load(module: str) -> ModuleType:
    """Import `module` only now, so that this package can be imported and typed without it."""
    try:
        return import_module(module)
    except ImportError as error:
        message = f"the benchmark peers need {module!r}, which `make bench` installs"
        raise ImportError(message, name=error.name) from error
