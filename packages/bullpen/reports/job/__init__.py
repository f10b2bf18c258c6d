"""The job: lands new facts, computes the reports, and replaces the manifest."""
