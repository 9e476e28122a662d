"""The harvester's own tables: their models, the engine, the migrations."""
