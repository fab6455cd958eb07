"""Reading a multipart form into memory, without temporary files."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from aanet.web.errors import ServiceError, unusable

_MAX_HEADER_BYTES = 8192  # of one part


async def read_form(request: Request, names: Collection[str]) -> dict[str, bytes]:
    """Return the content of each part of a form; every part must be a file with one of `names`.

    The size is not limited here but by `UploadLimit`.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        message = "Send the images as multipart/form-data with the parts left and right."
        raise ServiceError(415, "not_multipart", message)
    if not options.get(b"boundary"):
        raise _damaged("its Content-Type header has no boundary")
    form = _Form(names)
    try:
        parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": form.on_part_begin,
                "on_header_field": form.on_header_field,
                "on_header_value": form.on_header_value,
                "on_header_end": form.on_header_end,
                "on_headers_finished": form.on_headers_finished,
                "on_part_data": form.on_part_data,
                "on_end": form.on_end,
            },
        )
        async for chunk in request.stream():
            parser.write(chunk)
    except FormParserError:
        raise _damaged("it does not follow the format") from None
    if not form.ended:
        raise _damaged("it has no closing boundary")
    return {name: bytes(content) for name, content in form.parts.items()}


class _Form:
    """Collects the parts of a form; the methods are callbacks of the parser."""

    def __init__(self, names: Collection[str]) -> None:
        self.parts: dict[str, bytearray] = {}
        self.ended = False
        self._names = names
        self._field, self._value = bytearray(), bytearray()  # of the current header
        self._disposition = b""
        self._header_bytes = 0
        self._content = bytearray()

    def on_part_begin(self) -> None:
        self._disposition, self._header_bytes = b"", 0

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._add_to_header(self._field, data[start:end])

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._add_to_header(self._value, data[start:end])

    def on_header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._field.clear()
        self._value.clear()

    def on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise _damaged("a part has no name")
        name = options[b"name"].decode("utf-8", "replace")
        if name not in self._names:
            raise unusable("unknown_part", f"The form has a part other than {', '.join(self._names)}.")
        if b"filename" not in options:
            message = f"The part {name} must be a file (with a filename), not text."
            raise unusable("not_a_file", message)
        if name in self.parts:
            raise unusable("repeated_part", f"The form has the part {name} more than once.")
        self.parts[name] = self._content = bytearray()

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._content += memoryview(data)[start:end]

    def on_end(self) -> None:
        self.ended = True

    def _add_to_header(self, header: bytearray, data: bytes) -> None:
        self._header_bytes += len(data)
        if self._header_bytes > _MAX_HEADER_BYTES:
            raise _damaged("the header of a part is too long")
        header += data


def _damaged(reason: str) -> ServiceError:
    return ServiceError(400, "damaged_form", f"The multipart form cannot be read: {reason}.")
