"""Providers, channels and reports: one list of each, built-in ones and those of other packages."""

from bullpen.core.registry.channel_info import AddressFormat as AddressFormat
from bullpen.core.registry.channel_info import ChannelInfo as ChannelInfo
from bullpen.core.registry.channel_info import ChannelLimits as ChannelLimits
from bullpen.core.registry.channel_settings import ChannelSetting as ChannelSetting
from bullpen.core.registry.channels import CHANNELS as CHANNELS
from bullpen.core.registry.entries import PLUGIN_GROUP as PLUGIN_GROUP
from bullpen.core.registry.entries import SERVICE_NAME as SERVICE_NAME
from bullpen.core.registry.entries import LoadProblem as LoadProblem
from bullpen.core.registry.entries import Registry as Registry
from bullpen.core.registry.entries import plugin_files as plugin_files
from bullpen.core.registry.providers import PROVIDERS as PROVIDERS
from bullpen.core.registry.providers import Credential as Credential
from bullpen.core.registry.providers import Login as Login
from bullpen.core.registry.providers import ProviderInfo as ProviderInfo
from bullpen.core.registry.reports import REPORTS as REPORTS
from bullpen.core.registry.reports import ReportInfo as ReportInfo
