"""E-mail as a channel for Bullpen: IMAP receives, SMTP sends."""

from bullpen import AddressFormat, ChannelInfo, ChannelLimits, ChannelSetting

EMAIL = ChannelInfo(
    name="email",
    address=AddressFormat(r"[^\s<>@]+@[a-z0-9.-]+", "email:ann@example.org", direct=True),
    settings=(
        ChannelSetting("address", "Address of the bot, and its login.", required=True),
        ChannelSetting("password", "Password of the mailbox.", secret=True, required=True),
        ChannelSetting("authserv_id", "First word of `Authentication-Results`.", required=True),
        ChannelSetting("imap_server", "IMAP server with TLS.", required=True, server=True),
        ChannelSetting("smtp_server", "SMTP server with STARTTLS.", required=True, server=True),
        ChannelSetting("sent_folder", "Folder in which the server keeps what SMTP accepted."),
        ChannelSetting("poll_seconds", "Seconds between polls.", default="20", limits=(1, 600)),
    ),
    limits=ChannelLimits(text_characters=200_000, file_bytes=20 << 20),
    factory="bullpen_email.client:Email",
)
