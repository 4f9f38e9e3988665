// What a program on pgJDBC does with a database, told as lines `name<TAB>value`.
// Configured by HUSHQL_URL (jdbc:postgresql://...), HUSHQL_USER, HUSHQL_PASSWORD.

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public final class Client {
    private static void tell(String name, Object value) {
        System.out.println(name + "\t" + value);
    }

    private static Connection connect(String mode) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("HUSHQL_USER"));
        properties.setProperty("password", System.getenv("HUSHQL_PASSWORD"));
        properties.setProperty("preferQueryMode", mode);
        return DriverManager.getConnection(System.getenv("HUSHQL_URL"), properties);
    }

    private static List<String> strings(ResultSet rows, int column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            found.add(rows.getString(column));
        }
        return found;
    }

    /** The same prepared statement often enough that the driver moves from text to named and binary. */
    private static void prepared(Connection connection, String prefix) throws SQLException {
        List<String> counts = new ArrayList<>();
        try (PreparedStatement statement =
                connection.prepareStatement("SELECT count(*) FROM adult WHERE age >= ? AND sex IN (?, ?)")) {
            for (int run = 0; run < 8; run++) {
                statement.setInt(1, 40);
                statement.setString(2, "Female");
                statement.setString(3, "Male");
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    counts.add(Long.toString(rows.getLong(1)));
                }
            }
        }
        tell(prefix + ".counts", String.join(",", counts));
    }

    private static void types(Connection connection, String prefix) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(
                        "SELECT sex, count(*) AS n, avg(age) AS mean, sum(hours_per_week) AS hours"
                                + " FROM adult GROUP BY sex ORDER BY sex")) {
            ResultSetMetaData columns = rows.getMetaData();
            List<String> described = new ArrayList<>();
            for (int i = 1; i <= columns.getColumnCount(); i++) {
                described.add(columns.getColumnLabel(i) + ":" + columns.getColumnTypeName(i));
            }
            tell(prefix + ".types", String.join(",", described));
            while (rows.next()) {
                String sex = rows.getString("sex");
                tell(prefix + ".count." + sex, rows.getLong("n"));
                tell(prefix + ".mean." + sex, rows.getBigDecimal("mean"));
                tell(prefix + ".hours." + sex, rows.getLong("hours"));
            }
        }
    }

    /** A portal that is read in slices: autocommit off and a fetch size. */
    private static void slices(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(3);
            try (ResultSet rows = statement.executeQuery(
                    "SELECT education, count(*) FROM adult GROUP BY education ORDER BY education")) {
                tell("slices.rows", strings(rows, 1).size());
            }
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    private static void catalogue(Connection connection) throws SQLException {
        DatabaseMetaData data = connection.getMetaData();
        try (ResultSet tables = data.getTables(null, "public", "%", new String[] {"TABLE"})) {
            tell("tables", String.join(",", strings(tables, 3)));
        }
        List<String> columns = new ArrayList<>();
        try (ResultSet rows = data.getColumns(null, "public", "adult", "%")) {
            while (rows.next()) {
                columns.add(rows.getString("COLUMN_NAME") + ":" + rows.getString("TYPE_NAME"));
            }
        }
        tell("columns", String.join(",", columns));
    }

    /** The SQLSTATE of a refused statement, and that the connection goes on. */
    private static void refused(Connection connection, String name, String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            tell("refused." + name, "accepted");
        } catch (SQLException refusal) {
            tell("refused." + name, refusal.getSQLState());
        }
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT 7")) {
            rows.next();
            tell("after." + name, rows.getInt(1));
        }
    }

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = connect("extended")) {
            prepared(connection, "extended");
            types(connection, "extended");
            slices(connection);
            catalogue(connection);
            refused(connection, "rows", "SELECT age, sex FROM adult");
            refused(connection, "table", "SELECT count(*) FROM no_such_table");
            refused(connection, "write", "DELETE FROM adult");
        }
        try (Connection connection = connect("simple")) {
            prepared(connection, "simple");
            types(connection, "simple");
        }
        tell("done", "yes");
    }
}
