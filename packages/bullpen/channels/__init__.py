"""Channels: one client for each account on a platform.

A package that adds a channel imports from here and from `bullpen`; all other modules are internal.
"""

from bullpen.channels.failures import ChannelDown as ChannelDown
from bullpen.channels.failures import ChatMoved as ChatMoved
from bullpen.channels.failures import NotSent as NotSent
from bullpen.channels.failures import OptedOut as OptedOut
from bullpen.channels.failures import OutcomeUnknown as OutcomeUnknown
from bullpen.channels.failures import RateLimited as RateLimited
from bullpen.channels.failures import Refused as Refused
from bullpen.channels.failures import SendFailed as SendFailed
from bullpen.channels.failures import Undeliverable as Undeliverable
from bullpen.channels.failures import WindowClosed as WindowClosed
from bullpen.channels.inbound import Attachment as Attachment
from bullpen.channels.inbound import Chat as Chat
from bullpen.channels.inbound import ChatChange as ChatChange
from bullpen.channels.inbound import Deleted as Deleted
from bullpen.channels.inbound import Edited as Edited
from bullpen.channels.inbound import Inbound as Inbound
from bullpen.channels.inbound import Payload as Payload
from bullpen.channels.inbound import Person as Person
from bullpen.channels.inbound import Pressed as Pressed
from bullpen.channels.inbound import Proof as Proof
from bullpen.channels.inbound import Source as Source
from bullpen.channels.inbound import Written as Written
from bullpen.channels.platform import Address as Address
from bullpen.channels.platform import Button as Button
from bullpen.channels.platform import CatchUp as CatchUp
from bullpen.channels.platform import ChannelContext as ChannelContext
from bullpen.channels.platform import Download as Download
from bullpen.channels.platform import Finding as Finding
from bullpen.channels.platform import Identity as Identity
from bullpen.channels.platform import Intake as Intake
from bullpen.channels.platform import Note as Note
from bullpen.channels.platform import Place as Place
from bullpen.channels.platform import Platform as Platform
from bullpen.channels.platform import Progress as Progress
from bullpen.channels.platform import Recovered as Recovered
from bullpen.channels.platform import Sending as Sending
from bullpen.channels.platform import Server as Server
from bullpen.channels.platform import Stage as Stage
from bullpen.channels.platform import Verdict as Verdict
from bullpen.channels.text.received import text_of_html as text_of_html
from bullpen.channels.text.received import without_quote as without_quote
from bullpen.channels.text.tree import Document as Document
