"""A bare Flask route that inserts one row: the least that a durable POST takes under gunicorn."""

from __future__ import annotations

import os
import sqlite3
import threading

from flask import Flask, request


def create() -> Flask:
    """The application, on the file that BARE_DATABASE names."""
    app = Flask(__name__)
    database = sqlite3.connect(
        os.environ["BARE_DATABASE"], isolation_level=None, check_same_thread=False
    )
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, message TEXT)")
    lock = threading.Lock()

    @app.post("/api/message")
    def insert() -> dict[str, bool]:
        message = request.get_json()["message"]
        with lock:
            database.execute("INSERT INTO rows (message) VALUES (?)", (message,))
        return {"ok": True}

    return app
