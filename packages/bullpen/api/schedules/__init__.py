"""Schedules as clients send and read them."""
