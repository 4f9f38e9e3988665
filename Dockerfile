# syntax=docker/dockerfile:1
# hushql in a container: not root, root file system may be read-only, state and policies in volumes.
#   docker build -t hushql .
#   docker run --read-only --tmpfs /tmp -p 6432:6432 -v hushql-state:/var/lib/hushql -v ./etc:/etc/hushql:ro hushql
# ./etc holds policy.yaml, the data it names and users.yaml, which has mode 0600 and belongs to user 6432.

FROM python:3.13-slim AS build
WORKDIR /source
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1
COPY requirements.lock requirements-dev.lock ./
RUN python -m venv /opt/hushql \
 && /opt/hushql/bin/pip install --no-deps --require-hashes --only-binary :all: -r requirements.lock
# the build backend at its locked version; it does not reach the final image
RUN python -m venv /tmp/build \
 && /tmp/build/bin/pip install --no-deps --require-hashes --only-binary :all: --no-binary pyspark-client -r requirements-dev.lock
COPY pyproject.toml README.md ./
COPY proxy proxy
COPY policies policies
RUN /tmp/build/bin/pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /tmp/dist . \
 && /opt/hushql/bin/pip install --no-deps --no-index /tmp/dist/hushql-*.whl \
 && /opt/hushql/bin/python -m compileall -q /opt/hushql

FROM python:3.13-slim
# the public PostgreSQL refuses to run as root, and so do we
RUN useradd --uid 6432 --user-group --no-create-home --home-dir /var/lib/hushql --shell /usr/sbin/nologin hushql \
 && install -d -o hushql -g hushql -m 0700 /var/lib/hushql \
 && install -d -m 0755 /etc/hushql
COPY --from=build /opt/hushql /opt/hushql
ENV PATH=/opt/hushql/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER hushql
WORKDIR /etc/hushql
VOLUME ["/var/lib/hushql", "/etc/hushql"]
EXPOSE 6432
STOPSIGNAL SIGTERM
# an SSLRequest is answered by one byte, S or N, before any login
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["python", "-c", "import socket, sys; s = socket.create_connection(('127.0.0.1', 6432), 2); s.sendall(bytes.fromhex('0000000804d2162f')); sys.exit(s.recv(1) not in (b'S', b'N'))"]
ENTRYPOINT ["hushql"]
CMD ["serve", "policy.yaml", "--listen", "0.0.0.0:6432", "--state", "/var/lib/hushql"]
