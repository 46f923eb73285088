-- $1 the first bucket, $2 the last one.
UPDATE {schema}.floors SET revision = nextval('{schema}.revisions') WHERE bucket BETWEEN $1 AND $2
