"""Who asks may not do this."""

from __future__ import annotations

from bullpen.core.errors.base import BullpenError


class AccessError(BullpenError):
    """Who asks may not do this; nothing was done."""

    code = "no_right"
    hint = "Use a key that may do it."


class NoAccess(AccessError):
    """No token was sent, or one that opens nothing."""

    code = "no_access"
    hint = "Send `Authorization: Bearer` with the token of the home, or with a key."


class TooManyFailures(AccessError):
    """So many wrong tokens came from one address that more are not looked at for a while."""

    code = "too_many_failures"
    exit_status = 75
    hint = "Wait a minute, and send a token that is right."


class ScopeTooSmall(AccessError):
    """The key is good, and not for this."""

    code = "scope_too_small"
    hint = "Use a key that has this scope."


class OutOfReach(AccessError):
    """The key is good, and not for this agent."""

    code = "out_of_reach"
    hint = "Use a key that reaches this agent."


class ForeignHost(AccessError):
    """The request names a host that this is not."""

    code = "foreign_host"
    hint = "Use the API's own address, or add the name to the setting `api_names`."


class ForeignPage(AccessError):
    """A page of another site made the request."""

    code = "foreign_page"
    hint = "Add the page's origin to the setting `api_origins` if it is yours."
