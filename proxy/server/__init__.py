"""The listener: connections, encryption, logins, limits and the sockets around `proxy.wire.relay`."""
