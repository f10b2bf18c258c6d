"""SMS and WhatsApp, through Twilio."""
