"""The doctor: checks of one installation, each with an id that stays, and a remedy."""
