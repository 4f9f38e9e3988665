<?php
// Parameters as programs on PDO bind them, told as lines `name<TAB>count` or `name<TAB>error SQLSTATE`.
// Configured by PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and HUSHQL_EMULATE (0 or 1).

declare(strict_types=1);

$server = sprintf('pgsql:host=%s;port=%s;dbname=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE'));
$connection = new PDO($server, getenv('PGUSER'), getenv('PGPASSWORD'), [
    PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    PDO::ATTR_EMULATE_PREPARES => getenv('HUSHQL_EMULATE') === '1',
]);

function ask(string $name, string $from, mixed ...$values): void
{
    global $connection;
    $kinds = ['boolean' => PDO::PARAM_BOOL, 'integer' => PDO::PARAM_INT, 'NULL' => PDO::PARAM_NULL];
    try {
        $statement = $connection->prepare("SELECT count(*) FROM $from");
        for ($run = 1; $run <= 7; $run++) {
            foreach ($values as $place => $value) {
                $statement->bindValue($place + 1, $value, $kinds[gettype($value)] ?? PDO::PARAM_STR);
            }
            $statement->execute();
            echo "$name.$run\t{$statement->fetchColumn()}\n";
        }
    } catch (PDOException $refusal) {
        echo "$name\terror {$refusal->getCode()}\n";
    }
}

ask('boolean.true', 'users WHERE (age > 30) = ?', true);
ask('boolean.false', 'users WHERE (age > 30) = ?', false);
ask('boolean.text', 'users WHERE (age > 30) = ?', 'TRUE');
ask('boolean.one', 'users WHERE (age > 30) = ?', '1');
ask('boolean.column', 'users WHERE newsletter = ?', true);
ask('boolean.null', 'users WHERE newsletter = ?', null);
ask('date.text', 'users WHERE joined > ?', '2021-06-01');
ask('date.short', 'users WHERE joined > ?', '20210601');
ask('date.moment', 'users WHERE joined > ?', (new DateTimeImmutable('2021-06-01 10:00 UTC'))->format(DATE_ATOM));
ask('date.spoken', 'users WHERE joined > ?', '1 June 2021');
ask('timestamp.atom', 'orders WHERE at > ?', (new DateTimeImmutable('2024-06-01 12:30 UTC'))->format(DATE_ATOM));
ask('timestamptz.atom', 'users WHERE seen > ?', (new DateTimeImmutable('2024-06-01 12:30 UTC'))->format(DATE_ATOM));
ask('timestamptz.rfc', 'users WHERE seen > ?', (new DateTimeImmutable('2024-06-01 12:30 UTC'))->format(DATE_RFC2822));
ask('time.text', 'orders WHERE at::time < ?', '5:30 PM');
ask('interval.text', "orders WHERE at > timestamp '2025-12-01' - ?::interval", '1 year 2 months');
ask('integer.integer', 'users WHERE age > ?', 40);
ask('integer.text', 'users WHERE age > ?', ' 40 ');
ask('integer.fraction', 'users WHERE age > ?', '40.5');
ask('bigint.integer', 'users WHERE steps > ?', 5000000);
ask('numeric.text', 'orders WHERE amount > ?', '1e1');
ask('double.text', 'items WHERE price > ?', '8.5');
ask('double.hexadecimal', 'items WHERE price > ?', '0x1p3');
ask('double.infinite', 'items WHERE price > ?', '1e300');
ask('real.text', 'users WHERE height > ?', '1.7');
ask('array.text', 'users WHERE age = ANY (?)', '{20, NULL, 30}');
ask('unit.trunc', 'orders WHERE date_trunc(?, at) = ?', 'month', '2024-06-01');
ask('unit.part', 'orders WHERE date_part(?, at) = ?', 'Year', 2024);
ask('unit.format', 'orders WHERE to_char(at, ?) = ?', 'YYYY-MM', '2024-06');
ask('unit.none', 'orders WHERE date_trunc(?, at) = ?', 'fortnight', '2024-06-01');
ask('text.text', 'users WHERE plan = ?', 'pro');
echo "done\tyes\n";
