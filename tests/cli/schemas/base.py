"""What every document has in common: nothing in it that is not said here, and no other types."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A JSON object of a command."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Failure(Document):
    """The document of a command that failed."""

    error: str
    code: str
    hint: str
