"""Providers: one file for each program or protocol that answers messages."""
