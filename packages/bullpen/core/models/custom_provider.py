"""custom_providers: other services behind a known command line, with their address and key."""

from __future__ import annotations

from sqlalchemy import Text

from bullpen.core.models.base import Millis, column, table

CUSTOM_PROVIDERS = table(
    "custom_providers",
    lambda: [
        column("id", Text, primary_key=True),
        column("name", Text),
        column("harness", Text),
        column("base_url", Text),
        # A secret: never shown, and given to nobody but the command line that needs it.
        column("api_key", Text),
        column("model", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
    ],
)
"""What `custom:<id>` stands for."""
