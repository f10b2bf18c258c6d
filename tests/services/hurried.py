"""Imported by a command before it begins: it does not wait for long for the supervisor's answer."""

from __future__ import annotations

from bullpen.ops.services import supervisor

supervisor.ANSWER_SECONDS = 1.0
