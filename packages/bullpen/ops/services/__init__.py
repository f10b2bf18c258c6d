"""The services of a home: their program files, the supervisor and the crash guard."""

SUPERVISOR_VARIABLE = "BULLPEN_SUPERVISOR"
"""The environment variable with the process id of the supervisor, for what it starts."""
