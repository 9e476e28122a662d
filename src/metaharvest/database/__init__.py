"""The harvester's own tables: models, engine, migrations, locks, bulk inserts, and how the databases differ."""
