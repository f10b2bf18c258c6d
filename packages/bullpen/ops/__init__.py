"""What maintains an installation: the doctor, backups and the services."""
