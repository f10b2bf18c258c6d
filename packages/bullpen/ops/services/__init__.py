"""The services of a home: their program files, the supervisor and the crash guard."""

SUPERVISOR_VARIABLE = "BULLPEN_SUPERVISOR"
"""The environment variable with the process id of the supervisor, for what it starts."""

SUPERVISED_VARIABLE = "SUPERVISOR_PROCESS_NAME"
"""The environment variable that supervisord sets for each service that it starts."""
