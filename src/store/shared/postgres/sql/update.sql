-- A swap of one record that is there: $1 digest, $2 key, $3 expected revision, $4 record, $5 the time from which it is
-- idle, or null, $6 the channel for changes. The columns are those of swap.sql. There is no row if the record is absent or
-- has another revision: a change of another process while this one waits for its lock leads to that, too.
UPDATE {schema}.records
SET revision = nextval('{schema}.revisions'), record = $4::text,
    idle_from = CASE WHEN $5::bigint IS NOT NULL THEN GREATEST($5::bigint, {now}) END
WHERE digest = $1::bytea AND revision = $3::bigint
RETURNING revision, false, false, {now}, {last},
          pg_notify($6, CASE WHEN octet_length($2::text) < 8000 THEN $2 ELSE '' END)::text, NULL::bigint, NULL::text
