"""From private tables to encoded rows and back: schema, frames, encoders, preprocessor.

Everything here is a function of one row and of public facts (the schema, the names and dtypes
of a frame). Nothing is learned from rows.
"""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .columns import Boolean as Boolean
    from .columns import Categorical as Categorical
    from .columns import Column as Column
    from .columns import Ordinal as Ordinal
    from .datetime_columns import Datetime as Datetime
    from .encoders import make_encoder as make_encoder
    from .files import read_structure as read_structure
    from .files import read_table as read_table
    from .files import scan_table as scan_table
    from .files import write_table as write_table
    from .frames import FrameTemplate as FrameTemplate
    from .frames import SeriesTemplate as SeriesTemplate
    from .frames import as_table as as_table
    from .frames import iter_chunks as iter_chunks
    from .numeric_columns import Numeric as Numeric
    from .opaque_columns import Id as Id
    from .opaque_columns import Text as Text
    from .preprocessing import TabularPreprocessor as TabularPreprocessor
    from .schema import Schema as Schema

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Boolean": "columns",
        "Categorical": "columns",
        "Column": "columns",
        "Datetime": "datetime_columns",
        "FrameTemplate": "frames",
        "Id": "opaque_columns",
        "Numeric": "numeric_columns",
        "Ordinal": "columns",
        "Schema": "schema",
        "SeriesTemplate": "frames",
        "TabularPreprocessor": "preprocessing",
        "Text": "opaque_columns",
        "as_table": "frames",
        "iter_chunks": "frames",
        "make_encoder": "encoders",
        "read_structure": "files",
        "read_table": "files",
        "scan_table": "files",
        "write_table": "files",
    },
)
