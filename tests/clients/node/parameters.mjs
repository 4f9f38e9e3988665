// Parameters as programs on node-postgres pass them, told as lines `name<TAB>count` or `name<TAB>error SQLSTATE`.
// Configured by PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD.

import pg from "pg";

const client = new pg.Client();
await client.connect();

async function ask(name, from, ...values) {
  const text = `SELECT count(*) AS n FROM ${from}`;
  for (const [kind, query] of [["plain", { text, values }], ["named", { name, text, values }]]) {
    try {
      for (let run = 1; run <= (kind === "named" ? 7 : 1); run += 1) {
        const { rows } = await client.query(query);
        console.log(`${name}.${kind}.${run}\t${rows[0].n}`);
      }
    } catch (refusal) {
      console.log(`${name}.${kind}\terror ${refusal.code}`);
    }
  }
}

const noon = new Date("2024-06-01T12:30:15.123Z");
await ask("boolean.true", "users WHERE (age > 30) = $1", true);
await ask("boolean.false", "users WHERE (age > 30) = $1", false);
await ask("boolean.one", "users WHERE (age > 30) = $1", 1);
await ask("boolean.column", "users WHERE newsletter = $1", true);
await ask("boolean.null", "users WHERE newsletter = $1", null);
await ask("date.date", "users WHERE joined > $1", new Date("2021-06-01T10:00:00Z"));
await ask("date.text", "users WHERE joined > $1", "20210601");
await ask("timestamp.date", "orders WHERE at > $1", noon);
await ask("timestamptz.date", "users WHERE seen > $1", noon);
await ask("timestamptz.cast", "users WHERE seen > $1::timestamptz", noon.toISOString());
await ask("time.text", "orders WHERE at::time < $1", "5:30 PM");
await ask("interval.text", "orders WHERE at > timestamp '2025-12-01' - $1::interval", "1 year 2 months");
await ask("integer.number", "users WHERE age > $1", 40);
await ask("integer.fraction", "users WHERE age > $1", 40.5);
await ask("bigint.bigint", "users WHERE steps > $1", 5000000n);
await ask("numeric.number", "orders WHERE amount > $1", 1e21);
await ask("numeric.text", "orders WHERE amount > $1", "1e1");
await ask("double.number", "items WHERE price > $1", 8.5);
await ask("double.infinite", "items WHERE price > $1", 1e300);
await ask("real.number", "users WHERE height > $1", 1.7);
await ask("array.numbers", "users WHERE age = ANY ($1)", [20, null, 30]);
await ask("array.texts", "users WHERE plan = ANY ($1)", ["pro", "NULL", 'a "b", c']);
await ask("array.dates", "users WHERE joined = ANY ($1)", [new Date("2020-01-12T10:00:00Z")]);
await ask("unit.trunc", "orders WHERE date_trunc($1, at) = $2", "month", "2024-06-01");
await ask("unit.part", "orders WHERE date_part($1, at) = $2", "Year", 2024);
await ask("unit.format", "orders WHERE to_char(at, $1) = $2", "YYYY-MM", "2024-06");
await ask("unit.none", "orders WHERE date_trunc($1, at) = $2", "fortnight", "2024-06-01");
await ask("text.text", "users WHERE plan = $1", "pro");
await client.end();
console.log("done\tyes");
