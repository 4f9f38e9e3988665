"""Which tables does the demo shop have, and which words stand in them?

Only data: names, weights and the SQL that turns generated numbers into rows. Index 0 of a word list is NULL.
"""

from __future__ import annotations

from datetime import date

FIRST_DAY = date(2024, 1, 1)
LAST_DAY = date(2025, 12, 31)
FIRST_JOINED = date(2019, 1, 1)

CUSTOMERS = 50_000
ORDERS_PER_CUSTOMER = 10.0
VISITS_PER_CUSTOMER = 6.0

#: Large places, the first with most customers.
CITIES = (
    *("Zurich", "Geneva", "Basel", "Lausanne", "Bern", "Winterthur", "Lucerne", "St. Gallen", "Lugano", "Biel"),
    *("Thun", "Bellinzona", "Fribourg", "Schaffhausen", "Chur", "Uster", "Sion", "Zug", "Yverdon", "Dübendorf"),
    *("Kriens", "Rapperswil", "Montreux", "Wil", "Baar", "Kreuzlingen", "Aarau", "Renens", "Olten", "Solothurn"),
)
#: Places with thirty, with five and with one customer at any scale: what a threshold must hide or may show.
SMALL_TOWNS = ("Andermatt", "Gruyères", "Soglio", "Guarda", "Splügen")
HAMLETS = ("Bosco/Gurin", "Juf", "Indemini", "Les Brenets")
VILLAGES_OF_ONE = (
    *("Corippo", "Bister", "Kammersrohr", "Berken", "Rebévelier", "Mauraz", "Clavaleyres", "Wiler", "Gresso"),
    *("Martisberg", "Schelten", "Linescio", "Monible", "Hellsau", "Zielebach"),
)
TOWN_CUSTOMERS, HAMLET_CUSTOMERS = 30, 5

PLANS = ("free", "pro", "team")
PLAN_WEIGHTS = (0.72, 0.21, 0.07)
STATUSES = ("paid", "refunded")
CATEGORIES = ("books", "garden", "home", "music", "office", "sport", "tools", "toys")
CATEGORY_WEIGHTS = (0.22, 0.08, 0.18, 0.1, 0.12, 0.12, 0.07, 0.11)
CATEGORY_PRICES = (14.0, 32.0, 40.0, 18.0, 25.0, 45.0, 60.0, 22.0)
DEVICES = ("phone", "desktop", "tablet")
DEVICE_WEIGHTS = (0.58, 0.34, 0.08)
#: The same campaign arrives in several spellings, as in life.
CAMPAIGNS = ("spring", "Spring", "SPRING", "summer", "Summer", "winter", "Newsletter", "newsletter", "friends")
CAMPAIGN_WEIGHTS = (0.2, 0.1, 0.02, 0.2, 0.1, 0.15, 0.08, 0.13, 0.02)
#: Visits to a share of one customer in 10,000 come from a campaign nobody else saw.
PRIVATE_CAMPAIGN_SHARE = 0.0001

#: Chance of each hour of the day.
HOURS = (2, 1, 1, 1, 1, 2, 6, 12, 18, 22, 26, 28, 30, 28, 26, 26, 28, 32, 38, 44, 46, 36, 20, 8)
#: Weight of each weekday from Monday, and of each month.
WEEKDAYS = (1.0, 0.95, 0.95, 1.0, 1.15, 1.35, 1.2)
MONTHS = (0.85, 0.8, 0.9, 0.95, 1.0, 0.95, 0.85, 0.9, 1.0, 1.05, 1.35, 1.6)

#: store_id, name, region, opened.
STORES = (
    (1, "Bahnhofstrasse", "north", date(1998, 3, 12)),
    (2, "Limmatquai", "north", date(2004, 9, 1)),
    (3, "Marktgasse", "west", date(2001, 5, 4)),
    (4, "Rue du Rhône", "west", date(2009, 10, 17)),
    (5, "Freie Strasse", "north", date(2012, 4, 20)),
    (6, "Piazza Grande", "south", date(2015, 6, 6)),
    (7, "Hauptgasse", "east", date(2011, 11, 11)),
    (8, "Multergasse", "east", date(2018, 2, 28)),
    (9, "Via Nassa", "south", date(2019, 8, 15)),
    (10, "Kornmarkt", "west", date(2021, 5, 21)),
    (11, "Airport", "north", date(2022, 7, 1)),
    (12, "Web shop", "online", date(2010, 1, 1)),
)
STORE_WEIGHTS = (9, 6, 6, 7, 5, 3, 3, 2, 2, 3, 4, 50)

#: Names and addresses are in the data and not in the policy: for clients they do not exist.
CREATE = """
create table users (
    user_id integer primary key, name varchar not null, email varchar not null,
    age integer, city varchar, plan varchar, newsletter boolean, joined date not null);
create table stores (
    store_id integer primary key, name varchar not null, region varchar not null, opened date not null);
create table orders (
    order_id bigint not null, user_id integer not null, store_id integer not null,
    amount decimal(10, 2) not null, status varchar, "at" timestamp not null);
create table items (
    order_id bigint not null, line integer not null, category varchar not null, quantity integer not null,
    price double);
create table visits (
    user_id integer not null, "at" timestamp not null, device varchar, campaign varchar, seconds real);
"""

#: One insert for each table; `chunk` holds the generated columns, words as indexes into lists.
INSERT_USERS = """
insert into users select user_id, 'Customer ' || user_id, 'customer' || user_id || '@example.com',
    case when age >= 0 then age end, $cities[city], $plans[plan],
    case when newsletter >= 0 then newsletter = 1 end, date '2019-01-01' + joined::integer from chunk
"""
INSERT_ORDERS = """
insert into orders select order_id, user_id, store_id, cents / 100.0::decimal(10, 2), $statuses[status],
    make_timestamp("at") from chunk
"""
INSERT_ITEMS = """
insert into items select order_id, line, $categories[category], quantity,
    case when cents >= 0 then cents / 1e2 end from chunk
"""
INSERT_VISITS = """
insert into visits select user_id, make_timestamp("at"), $devices[device],
    case when campaign > len($campaigns) then 'private link ' || user_id else $campaigns[campaign] end,
    case when seconds >= 0 then seconds end from chunk
"""
