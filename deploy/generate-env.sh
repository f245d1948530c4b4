#!/bin/sh
# Writes .env with a random password for each database role of docker-compose.yml. Run it once, in the folder of the compose file:
#   deploy/generate-env.sh
# It never replaces a file, because the database volume was created with the passwords in it.
set -eu
file=${1:-.env}
if [ -e "$file" ]; then
  echo "error: $file exists; the database volume was created with its passwords. Remove both to start over." >&2
  exit 2
fi
umask 077
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
{
  echo "# Passwords of docker-compose.yml, made by deploy/generate-env.sh. Keep this file out of version control."
  for name in POSTGRES_PASSWORD JIG_OWNER_PASSWORD JIG_APP_PASSWORD JIG_SERVER_PASSWORD TEMPORAL_DB_PASSWORD; do
    echo "$name=$(random)"
  done
  echo "# PRINCIPAL:PUBLICKEY of the first approver, printed by: jig key new --principal operator --out operator.key"
  echo "JIG_OPERATOR_KEY="
} >"$file"
echo "wrote $file; set JIG_OPERATOR_KEY in it, then: docker compose up --build" >&2
