"""The processor: claims messages, runs agents and finishes."""
