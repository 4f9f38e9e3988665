"""The public PostgreSQL: a real server with the policy's tables and none of the private rows."""
