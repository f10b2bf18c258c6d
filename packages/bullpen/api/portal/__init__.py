"""The pages of a browser: rendered on the server, styled by one stylesheet, without a build step."""
