"""The harvester's own tables: models, engine, migrations, locks, bulk inserts, and the dialects of databases."""
