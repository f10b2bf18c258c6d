"""Live events over SSE and WebSocket."""
