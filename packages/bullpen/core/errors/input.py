"""What was asked cannot be done as asked."""

from __future__ import annotations

from bullpen.core.errors.base import BullpenError


class InputError(BullpenError):
    """What was asked cannot be done as asked; nothing was written."""

    code = "bad_input"
    exit_status = 2
    hint = "Correct what was given; nothing was written."


class BadText(InputError):
    """A text that cannot be stored."""

    code = "bad_text"
    hint = "Send text in UTF-8, without NUL characters."


class TextTooLong(InputError):
    """A text over the limit."""

    code = "text_too_long"
    hint = "Send a shorter text or attach it as a file; the limit is the setting `message_bytes`."


class BadDelay(InputError):
    """A delay that is not zero or more."""

    code = "bad_delay"
    hint = "Give a delay of zero or more milliseconds."


class DeadlinePassed(InputError):
    """A deadline that is over before the message is stored."""

    code = "deadline_passed"
    hint = "Give a deadline in the future, in milliseconds since 1970 (UTC)."


class BadDeadline(InputError):
    """A deadline further away than any database can tell."""

    code = "bad_deadline"
    hint = "Give a deadline in milliseconds since 1970 (UTC), within the next hundred years."


class BadClaim(InputError):
    """A claim of no message, or for no time."""

    code = "bad_claim"
    hint = "Ask for one message or more, with a lease of one millisecond or more."


class BadName(InputError):
    """An id that is not of the form that its place asks for."""

    code = "bad_name"
    hint = "Use 1 to 32 of a-z, 0-9, - and _, the first a letter or digit."


class BadTeam(InputError):
    """A team that cannot be."""

    code = "bad_team"
    hint = "Give its members, each once, and one of them as the leader."


class BadProvider(InputError):
    """A provider that cannot be reached or paid."""

    code = "bad_provider"
    hint = "Give an address that begins with http:// or https://, and a key."


class BadState(InputError):
    """A state that does not exist."""

    code = "bad_state"
    hint = "Give one of the states that exist."


class BadSetting(InputError):
    """A setting that cannot be read."""

    code = "bad_setting"
    hint = "Correct the setting in settings.toml or in the environment."


class SettingFixed(BadSetting):
    """A setting that cannot be changed from here."""

    code = "setting_fixed"
    hint = "Change it in settings.toml on the machine itself, and restart Bullpen."


class BadSchedule(InputError):
    """A time that never comes, or that nobody can read."""

    code = "bad_schedule"
    hint = "Give a cron expression as `0 9 * * 1-5`, an interval as `30m`, or a time to come."


class BadPlace(InputError):
    """An address that its channel cannot read."""

    code = "bad_place"
    hint = "Give a channel and an address on it, as `telegram:123456789`, or `nowhere`."


class BadHeartbeat(InputError):
    """A heartbeat that cannot be."""

    code = "bad_heartbeat"
    hint = "Give an interval of a minute or more, and hours as `08:00-18:00`."


class BadKey(InputError):
    """A key that could do nothing, or nothing any more."""

    code = "bad_key"
    hint = "Give a name, one scope or more, and an end in the future if it is to have one."


class BadRequest(InputError):
    """A request that is not as the API's description says."""

    code = "bad_request"
    hint = "Compare it with the description at /openapi/openapi.json."


class NotJson(BadRequest):
    """A body that is not declared as JSON."""

    code = "not_json"
    hint = "Send JSON, with the header `Content-Type: application/json`."


class BodyTooLarge(BadRequest):
    """A body over the limit."""

    code = "body_too_large"
    hint = "Send less; the limits are the settings `body_bytes` and `upload_bytes`."
