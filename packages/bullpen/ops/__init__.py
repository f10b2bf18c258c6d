"""What looks after an installation: the doctor, backups and the services."""
