#!/bin/sh
# Creates the roles and the databases of jig and Temporal. It runs once, when the volume is empty. jig_owner owns jig's tables and runs
# migrations; workers connect as jig_app and servers as jig_server, to which row-level security applies.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" \
  -v owner="$JIG_OWNER_PASSWORD" -v app="$JIG_APP_PASSWORD" -v server="$JIG_SERVER_PASSWORD" -v temporal="$TEMPORAL_DB_PASSWORD" <<'SQL'
create role jig_owner login nosuperuser nocreatedb nocreaterole nobypassrls password :'owner';
create role jig_app login nosuperuser nocreatedb nocreaterole nobypassrls password :'app';
create role jig_server login nosuperuser nocreatedb nocreaterole nobypassrls password :'server';
create role temporal login nosuperuser createdb nocreaterole nobypassrls password :'temporal';
create database jig owner jig_owner;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke connect, temporary on database jig, temporal, temporal_visibility from public;
grant connect on database jig to jig_app, jig_server;
\connect jig
revoke create on schema public from public;
grant usage, create on schema public to jig_owner;
SQL
