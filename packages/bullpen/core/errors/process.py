"""A process cannot go on like this."""

from __future__ import annotations

from bullpen.core.errors.base import BullpenError


class UnsafeSecret(BullpenError):
    """A secret that is blank, or that others know."""

    code = "unsafe_secret"
    hint = "Delete the file; a new token is made at the next start."


class Overloaded(BullpenError):
    """As many wait or listen as may."""

    code = "overloaded"
    exit_status = 75
    hint = "Try again in a while."


class NoSupervisor(BullpenError):
    """What was asked is the supervisor's to do, and none runs."""

    code = "no_supervisor"
    hint = "Start Bullpen with `bullpen up`."


class UnsafeDirectory(BullpenError):
    """A directory that must be the owner's alone, and is not."""

    code = "unsafe_directory"
    hint = "Remove the directory, or give it to yourself and let nobody else write to it."


class AddressTaken(BullpenError):
    """Where the API is to listen another program does, or none of this machine's may."""

    code = "address_taken"
    hint = "Stop the other program, or choose another port with the setting `api_port`."


class RunsAlready(BullpenError):
    """A second process of a service that may have one only."""

    code = "runs_already"
    hint = "`bullpen status` shows what runs; `bullpen down` stops it."
