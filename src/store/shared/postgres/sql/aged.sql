-- $1 the digest before the first one, $2 the idle time in milliseconds, $3 the maximum number of records.
SELECT key FROM {schema}.records WHERE digest > $1 AND idle_from <= {now} - $2 ORDER BY digest LIMIT $3
