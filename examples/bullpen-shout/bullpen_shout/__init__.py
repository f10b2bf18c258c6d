"""A provider for Bullpen that answers in capitals."""

from bullpen import ProviderInfo

SHOUT = ProviderInfo(name="shout", factory="bullpen_shout.provider:Shout")
