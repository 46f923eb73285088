-- Arrays, with an element for each swap: $1 digests, $2 keys, $3 buckets, $4 expected revisions, $5 records, $6 the
-- times from which they are idle, or null, $7 whether they may be created. $8 the channel for changes.
-- All processes lock in the same order, so that none waits for another in a circle: records, floors, new records, each
-- by its key.
WITH swaps AS MATERIALIZED (
    SELECT digest, key, bucket, expected, record, may_create, number,
           CASE WHEN idle_from IS NOT NULL THEN GREATEST(idle_from, {now}) END AS idle_from
    FROM unnest($1::bytea[], $2::text[], $3::integer[], $4::bigint[], $5::text[], $6::bigint[], $7::boolean[])
        WITH ORDINALITY AS swap (digest, key, bucket, expected, record, idle_from, may_create, number)
), locked AS MATERIALIZED (
    SELECT digest, revision, record FROM {schema}.records
    WHERE digest IN (SELECT digest FROM swaps) ORDER BY digest FOR UPDATE
), changed AS (
    UPDATE {schema}.records
    SET revision = nextval('{schema}.revisions'), record = swaps.record, idle_from = swaps.idle_from
    FROM swaps JOIN locked USING (digest)
    WHERE records.digest = swaps.digest AND records.revision = swaps.expected
    RETURNING records.digest, records.revision
), absent AS MATERIALIZED (
    -- Locked until the new records are there: otherwise one of them could be forgotten meanwhile, and the floor that
    -- was read would not be the last one.
    SELECT bucket, revision FROM {schema}.floors
    WHERE bucket IN (SELECT bucket FROM swaps WHERE digest NOT IN (SELECT digest FROM locked))
      AND (SELECT count(*) FROM changed) >= 0
    ORDER BY bucket FOR SHARE
), made AS (
    INSERT INTO {schema}.records (digest, key, revision, record, idle_from)
    SELECT digest, key, nextval('{schema}.revisions'), record, idle_from
    FROM swaps JOIN absent USING (bucket)
    WHERE absent.revision = expected AND may_create
    ORDER BY digest
    ON CONFLICT DO NOTHING
    RETURNING digest, revision
)
SELECT COALESCE(changed.revision, made.revision),
       made.revision IS NOT NULL,
       COALESCE(absent.revision = expected, false),
       {now},
       {last},
       CASE WHEN changed.revision IS NOT NULL OR made.revision IS NOT NULL THEN
           pg_notify($8, CASE WHEN octet_length(key) < 8000 THEN key ELSE '' END)::text
       END,
       -- What is there instead. It is locked, so it is the last state.
       CASE WHEN changed.revision IS NULL AND made.revision IS NULL THEN
           COALESCE(locked.revision, CASE WHEN absent.revision <> expected THEN absent.revision END)
       END,
       CASE WHEN changed.revision IS NULL THEN locked.record END
FROM swaps
LEFT JOIN locked USING (digest)
LEFT JOIN changed USING (digest)
LEFT JOIN made USING (digest)
LEFT JOIN absent USING (bucket)
ORDER BY number
