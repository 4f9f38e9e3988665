/* What a program on psqlODBC does with a database, told as lines `name<TAB>value`.
 * Configured by HUSHQL_ODBC, a connection string. */

#include <sql.h>
#include <sqlext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(literal) ((SQLCHAR *)(literal))

static void state_of(SQLSMALLINT kind, SQLHANDLE handle, char *state, char *message, int size)
{
    SQLINTEGER native;
    SQLSMALLINT length;
    strcpy(state, "none");
    message[0] = 0;
    SQLGetDiagRec(kind, handle, 1, TEXT(state), &native, TEXT(message), (SQLSMALLINT)size, &length);
}

static void need(SQLRETURN outcome, SQLSMALLINT kind, SQLHANDLE handle, const char *what)
{
    char state[6], message[1000];
    if (SQL_SUCCEEDED(outcome))
        return;
    state_of(kind, handle, state, message, sizeof message);
    fprintf(stderr, "%s: %s %s\n", what, state, message);
    exit(1);
}

static SQLHSTMT statement_of(SQLHDBC connection)
{
    SQLHSTMT statement;
    need(SQLAllocHandle(SQL_HANDLE_STMT, connection, &statement), SQL_HANDLE_DBC, connection, "statement");
    return statement;
}

static void prepared(SQLHDBC connection)
{
    SQLHSTMT statement = statement_of(connection);
    SQLINTEGER age = 40;
    char sex[] = "Male";
    SQLLEN age_length = 0, sex_length = SQL_NTS, count_length;
    SQLBIGINT count;

    need(SQLPrepare(statement, TEXT("SELECT count(*) FROM adult WHERE age >= ? AND sex = ?"), SQL_NTS),
         SQL_HANDLE_STMT, statement, "prepare");
    SQLBindParameter(statement, 1, SQL_PARAM_INPUT, SQL_C_SLONG, SQL_INTEGER, 0, 0, &age, 0, &age_length);
    SQLBindParameter(statement, 2, SQL_PARAM_INPUT, SQL_C_CHAR, SQL_VARCHAR, sizeof sex, 0, sex, sizeof sex, &sex_length);
    printf("counts\t");
    for (int run = 0; run < 3; run++) {
        need(SQLExecute(statement), SQL_HANDLE_STMT, statement, "execute");
        need(SQLFetch(statement), SQL_HANDLE_STMT, statement, "fetch");
        need(SQLGetData(statement, 1, SQL_C_SBIGINT, &count, 0, &count_length), SQL_HANDLE_STMT, statement, "get");
        printf(run ? ",%lld" : "%lld", (long long)count);
        SQLCloseCursor(statement);
    }
    printf("\n");
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
}

static void types(SQLHDBC connection)
{
    SQLHSTMT statement = statement_of(connection);
    SQLSMALLINT columns, length, nullable, digits, type;
    SQLULEN size;
    char name[64], value[64];
    SQLLEN given;

    need(SQLExecDirect(statement, TEXT("SELECT sex, count(*) AS n, avg(age) AS mean FROM adult GROUP BY sex ORDER BY sex"),
                       SQL_NTS), SQL_HANDLE_STMT, statement, "types");
    SQLNumResultCols(statement, &columns);
    printf("types\t");
    for (SQLUSMALLINT i = 1; i <= columns; i++) {
        SQLDescribeCol(statement, i, TEXT(name), sizeof name, &length, &type, &size, &digits, &nullable);
        printf("%s%s:%d", i > 1 ? "," : "", name, type);
    }
    printf("\n");
    while (SQL_SUCCEEDED(SQLFetch(statement))) {
        SQLGetData(statement, 1, SQL_C_CHAR, name, sizeof name, &given);
        SQLGetData(statement, 2, SQL_C_CHAR, value, sizeof value, &given);
        printf("count.%s\t%s\n", name, value);
        SQLGetData(statement, 3, SQL_C_CHAR, value, sizeof value, &given);
        printf("mean.%s\t%s\n", name, value);
    }
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
}

static void rows_of(SQLHDBC connection, const char *name, const char *sql)
{
    SQLHSTMT statement = statement_of(connection);
    int rows = 0;
    need(SQLExecDirect(statement, TEXT(sql), SQL_NTS), SQL_HANDLE_STMT, statement, name);
    while (SQL_SUCCEEDED(SQLFetch(statement)))
        rows++;
    printf("%s.rows\t%d\n", name, rows);
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
}

static void catalogue(SQLHDBC connection)
{
    SQLHSTMT statement = statement_of(connection);
    char name[64], type[64];
    SQLLEN given;
    int first = 1;

    need(SQLTables(statement, NULL, 0, TEXT("public"), SQL_NTS, TEXT("%"), SQL_NTS, TEXT("TABLE"), SQL_NTS),
         SQL_HANDLE_STMT, statement, "tables");
    printf("tables\t");
    for (; SQL_SUCCEEDED(SQLFetch(statement)); first = 0) {
        SQLGetData(statement, 3, SQL_C_CHAR, name, sizeof name, &given);
        printf("%s%s", first ? "" : ",", name);
    }
    SQLFreeHandle(SQL_HANDLE_STMT, statement);

    statement = statement_of(connection);
    need(SQLColumns(statement, NULL, 0, TEXT("public"), SQL_NTS, TEXT("adult"), SQL_NTS, TEXT("%"), SQL_NTS),
         SQL_HANDLE_STMT, statement, "columns");
    printf("\ncolumns\t");
    for (first = 1; SQL_SUCCEEDED(SQLFetch(statement)); first = 0) {
        SQLGetData(statement, 4, SQL_C_CHAR, name, sizeof name, &given);
        SQLGetData(statement, 6, SQL_C_CHAR, type, sizeof type, &given);
        printf("%s%s:%s", first ? "" : ",", name, type);
    }
    printf("\n");
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
}

static void refused(SQLHDBC connection, const char *name, const char *sql)
{
    SQLHSTMT statement = statement_of(connection);
    char state[6], message[1000];
    if (SQL_SUCCEEDED(SQLExecDirect(statement, TEXT(sql), SQL_NTS)))
        strcpy(state, "OKAY");
    else
        state_of(SQL_HANDLE_STMT, statement, state, message, sizeof message);
    printf("refused.%s\t%s\n", name, state);
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
    rows_of(connection, name, "SELECT 7");
}

int main(void)
{
    SQLHENV environment;
    SQLHDBC connection;
    SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &environment);
    SQLSetEnvAttr(environment, SQL_ATTR_ODBC_VERSION, (SQLPOINTER)SQL_OV_ODBC3, 0);
    SQLAllocHandle(SQL_HANDLE_DBC, environment, &connection);
    need(SQLDriverConnect(connection, NULL, TEXT(getenv("HUSHQL_ODBC")), SQL_NTS, NULL, 0, NULL, SQL_DRIVER_NOPROMPT),
         SQL_HANDLE_DBC, connection, "connect");
    prepared(connection);
    types(connection);
    rows_of(connection, "groups", "SELECT education, count(*) FROM adult GROUP BY education");
    catalogue(connection);
    refused(connection, "raw", "SELECT age FROM adult");
    refused(connection, "table", "SELECT count(*) FROM no_such_table");
    SQLDisconnect(connection);
    SQLFreeHandle(SQL_HANDLE_DBC, connection);
    SQLFreeHandle(SQL_HANDLE_ENV, environment);
    printf("done\tyes\n");
    return 0;
}
