"""An example of a channel for Bullpen. It only writes to the log."""

from bullpen import AddressFormat, ChannelInfo, ChannelLimits, ChannelSetting

NOTHING = ChannelInfo(
    name="nothing",
    address=AddressFormat(r"[a-z]{1,20}", "nothing:ann", direct=True),
    settings=(ChannelSetting("token", "Token of the bot.", secret=True, required=True),),
    limits=ChannelLimits(text_characters=4000),
    factory="bullpen_nothing.client:Nothing",
)
