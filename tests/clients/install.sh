#!/bin/sh
# Sees to the programs that the client tests drive; installs Debian's packages as root, else says what is missing.
set -eu

here=$(dirname "$0")
missing=
need() { # need TEST PACKAGE
    sh -c "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need 'command -v psql' postgresql-client
need 'javac -version' default-jdk-headless
need 'test -e /usr/share/java/postgresql.jar' libpostgresql-jdbc-java
need 'ls /usr/lib/*/odbc/psqlodbcw.so' odbc-postgresql
need 'test -e /usr/include/sql.h' unixodbc-dev
need 'command -v cc' gcc
need 'test -e /usr/include/stdlib.h' libc6-dev
need 'command -v node' nodejs
need 'command -v npm' npm
need 'command -v php' php-cli
need "php -m | grep -q pdo_pgsql" php-pgsql
need 'perl -MDBD::Pg -e 1' libdbd-pg-perl
need 'ruby -rpg -e 1' ruby-pg
need 'test -x /usr/bin/chromium' chromium
need 'test -x /usr/sbin/slapd' slapd
need 'command -v ldapmodify' ldap-utils

if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing$missing"
        apt-get -qq update
        # shellcheck disable=SC2086 # a list of packages
        DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $missing >/dev/null
    else
        echo "the client tests need more programs; as root: apt install$missing" >&2
        exit 1
    fi
fi

cd "$here/node"
[ -d node_modules ] && [ ! package-lock.json -nt node_modules ] || npm ci --silent --no-audit --no-fund
