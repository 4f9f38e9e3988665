/* Parameters as programs on psqlODBC bind them, told as lines `name<TAB>count` or `name<TAB>error SQLSTATE`.
 * Configured by HUSHQL_ODBC, a connection string. */

#include <sql.h>
#include <sqlext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(literal) ((SQLCHAR *)(literal))

/* A statement's only parameter: how it is held here, what it is said to be, and its bytes. */
struct value {
    SQLSMALLINT held;
    SQLSMALLINT is;
    SQLULEN size;
    SQLSMALLINT digits;
    void *data;
    SQLLEN length;
};

static void told(const char *name, int run, SQLHSTMT statement, SQLRETURN outcome)
{
    char state[6] = "none", message[1000];
    SQLINTEGER native;
    SQLSMALLINT length;
    SQLBIGINT count;
    SQLLEN given;

    if (SQL_SUCCEEDED(outcome) && SQL_SUCCEEDED(SQLFetch(statement))
        && SQL_SUCCEEDED(SQLGetData(statement, 1, SQL_C_SBIGINT, &count, 0, &given))) {
        printf("%s.%d\t%lld\n", name, run, (long long)count);
        return;
    }
    SQLGetDiagRec(SQL_HANDLE_STMT, statement, 1, TEXT(state), &native, TEXT(message), sizeof message, &length);
    printf("%s.%d\terror %s\n", name, run, state);
}

static void ask(SQLHDBC connection, const char *name, const char *from, struct value value)
{
    SQLHSTMT statement;
    char sql[500];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", from);
    SQLAllocHandle(SQL_HANDLE_STMT, connection, &statement);
    SQLBindParameter(statement, 1, SQL_PARAM_INPUT, value.held, value.is, value.size, value.digits, value.data, 0,
                     &value.length);
    if (SQL_SUCCEEDED(SQLPrepare(statement, TEXT(sql), SQL_NTS))) {
        for (int run = 1; run <= 7; run++) {
            told(name, run, statement, SQLExecute(statement));
            SQLCloseCursor(statement);
        }
    } else {
        told(name, 0, statement, SQL_ERROR);
    }
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
}

static struct value text_as(SQLSMALLINT is, const char *text)
{
    return (struct value){SQL_C_CHAR, is, strlen(text) + 1, 0, (void *)text, SQL_NTS};
}

static void booleans(SQLHDBC connection)
{
    const char *older = "users WHERE (age > 30) = ?";
    unsigned char yes = 1, no = 0;
    ask(connection, "boolean.true", older, (struct value){SQL_C_BIT, SQL_BIT, 1, 0, &yes, 0});
    ask(connection, "boolean.false", older, (struct value){SQL_C_BIT, SQL_BIT, 1, 0, &no, 0});
    ask(connection, "boolean.text", older, text_as(SQL_VARCHAR, "yes"));
    ask(connection, "boolean.column", "users WHERE newsletter = ?", (struct value){SQL_C_BIT, SQL_BIT, 1, 0, &yes, 0});
    ask(connection, "boolean.null", older, (struct value){SQL_C_BIT, SQL_BIT, 1, 0, NULL, SQL_NULL_DATA});
}

static void times(SQLHDBC connection)
{
    SQL_DATE_STRUCT day = {2021, 6, 1};
    SQL_TIMESTAMP_STRUCT noon = {2024, 6, 1, 12, 30, 15, 123456000}, midnight = {2024, 6, 1, 0, 0, 0, 0};
    SQL_TIME_STRUCT evening = {17, 30, 0};
    struct value date = {SQL_C_TYPE_DATE, SQL_TYPE_DATE, 10, 0, &day, 0};
    struct value timestamp = {SQL_C_TYPE_TIMESTAMP, SQL_TYPE_TIMESTAMP, 26, 6, &noon, 0};
    struct value start = {SQL_C_TYPE_TIMESTAMP, SQL_TYPE_TIMESTAMP, 26, 6, &midnight, 0};

    ask(connection, "date.date", "users WHERE joined > ?", date);
    ask(connection, "date.timestamp", "users WHERE joined > ?", start);
    ask(connection, "date.text", "users WHERE joined > ?", text_as(SQL_VARCHAR, "June 1, 2021"));
    ask(connection, "timestamp.timestamp", "orders WHERE at > ?", timestamp);
    ask(connection, "timestamp.date", "orders WHERE at > ?", date);
    ask(connection, "timestamp.text", "orders WHERE at > ?", text_as(SQL_VARCHAR, "2024-06-01T12:30:15.123Z"));
    ask(connection, "timestamptz.timestamp", "users WHERE seen > ?", timestamp);
    ask(connection, "time.time", "orders WHERE at::time < ?",
        (struct value){SQL_C_TYPE_TIME, SQL_TYPE_TIME, 8, 0, &evening, 0});
    ask(connection, "interval.text", "orders WHERE at > timestamp '2025-12-01' - ?::interval",
        text_as(SQL_VARCHAR, "1 year 2 months"));
    ask(connection, "unit.trunc", "orders WHERE date_trunc(?, at) = '2024-06-01'", text_as(SQL_VARCHAR, "month"));
    ask(connection, "unit.part", "orders WHERE date_part(?, at) = 2024", text_as(SQL_VARCHAR, "year"));
    ask(connection, "unit.format", "orders WHERE to_char(at, ?) = '2024-06'", text_as(SQL_VARCHAR, "YYYY-MM"));
}

static void numbers(SQLHDBC connection)
{
    SQLINTEGER whole = 40;
    SQLBIGINT large = 5000000;
    double price = 8.5, huge = 1e300;
    float tall = 1.7f;

    ask(connection, "integer.long", "users WHERE age > ?", (struct value){SQL_C_SLONG, SQL_INTEGER, 0, 0, &whole, 0});
    ask(connection, "integer.text", "users WHERE age > ?", text_as(SQL_VARCHAR, " 40 "));
    ask(connection, "bigint.big", "users WHERE steps > ?", (struct value){SQL_C_SBIGINT, SQL_BIGINT, 0, 0, &large, 0});
    ask(connection, "numeric.text", "orders WHERE amount > ?",
        (struct value){SQL_C_CHAR, SQL_NUMERIC, 10, 2, "10.50", SQL_NTS});
    ask(connection, "double.double", "items WHERE price > ?", (struct value){SQL_C_DOUBLE, SQL_DOUBLE, 0, 0, &price, 0});
    ask(connection, "double.infinite", "items WHERE price > ?", (struct value){SQL_C_DOUBLE, SQL_DOUBLE, 0, 0, &huge, 0});
    ask(connection, "real.float", "users WHERE height > ?", (struct value){SQL_C_FLOAT, SQL_REAL, 0, 0, &tall, 0});
    ask(connection, "text.text", "users WHERE plan = ?", text_as(SQL_VARCHAR, "pro"));
    ask(connection, "array.text", "users WHERE age = ANY (?)", text_as(SQL_VARCHAR, "{20, NULL, 30}"));
}

int main(void)
{
    SQLHENV environment;
    SQLHDBC connection;
    SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &environment);
    SQLSetEnvAttr(environment, SQL_ATTR_ODBC_VERSION, (SQLPOINTER)SQL_OV_ODBC3, 0);
    SQLAllocHandle(SQL_HANDLE_DBC, environment, &connection);
    if (!SQL_SUCCEEDED(SQLDriverConnect(connection, NULL, TEXT(getenv("HUSHQL_ODBC")), SQL_NTS, NULL, 0, NULL,
                                        SQL_DRIVER_NOPROMPT)))
        return 1;
    booleans(connection);
    times(connection);
    numbers(connection);
    SQLDisconnect(connection);
    SQLFreeHandle(SQL_HANDLE_DBC, connection);
    SQLFreeHandle(SQL_HANDLE_ENV, environment);
    printf("done\tyes\n");
    return 0;
}
