"""What an export wrote, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.model.units import format_bytes
from trnscope.report.export import ExportedFile
from trnscope.report.table import Column, Table
from trnscope.report.text import plural
from trnscope.report.view import warning


def exported_lines(files: tuple[ExportedFile, ...]) -> Iterator[Text]:
    """One row a file; says where arguments could not be carried over."""
    rows = [[str(file.path), f"{file.num_rows:,}", format_bytes(file.size_bytes)] for file in files]
    yield from Table("file", [Column("rows or events"), Column("size")], rows).lines(None)
    left_out = sum(file.num_args_left_out for file in files)
    if left_out:
        yield warning(f"{plural(left_out, 'event')} written without args, which were unreadable")
