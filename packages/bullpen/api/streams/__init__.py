"""Live events: who follows them, over SSE and WebSocket, and how fast."""
