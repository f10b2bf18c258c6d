"""The services of a home: their program files, the supervisor and the crash guard."""
