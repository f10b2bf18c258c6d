"""Shorter waits than people have: how long a look-up gives the platform, and how often it looks."""

from __future__ import annotations

from importlib import import_module

from bullpen.channels import Platform

QUICK_MS = 500
SWEEP_SECONDS = 2.0

WAITS = {
    "slack": (("slack.platform", "SETTLED_MS"), ("slack.files", "FILE_SETTLED_MS")),
    "sms": (("twilio.platform", "SETTLED_MS"),),
    "whatsapp": (("twilio.platform", "SETTLED_MS"),),
    "discord": (),
    "telegram": (),
    "email": (),
}


def waits(channel: str) -> list[tuple[object, str, float]]:
    """The constants of a channel and their values for tests: module, name and value."""
    names = (("outgoing.recovery", "LATER_MS"), *WAITS[channel])
    found: list[tuple[object, str, float]] = [
        (import_module(f"bullpen.channels.{module}"), name, QUICK_MS) for module, name in names
    ]
    found.append((Platform, "settled_ms", QUICK_MS))
    return [*found, (import_module("bullpen.channels.catch_up"), "SWEEP_SECONDS", SWEEP_SECONDS)]
