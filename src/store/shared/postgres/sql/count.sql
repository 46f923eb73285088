SELECT count(*) FROM {schema}.records
