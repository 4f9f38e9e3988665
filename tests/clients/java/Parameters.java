// Parameters as programs on pgJDBC set them, told as lines `name<TAB>count` or `name<TAB>error SQLSTATE`.
// Configured by HUSHQL_URL (jdbc:postgresql://...), HUSHQL_USER, HUSHQL_PASSWORD, HUSHQL_MODE (extended or simple).

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Calendar;
import java.util.Properties;
import java.util.TimeZone;
import org.postgresql.util.PGInterval;

public final class Parameters {
    /** Sets the parameters of a statement. */
    private interface Setter {
        void set(PreparedStatement statement) throws SQLException;
    }

    private static Connection connection;

    /** The same often enough that the driver moves from text to named statements and binary values. */
    private static void ask(String name, String from, Setter setter) {
        try (PreparedStatement statement = connection.prepareStatement("SELECT count(*) FROM " + from)) {
            for (int run = 1; run <= 7; run++) {
                setter.set(statement);
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    System.out.println(name + "." + run + "\t" + rows.getLong(1));
                }
            }
        } catch (SQLException refusal) {
            System.out.println(name + "\terror " + refusal.getSQLState());
        }
    }

    private static void booleans() {
        String older = "users WHERE (age > 30) = ?";
        ask("boolean.true", older, s -> s.setBoolean(1, true));
        ask("boolean.false", older, s -> s.setBoolean(1, false));
        ask("boolean.object", older, s -> s.setObject(1, Boolean.TRUE));
        ask("boolean.of_text", older, s -> s.setObject(1, "on", Types.BOOLEAN));
        ask("boolean.null", older, s -> s.setNull(1, Types.BOOLEAN));
        ask("boolean.column", "users WHERE newsletter = ?", s -> s.setBoolean(1, true));
    }

    private static void times() {
        Calendar tokyo = Calendar.getInstance(TimeZone.getTimeZone("Asia/Tokyo"));
        LocalDateTime noon = LocalDateTime.of(2024, 6, 1, 12, 30, 15, 123456000);
        ask("date.date", "users WHERE joined > ?", s -> s.setDate(1, Date.valueOf("2021-06-01")));
        ask("date.calendar", "users WHERE joined > ?", s -> s.setDate(1, Date.valueOf("2021-06-01"), tokyo));
        ask("date.local", "users WHERE joined > ?", s -> s.setObject(1, LocalDate.of(2021, 6, 1)));
        ask("date.of_timestamp", "users WHERE joined > ?", s -> s.setTimestamp(1, Timestamp.valueOf(noon)));
        ask("timestamp.timestamp", "orders WHERE at > ?", s -> s.setTimestamp(1, Timestamp.valueOf(noon)));
        ask("timestamp.calendar", "orders WHERE at > ?", s -> s.setTimestamp(1, Timestamp.valueOf(noon), tokyo));
        ask("timestamp.local", "orders WHERE at > ?", s -> s.setObject(1, noon));
        ask("timestamp.date", "orders WHERE at > ?", s -> s.setDate(1, Date.valueOf("2024-06-01")));
        ask("timestamptz.timestamp", "users WHERE seen > ?", s -> s.setTimestamp(1, Timestamp.valueOf(noon)));
        ask("timestamptz.offset", "users WHERE seen > ?", s -> s.setObject(1, noon.atOffset(ZoneOffset.ofHours(2))));
        ask("timestamptz.between", "users WHERE seen BETWEEN ? AND ?", s -> {
            s.setObject(1, OffsetDateTime.of(2024, 3, 10, 2, 30, 0, 0, ZoneOffset.UTC));
            s.setTimestamp(2, Timestamp.valueOf("2024-11-03 01:30:00"));
        });
        ask("time.time", "orders WHERE at::time < ?", s -> s.setTime(1, Time.valueOf("17:30:00")));
        ask("time.local", "orders WHERE at::time < ?", s -> s.setObject(1, LocalTime.of(17, 30)));
        ask("interval", "orders WHERE at > timestamp '2025-12-01' - ?", s -> s.setObject(1, new PGInterval(1, 2, 3, 4, 5, 6.5)));
    }

    private static void numbers() {
        ask("integer.int", "users WHERE age > ?", s -> s.setInt(1, 40));
        ask("integer.text", "users WHERE age > ?", s -> s.setObject(1, " 40 ", Types.INTEGER));
        ask("integer.double", "users WHERE age > ?", s -> s.setDouble(1, 39.5));
        ask("bigint.long", "users WHERE steps > ?", s -> s.setLong(1, 5_000_000L));
        ask("smallint.short", "users WHERE kids = ?", s -> s.setShort(1, (short) 2));
        ask("numeric.decimal", "orders WHERE amount > ?", s -> s.setBigDecimal(1, new BigDecimal("1E+1")));
        ask("double.double", "items WHERE price > ?", s -> s.setDouble(1, 8.0));
        ask("double.infinite", "items WHERE price > ?", s -> s.setDouble(1, 1e300));
        ask("real.float", "users WHERE height > ?", s -> s.setFloat(1, 1.7f));
        ask("array.integers", "users WHERE age = ANY (?)",
                s -> s.setArray(1, connection.createArrayOf("int4", new Integer[] {20, null, 30})));
        ask("array.texts", "users WHERE plan = ANY (?)",
                s -> s.setArray(1, connection.createArrayOf("text", new String[] {"pro", "NULL", "a \"b\", c"})));
        ask("array.dates", "users WHERE joined = ANY (?)",
                s -> s.setArray(1, connection.createArrayOf("date", new Date[] {Date.valueOf("2020-01-12")})));
    }

    private static void words() {
        ask("unit.trunc", "orders WHERE date_trunc(?, at) = ?", s -> {
            s.setString(1, "month");
            s.setObject(2, LocalDateTime.of(2024, 6, 1, 0, 0));
        });
        ask("unit.part", "orders WHERE date_part(?, at) = ?", s -> {
            s.setString(1, "Year");
            s.setDouble(2, 2024);
        });
        ask("unit.format", "orders WHERE to_char(at, ?) = ?", s -> {
            s.setString(1, "YYYY-MM");
            s.setString(2, "2024-06");
        });
        ask("text.cast", "users WHERE joined > ?::date", s -> s.setString(1, "1 June 2021"));
        ask("text.text", "users WHERE plan = ?", s -> s.setString(1, "pro"));
        ask("text.bad_unit", "orders WHERE date_trunc(?, at) = '2024-06-01'", s -> s.setString(1, "fortnight"));
        ask("text.bad_date", "users WHERE joined > ?::date", s -> s.setString(1, "soon"));
    }

    public static void main(String[] arguments) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("HUSHQL_USER"));
        properties.setProperty("password", System.getenv("HUSHQL_PASSWORD"));
        properties.setProperty("preferQueryMode", System.getenv("HUSHQL_MODE"));
        connection = DriverManager.getConnection(System.getenv("HUSHQL_URL"), properties);
        booleans();
        times();
        numbers();
        words();
        connection.close();
        System.out.println("done\tyes");
    }
}
