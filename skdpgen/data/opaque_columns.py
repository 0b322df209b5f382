"""Columns whose cells nothing ever looks at: keys and free text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..exceptions import SchemaError
from .columns import Column

__all__ = ["Id", "Text"]


@dataclass(frozen=True)
class Id(Column):
    """A key without meaning (a name, a number of a record); surrogate keys come out.

    No encoder and no mechanism ever sees its cells.

    Parameters
    ----------
    metadata : mapping, optional
        See :class:`~skdpgen.data.Column`.

    Examples
    --------
    >>> Id().to_dict()
    {'kind': 'id'}
    """

    kind: ClassVar[str] = "id"
    families: ClassVar[frozenset[str]] = frozenset({"int", "float", "text", "object", "category"})


@dataclass(frozen=True)
class Text(Column):
    """Free text; a public constant comes out.

    No encoder and no mechanism ever sees its cells.

    Parameters
    ----------
    constant : str, default=""
        What stands in every synthetic row.
    metadata : mapping, optional
        See :class:`~skdpgen.data.Column`.

    Examples
    --------
    >>> Text(constant="(removed)").to_dict()
    {'kind': 'text', 'constant': '(removed)'}
    """

    constant: str = ""

    kind: ClassVar[str] = "text"
    families: ClassVar[frozenset[str]] = frozenset({"text", "object", "category"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.constant, str):
            raise SchemaError("constant must be a text.")
