"""The pages of a browser: rendered on the server, one stylesheet, no build step."""
