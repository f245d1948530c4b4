#!/bin/sh
# Brings Temporal's two databases to the schema of the image's version. Safe to run again.
set -eu
schema() {
  tool="temporal-sql-tool --plugin $DB --ep $POSTGRES_SEEDS -p $DB_PORT -u $POSTGRES_USER --db $1"
  # setup-schema fails if its version table exists; then only the update is needed
  $tool setup-schema -v 0.0 || echo "$1 has a schema already"
  $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$2/versioned"
}
schema temporal temporal
schema temporal_visibility visibility
