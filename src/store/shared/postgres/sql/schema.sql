-- The tables of a store. {schema} stands for `store.schema`.
CREATE SCHEMA IF NOT EXISTS {schema};
-- A rollback returns no number, so no revision is given twice.
CREATE SEQUENCE IF NOT EXISTS {schema}.revisions;
-- The incarnation, which begins this store's version tags, and the version of these tables.
CREATE TABLE IF NOT EXISTS {schema}.store (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    format integer NOT NULL DEFAULT 1,
    incarnation text NOT NULL
);
-- The digest is the key of the table, because an index takes no text of any length. No column that changes has an index,
-- and half of each page is free: so a change stays within its page.
CREATE TABLE IF NOT EXISTS {schema}.records (
    digest bytea PRIMARY KEY,
    key text NOT NULL,
    revision bigint NOT NULL,
    idle_from bigint,
    record text NOT NULL
) WITH (fillfactor = 50);
-- By the beginnings of keys, the records below a collection are found.
CREATE INDEX IF NOT EXISTS records_below ON {schema}.records (left(key, 256) COLLATE "C");
-- The revision of absent records, by bucket.
CREATE TABLE IF NOT EXISTS {schema}.floors (
    bucket integer PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 0
);
INSERT INTO {schema}.floors (bucket) SELECT generate_series(0, 65535) ON CONFLICT DO NOTHING;
