"""Requests and errors of Telegram's Bot API as they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from aiohttp import web

Object = dict[str, object]


class Failed(Exception):
    """A method answers with an error."""

    def __init__(self, code: int, description: str, **parameters: object) -> None:
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters

    def answer(self) -> web.Response:
        """The error as Telegram sends it."""
        body: Object = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            body["parameters"] = self.parameters
        return web.json_response(body, status=self.code)


@dataclass(slots=True)
class Upload:
    """A file in a multipart form."""

    name: str
    data: bytes


Parameters = dict[str, str | Upload]


def string(parameters: Parameters, name: str) -> str:
    """A parameter that is no file; empty if it is missing."""
    value = parameters.get(name, "")
    assert isinstance(value, str), f"{name} is a file"
    return value


async def read_parameters(request: web.Request) -> Parameters:
    """The parameters of a form. The body was read already, so multipart is taken apart here."""
    parameters: Parameters = dict(request.query)
    body = await request.read()
    if request.content_type == "application/x-www-form-urlencoded":
        parameters.update(parse_qsl(body.decode(), keep_blank_values=True))
    elif request.content_type == "multipart/form-data":
        boundary = request.headers["Content-Type"].partition("boundary=")[2].strip('"')
        for part in body.split(f"--{boundary}".encode())[1:-1]:
            head, _, content = part[2:-2].partition(b"\r\n\r\n")
            names = dict(
                each.strip().partition("=")[::2]
                for each in head.decode().splitlines()[0].split(";")[1:]
            )
            name = names["name"].strip('"')
            if "filename" in names:
                parameters[name] = Upload(names["filename"].strip('"'), content)
            else:
                parameters[name] = content.decode()
    return parameters
