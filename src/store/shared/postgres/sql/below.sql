-- $1 the beginning of the keys, $2 the key before the first one, $3 the maximum number of records. Keys are visible ASCII.
SELECT key, revision, record, {now}, {last}
FROM {schema}.records
WHERE left(key, 256) COLLATE "C" >= left($2::text, 256) COLLATE "C"
    AND left(key, 256) COLLATE "C" <= left($1::text || chr(127), 256) COLLATE "C"
    AND key COLLATE "C" > $2::text COLLATE "C" AND starts_with(key, $1::text)
ORDER BY left(key, 256) COLLATE "C", key COLLATE "C" LIMIT $3
