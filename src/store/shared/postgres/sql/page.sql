-- $1 the digest before the first one, $2 the maximum number of records.
SELECT key, revision, record, {now}, {last}
FROM {schema}.records WHERE digest > $1 ORDER BY digest LIMIT $2
