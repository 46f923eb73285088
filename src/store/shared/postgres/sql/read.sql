-- $1 digest, $2 bucket.
SELECT records.revision, records.record, floors.revision, {now}, {last}
FROM {schema}.floors LEFT JOIN {schema}.records ON records.digest = $1
WHERE floors.bucket = $2
