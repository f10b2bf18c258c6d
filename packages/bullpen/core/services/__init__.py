"""The processes of one home under their supervisor."""
