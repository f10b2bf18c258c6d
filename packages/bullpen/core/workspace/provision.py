"""Puts an agent's directory in order, whatever stands in the way."""

from __future__ import annotations

import logging

from bullpen.core.settings import Settings
from bullpen.core.workspace.templates import write_templates

log = logging.getLogger(__name__)


def prepare_directory(settings: Settings, agent: str) -> bool:
    """Furnish it; whether anything was put there. Its next run tries again what could not be."""
    home = settings.workspace / agent
    try:
        if home.is_symlink():
            return False
        return bool(write_templates(home))
    except OSError as error:
        log.warning("the directory of %s cannot be put in order: %s", agent, error.strerror)
        return False
