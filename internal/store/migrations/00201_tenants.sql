-- The installation and its tenants, and how tenants are isolated from each other.

-- +goose Up
-- +goose StatementBegin

-- Functions that pin their search path with "from current" get the path of the migration: the owner's schema, then pg_temp.

-- Isolates the tenants in a table: a transaction reads and writes only rows of the tenant that it named in the setting jig.tenant,
-- and none if it named no tenant. The owner is bound as well. Rows of the tenant _global cannot be written this way. Migrations call
-- this function for each table that has a tenant_id; nobody else may.
create function jig_isolate(isolated regclass) returns void
language plpgsql
set search_path from current
as $$
begin
    execute format('alter table %s enable row level security', isolated);
    execute format('alter table %s force row level security', isolated);
    execute format($p$create policy tenant on %s
        using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
        with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, isolated);
end $$;
revoke all on function jig_isolate(regclass) from public;

-- The installation's id, in a single row, and the key of the texts that processes send each other while models write them. Workers can read
-- the row but not change it.
create table installation (
    single     boolean primary key default true check (single),
    id         text not null check (id ~ '^[a-z0-9][a-z0-9_-]{0,39}$'),
    text_key   bytea not null default sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
    created_at timestamptz not null default now()
);
insert into installation (id) values ('ins_' || replace(gen_random_uuid()::text, '-', ''));

-- The tenant _global owns the documents that all tenants share.
create table tenants (
    tenant_id  text primary key check (tenant_id = '_global' or tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    created_at timestamptz not null default now(),
    recheck_at timestamptz -- when a worker checks its open approvals again, because the people who may decide them have changed; null: nothing has changed
);
create index tenants_recheck on tenants (recheck_at) where recheck_at is not null;
select jig_isolate('tenants');
-- Only the owner sees all tenants, and only in functions that set jig.sweep.
create policy sweep on tenants to current_role using (current_setting('jig.sweep', true) = 'on');
create policy operator on tenants to current_role using (tenant_id = '_global') with check (tenant_id = '_global');
insert into tenants (tenant_id) values ('_global');

-- +goose StatementEnd
