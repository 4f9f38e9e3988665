"""A database of a private PostgreSQL for engine tests, and engines that serve it."""

from __future__ import annotations

from functools import cache

from proxy.engines.postgres import PostgresEngine
from proxy.policy.model import Policy, PostgresSource, Table
from tests.postgres_server import PrivateServer, private_server
from tests.unit.engines.make import CITIES, ITEMS, ORDERS, USERS, policy, renamed

DATABASE = "engine data"
LOGIN = "reader"
SHOP_USERS = renamed(USERS, relation=("users",))
TABLES = (CITIES, SHOP_USERS, ORDERS, ITEMS)

DATA = """
create schema sales;
create table cities (city text primary key, "inner" int);
insert into cities values ('Paris', 1), ('Oslo', 2);
create table users (user_id int unique, age int, city varchar(20), secret text);
insert into users values (1, 30, 'Paris', 'alice-secret'), (2, 40, 'Oslo', 'b'), (null, 50, 'Oslo', 'c');
create table sales.orders (order_id bigint unique, user_id int, amount numeric(12, 2));
insert into sales.orders values (10, 1, 1.5), (11, 1, 2.5), (12, 2, 3.0);
create table items (order_id bigint);
create domain percent as numeric;
create type mood as enum ('sad', 'glad');
create extension citext;
create table odd ("User" int, "Mixed Case" mood, share percent, mail citext, list int[], day date, plain int, many int,
  primary key ("User", "Mixed Case"));
create unique index on odd (plain) where plain > 3;
create unique index on odd ((day - date '2000-01-01'));
create table parent (user_id int primary key);
create table child () inherits (parent);
create table writable (user_id int primary key);
create schema closed;
create table closed.away (user_id int primary key);
create table hiding (user_id int primary key);
alter table hiding enable row level security;
create role reader login;
grant usage on schema sales to reader;
grant select on all tables in schema public, sales to reader;
grant insert on writable to reader;
revoke select on users from reader;
grant select (user_id, age, city) on users to reader;
create function public.abs(int) returns int language sql as 'select 7777';
"""


@cache
def data_server() -> PrivateServer:
    """The server with the database, made once."""
    found = private_server()
    found.create(DATABASE, DATA)
    return found


def open_engine(
    server: PrivateServer, *tables: Table, login: str = LOGIN, zone: str = "Europe/Paris"
) -> PostgresEngine:
    """An engine for tables, those of the shop if none are named. Raises ConfigError."""
    source = PostgresSource(server.dsn(DATABASE, login))
    return PostgresEngine(policy(source, *(tables or TABLES), time_zone=zone), source)


def policy_of(*tables: Table) -> Policy:
    """A policy to check facts against."""
    return policy(PostgresSource("unused"), *(tables or TABLES))
