// What a program on node-postgres does with a database, told as lines `name<TAB>value`.
// Configured by PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD.

import pg from "pg";
import Cursor from "pg-cursor";

const tell = (name, value) => console.log(`${name}\t${value}`);

async function prepared(client) {
  const counts = [];
  for (let run = 0; run < 3; run += 1) {
    const query = {
      name: "older",
      text: "SELECT count(*)::int AS n FROM adult WHERE age >= $1 AND sex = ANY($2)",
      values: [40, ["Female", "Male"]],
    };
    counts.push((await client.query(query)).rows[0].n);
  }
  tell("counts", counts.join(","));
}

async function types(client) {
  const result = await client.query(
    "SELECT sex, count(*) AS n, avg(age) AS mean, sum(hours_per_week) AS hours FROM adult GROUP BY sex ORDER BY sex",
  );
  tell("types", result.fields.map((field) => `${field.name}:${field.dataTypeID}`).join(","));
  for (const row of result.rows) {
    tell(`count.${row.sex}`, row.n);
    tell(`mean.${row.sex}`, row.mean);
    tell(`hours.${row.sex}`, row.hours);
  }
}

async function slices(client) {
  const cursor = client.query(
    new Cursor("SELECT education, count(*) FROM adult WHERE age > $1 GROUP BY education ORDER BY education", [16]),
  );
  let rows = 0;
  for (let slice = await cursor.read(5); slice.length > 0; slice = await cursor.read(5)) {
    rows += slice.length;
  }
  await cursor.close();
  tell("slices.rows", rows);
}

async function refused(client, name, text, values) {
  try {
    await client.query(text, values);
    tell(`refused.${name}`, "accepted");
  } catch (refusal) {
    tell(`refused.${name}`, refusal.code);
  }
  tell(`after.${name}`, (await client.query("SELECT 7 AS seven")).rows[0].seven);
}

async function pooled() {
  const pool = new pg.Pool({ max: 3 });
  const sexes = ["Female", "Male", "Female", "Male", "Female", "Male"];
  const results = await Promise.all(
    sexes.map((sex) => pool.query("SELECT $1::text AS sex, count(*)::int AS n FROM adult WHERE sex = $1", [sex])),
  );
  tell("pooled", results.map(({ rows }) => `${rows[0].sex}:${rows[0].n}`).join(","));
  await pool.end();
}

const client = new pg.Client();
await client.connect();
await prepared(client);
await types(client);
await slices(client);
await refused(client, "rows", "SELECT age FROM adult WHERE age > $1", [40]);
await refused(client, "table", "SELECT count(*) FROM no_such_table");
await refused(client, "several", "SELECT 1; SELECT age FROM adult");
await client.end();
await pooled();
tell("done", "yes");
