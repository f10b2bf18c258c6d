"""The routes, one noun a file."""

from bullpen.api.routes import health, messages

ROUTES = (health.ROUTES, messages.ROUTES)
