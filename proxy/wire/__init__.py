"""The PostgreSQL protocol as values: bytes in, bytes and questions out.

No sockets, clocks or randomness here; `proxy.server` has those.
"""
