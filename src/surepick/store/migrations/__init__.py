"""Changes of the schema, in order; run whenever a database is opened."""
