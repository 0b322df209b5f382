"""The layout of an encoded row: which matrix columns are numeric, which form one-hot groups.

It is public (made from the schema alone) and shared by the preprocessor, the feature maps and
the generators, which is why it lives beside them and imports none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["EncodedLayout"]


@dataclass(frozen=True)
class EncodedLayout:
    """Where things stand in an encoded row.

    Parameters
    ----------
    width : int
        Number of columns of the encoded matrix.
    numeric : tuple of int
        Positions that hold one number in [0, 1].
    groups : tuple of (int, int)
        Half-open column ranges ``(start, stop)``, each a one-hot group of ``stop - start >= 2``
        columns.
    image_shape : tuple of int or None
        ``(height, width)`` where the numeric positions are the pixels of an image, in row-major
        order.

    Raises
    ------
    ValueError
        If the positions do not partition ``range(width)``.

    Examples
    --------
    >>> layout = EncodedLayout(width=4, numeric=(0,), groups=((1, 4),))
    >>> layout.group_widths
    (3,)
    >>> EncodedLayout.from_dict(layout.to_dict()) == layout
    True
    """

    width: int
    numeric: tuple[int, ...]
    groups: tuple[tuple[int, int], ...]
    image_shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        covered = sorted([*self.numeric, *(i for a, b in self.groups for i in range(a, b))])
        if covered != list(range(self.width)):
            raise ValueError("numeric positions and one-hot groups must partition the columns.")
        if any(b - a < 2 for a, b in self.groups):
            raise ValueError("a one-hot group needs at least two columns.")
        if self.image_shape is not None and (
            self.groups or self.image_shape[0] * self.image_shape[1] != len(self.numeric)
        ):
            raise ValueError("image_shape must account for every column.")

    @property
    def group_widths(self) -> tuple[int, ...]:
        """Widths of the one-hot groups, in order."""
        return tuple(b - a for a, b in self.groups)

    @property
    def categorical(self) -> tuple[int, ...]:
        """Positions of all one-hot columns, group by group."""
        return tuple(i for a, b in self.groups for i in range(a, b))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "width": self.width,
            "numeric": list(self.numeric),
            "groups": [list(g) for g in self.groups],
            "image_shape": None if self.image_shape is None else list(self.image_shape),
        }

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> EncodedLayout:
        """The inverse of :meth:`to_dict`."""
        shape = d.get("image_shape")
        return cls(
            width=int(d["width"]),
            numeric=tuple(int(i) for i in d["numeric"]),
            groups=tuple((int(a), int(b)) for a, b in d["groups"]),
            image_shape=None if shape is None else (int(shape[0]), int(shape[1])),
        )
