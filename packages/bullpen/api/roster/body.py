"""What comes in of an agent, a team or a provider.

What is not sent stays as it is; fields that are not known are passed over, for the reference's
clients send more than is read here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(max_length=200)]
Place = Annotated[str, Field(max_length=4096)]


class Body(BaseModel):
    """What is to be changed."""

    model_config = ConfigDict(extra="ignore")
