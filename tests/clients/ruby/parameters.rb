# Parameters as programs on Ruby's pg pass them, told as lines `name<TAB>count` or `name<TAB>error SQLSTATE`.
# Configured by PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD.
require "bigdecimal"
require "date"
require "ipaddr"
require "pg"
require "time"

CONNECTION = PG.connect

# As a statement without a name, and as one that is prepared and run until PostgreSQL would make a generic plan of it.
def ask(name, from, *values)
  sql = "SELECT count(*) FROM #{from}"
  runs = { "plain" => -> { CONNECTION.exec_params(sql, values) } }
  begin
    CONNECTION.prepare(name, sql)
    runs["named"] = -> { CONNECTION.exec_prepared(name, values) }
  rescue PG::Error => refusal
    puts "#{name}.prepare\terror #{refusal.result.error_field(PG::PG_DIAG_SQLSTATE)}"
  end
  runs.each do |kind, run|
    7.times { |n| puts "#{name}.#{kind}.#{n + 1}\t#{run.call.getvalue(0, 0)}" }
  rescue PG::Error => refusal
    puts "#{name}.#{kind}\terror #{refusal.result.error_field(PG::PG_DIAG_SQLSTATE)}"
  end
end

NOON = Time.utc(2024, 6, 1, 12, 30, 15, 123_456)

# What a program writes that converts by itself: every value is a text.
ask("text.boolean", "users WHERE (age > 30) = $1", true.to_s)
ask("text.boolean_one", "users WHERE (age > 30) = $1", "1")
ask("text.date", "users WHERE joined > $1", Date.new(2021, 6, 1).to_s)
ask("text.date_of_time", "users WHERE joined > $1", Time.utc(2021, 6, 1, 10).to_s)
ask("text.time", "orders WHERE at > $1", NOON.to_s)
ask("text.iso", "users WHERE seen > $1", NOON.iso8601(3))
ask("text.interval", "orders WHERE at > timestamp '2025-12-01' - $1::interval", "1 year 2 months")
ask("text.number", "users WHERE age > $1", 40.to_s)
ask("text.padded", "users WHERE age > $1", " 40 ")
ask("text.hexadecimal", "items WHERE price > $1", "0x1p3")
ask("text.array", "users WHERE age = ANY ($1)", "{20, NULL, 30}")
ask("text.trunc", "orders WHERE date_trunc($1, at) = $2", "month", "2024-06-01")
ask("text.part", "orders WHERE date_part($1, at) = $2", "Year", "2024")
ask("text.format", "orders WHERE to_char(at, $1) = $2", "YYYY-MM", "2024-06")
ask("text.no_unit", "orders WHERE date_trunc($1, at) = $2", "fortnight", "2024-06-01")

# The driver's own conversions, by the class of each value; some are binary.
CONNECTION.type_map_for_queries = PG::BasicTypeMapForQueries.new(CONNECTION)
ask("mapped.true", "users WHERE (age > 30) = $1", true)
ask("mapped.false", "users WHERE (age > 30) = $1", false)
ask("mapped.null", "users WHERE newsletter = $1", nil)
ask("mapped.date", "users WHERE joined > $1", Date.new(2021, 6, 1))
ask("mapped.time", "users WHERE seen > $1", NOON)
ask("mapped.time_of_timestamp", "orders WHERE at > $1", NOON)
ask("mapped.datetime", "users WHERE seen > $1", NOON.to_datetime)
ask("mapped.integer", "users WHERE age > $1", 40)
ask("mapped.float", "items WHERE price > $1", 8.5)
ask("mapped.infinite", "items WHERE price > $1", 1e300)
ask("mapped.decimal", "orders WHERE amount > $1", BigDecimal("1e1"))
ask("mapped.integers", "users WHERE age = ANY ($1)", [20, nil, 30])
ask("mapped.texts", "users WHERE plan = ANY ($1)", ["pro", "NULL", 'a "b", c'])
ask("mapped.text", "users WHERE plan = $1", "pro")
CONNECTION.finish
puts "done\tyes"
