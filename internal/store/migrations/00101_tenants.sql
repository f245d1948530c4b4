-- The installation, its tenants, their documents and bundles, and the tokens that they have used.

-- +goose Up

-- Functions that pin their search path with "from current" get the path of the migration: the owner's schema, then pg_temp.

-- Isolates the tenants in a table: a transaction reads and writes only rows of the tenant that it named in the setting jig.tenant,
-- and none if it named no tenant. The owner is bound as well. Rows of the tenant _global cannot be written this way. Migrations call
-- this function for each table that has a tenant_id; nobody else may.
-- +goose StatementBegin
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
-- +goose StatementEnd
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
    created_at timestamptz not null default now()
);
select jig_isolate('tenants');
create policy operator on tenants to current_role using (tenant_id = '_global') with check (tenant_id = '_global');
insert into tenants (tenant_id) values ('_global');

-- All registered versions of documents. At most one version of a document is current.
create table documents (
    tenant_id  text not null references tenants,
    kind       text not null check (kind <> ''),
    name       text not null check (name <> ''),
    version    text not null check (version <> ''),
    body       bytea not null,
    current    boolean not null,
    bundle     text not null default '', -- the bundle that made this version current; '': the tenant itself
    created_at timestamptz not null default now(),
    primary key (tenant_id, kind, name, version)
);
create unique index documents_current on documents (tenant_id, kind, name) where current;
select jig_isolate('documents');
-- Every tenant can read the documents of _global. Only the owner of the tables can write them.
create policy everybody on documents for select using (tenant_id = '_global');
create policy operator on documents to current_role using (tenant_id = '_global') with check (tenant_id = '_global');

create table bundles (
    tenant_id    text not null references tenants on delete cascade,
    name         text not null check (name <> ''),
    hash         text not null check (hash <> ''),
    manifest     jsonb not null check (jsonb_typeof(manifest) = 'object'),
    documents    jsonb not null check (jsonb_typeof(documents) = 'array'), -- of {kind, name, version}
    installed_at timestamptz not null default clock_timestamp(),
    installed_by text not null default '',
    removed_at   timestamptz, -- null while the bundle is installed
    primary key (tenant_id, name)
);
select jig_isolate('bundles');

-- Tokens that have been used; each can be used for one request. A row stays until its token has expired, even if the tenant is
-- erased before then, so there is no foreign key.
create table used_tokens (
    tenant_id  text not null,
    token      text not null check (token <> ''), -- SHA-256 of the key's id and the token's id
    request    text not null, -- the request that used it, which may be retried
    changed    boolean not null, -- whether that request changed anything
    expires_at timestamptz not null,
    primary key (tenant_id, token)
);
create index used_tokens_age on used_tokens (expires_at);
select jig_isolate('used_tokens');
-- Only the owner sees the tokens of all tenants, and only in functions that set jig.sweep.
create policy sweep on used_tokens to current_role using (current_setting('jig.sweep', true) = 'on');

-- Deletes up to max_rows tokens, of all tenants, that expired more than age ago. Returns how many it deleted.
-- +goose StatementBegin
create function jig_forget_tokens(age interval, max_rows integer) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    gone bigint;
begin
    perform set_config('jig.sweep', 'on', true);
    with old as materialized (
        select q.tenant_id, q.token from used_tokens q
        where q.expires_at < now() - age
        order by q.expires_at
        limit max_rows
        for update skip locked
    )
    delete from used_tokens u using old where u.tenant_id = old.tenant_id and u.token = old.token;
    get diagnostics gone = row_count;
    perform set_config('jig.sweep', '', true);
    return gone;
end $$;
-- +goose StatementEnd
revoke all on function jig_forget_tokens(interval, integer) from public;

-- +goose Down
drop function jig_forget_tokens(interval, integer);
drop table used_tokens, bundles, documents, tenants, installation;
drop function jig_isolate(regclass);
