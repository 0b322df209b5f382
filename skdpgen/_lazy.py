"""Lazy public names (PEP 562), so that importing a package imports none of its modules.

torch alone takes seconds to import. A package that lists its public names here costs nothing
until one of them is used, and a user who never draws a sample never pays for the generator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["attach"]


def attach(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` for a package of lazy names.

    Parameters
    ----------
    package : str
        The package's own ``__name__``.
    names : mapping of str to str
        Public name to the submodule that defines it, relative to the package:
        ``{"Schema": "data.schema"}``. A name that is itself a submodule maps to itself.

    Returns
    -------
    getattr_, dir_, all_ : callable, callable, list of str
        To be assigned to ``__getattr__``, ``__dir__`` and ``__all__`` of the package.

    Notes
    -----
    Type checkers cannot see through ``__getattr__``. A package adds the same names for them
    under ``if TYPE_CHECKING:``, as ``from .schema import Schema as Schema``; a test compares
    the two lists.

    Examples
    --------
    The package's ``__init__`` then reads::

        __getattr__, __dir__, __all__ = attach(__name__, {"Schema": "schema"})

    >>> import skdpgen
    >>> getattr_, dir_, all_ = attach("skdpgen", {"EncodedLayout": "layout", "layout": "layout"})
    >>> all_
    ['EncodedLayout', 'layout']
    >>> getattr_("EncodedLayout").__module__
    'skdpgen.layout'
    >>> getattr_("layout").__name__
    'skdpgen.layout'
    >>> getattr_("nothing")
    Traceback (most recent call last):
        ...
    AttributeError: module 'skdpgen' has no attribute 'nothing'
    """
    public = sorted(names)

    def getattr_(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        submodule = names[name]
        module = import_module(f"{package}.{submodule}")
        value = module if name == submodule else getattr(module, name)
        setattr(sys.modules[package], name, value)  # the next look-up finds it directly
        return value

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return getattr_, dir_, public
