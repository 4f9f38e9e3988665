#!/usr/bin/perl
# Parameters as programs on DBD::Pg bind them, told as lines `name<TAB>count` or `name<TAB>error SQLSTATE`.
# Configured by PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and HUSHQL_SERVER_PREPARE (0 or 1).
use strict;
use warnings;
use DBI;
use DBD::Pg qw(:pg_types);

my $connection = DBI->connect(
    "dbi:Pg:dbname=$ENV{PGDATABASE}", $ENV{PGUSER}, $ENV{PGPASSWORD},
    { RaiseError => 1, PrintError => 0, AutoCommit => 1, pg_server_prepare => $ENV{HUSHQL_SERVER_PREPARE} });

# Each value stands alone, or with the type that it is bound as.
sub ask {
    my ($name, $from, @values) = @_;
    eval {
        my $statement = $connection->prepare("SELECT count(*) FROM $from");
        for my $run (1 .. 7) {
            for my $place (1 .. @values) {
                my $value = $values[$place - 1];
                $statement->bind_param($place, ref $value eq 'HASH' ? ($value->{is}, $value->{as}) : $value);
            }
            $statement->execute;
            my ($count) = $statement->fetchrow_array;
            $statement->finish;
            print "$name.$run\t$count\n";
        }
        1;
    } or print "$name\terror ", $connection->state, "\n";
    return;
}

my $older = 'users WHERE (age > 30) = ?';
ask('boolean.one', $older, 1);
ask('boolean.zero', $older, 0);
ask('boolean.true', $older, 'TRUE');
ask('boolean.typed', $older, { is => 1, as => { pg_type => PG_BOOL } });
ask('boolean.typed_no', $older, { is => 0, as => { pg_type => PG_BOOL } });
ask('boolean.column', 'users WHERE newsletter = ?', 't');
ask('boolean.null', 'users WHERE newsletter = ?', undef);
ask('date.text', 'users WHERE joined > ?', '2021-06-01');
ask('date.typed', 'users WHERE joined > ?', { is => '20210601', as => { pg_type => PG_DATE } });
ask('date.moment', 'users WHERE joined > ?', '2021-06-01T10:00:00Z');
ask('timestamp.text', 'orders WHERE at > ?', '2024-06-01T12:30:15.123');
ask('timestamp.spoken', 'orders WHERE at > ?', 'Sat Jun  1 12:30:15 2024');
ask('timestamptz.typed', 'users WHERE seen > ?', { is => '2024-06-01 12:30 +02', as => { pg_type => PG_TIMESTAMPTZ } });
ask('time.text', 'orders WHERE at::time < ?', '5:30 PM');
ask('interval.text', "orders WHERE at > timestamp '2025-12-01' - ?::interval", '1 year 2 months');
ask('interval.typed', "orders WHERE at > timestamp '2025-12-01' - ?", { is => 'P1Y2M', as => { pg_type => PG_INTERVAL } });
ask('integer.number', 'users WHERE age > ?', 40);
ask('integer.text', 'users WHERE age > ?', ' 40 ');
ask('integer.fraction', 'users WHERE age > ?', 40.5);
ask('numeric.number', 'orders WHERE amount > ?', 10.5);
ask('numeric.text', 'orders WHERE amount > ?', '1e1');
ask('double.number', 'items WHERE price > ?', 8.5);
ask('double.hexadecimal', 'items WHERE price > ?', '0x1p3');
ask('double.infinite', 'items WHERE price > ?', 1e300);
ask('real.number', 'users WHERE height > ?', 1.7);
ask('array.numbers', 'users WHERE age = ANY (?)', [20, undef, 30]);
ask('array.texts', 'users WHERE plan = ANY (?)', ['pro', 'NULL', 'a "b", c']);
ask('unit.trunc', 'orders WHERE date_trunc(?, at) = ?', 'month', '2024-06-01');
ask('unit.part', 'orders WHERE date_part(?, at) = ?', 'Year', 2024);
ask('unit.format', 'orders WHERE to_char(at, ?) = ?', 'YYYY-MM', '2024-06');
ask('unit.none', 'orders WHERE date_trunc(?, at) = ?', 'fortnight', '2024-06-01');
ask('text.text', 'users WHERE plan = ?', 'pro');
$connection->disconnect;
print "done\tyes\n";
