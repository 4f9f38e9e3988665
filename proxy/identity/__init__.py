"""Who says who somebody is, where the users file does not: a directory, or an issuer of tokens."""
