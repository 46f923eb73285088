-- $1 digest, $2 bucket, $3 the idle time in milliseconds.
-- The floor is locked before the record, as by a swap that creates one.
WITH floor AS MATERIALIZED (
    SELECT bucket FROM {schema}.floors WHERE bucket = $2 FOR UPDATE
), gone AS (
    DELETE FROM {schema}.records USING floor WHERE digest = $1 AND idle_from <= {now} - $3 RETURNING records.revision
)
UPDATE {schema}.floors SET revision = GREATEST(floors.revision, gone.revision) FROM gone WHERE bucket = $2
RETURNING 1
