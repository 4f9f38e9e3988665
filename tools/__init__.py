"""The repository's own checks; not part of the distribution."""
