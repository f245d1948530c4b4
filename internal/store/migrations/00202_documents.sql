-- Documents and bundles, and what follows from a new document of a tenant.

-- +goose Up
-- +goose StatementBegin

-- All registered versions of documents. At most one version of a document is current.
create table documents (
    tenant_id  text not null references tenants,
    kind       text not null check (kind <> ''),
    name       text not null check (name <> ''),
    version    text not null check (version <> ''),
    body       bytea not null,
    current    boolean not null,
    bundle     text not null default '', -- the bundle that made this version current; '': the tenant itself
    -- Whether the text may be an outsider's: a call registered the version whose arguments could not be traced. It stays so when the same version is
    -- registered or restored again. null: nobody has registered the version, it was only run.
    untrusted  boolean,
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

-- Workers know a new document of the tenant a second after it was committed.
create function jig_recheck() returns trigger
language plpgsql security definer
set search_path from current
as $$
begin
    update tenants t set recheck_at = clock_timestamp() + interval '2 seconds' where t.tenant_id = new.tenant_id;
    return null;
end $$;
create constraint trigger recheck after insert or update on documents deferrable initially deferred
    for each row when (new.kind = 'tenant' and new.name = new.tenant_id and new.tenant_id <> '_global') execute function jig_recheck();

-- Takes up to max_rows tenants whose approvals are due to be checked. Nobody else gets them for the duration of the lease, at the end of which
-- they are due again.
create function jig_take_rechecks(lease interval, max_rows integer)
returns table (tenant_id text, due timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query with picked as materialized (
        select q.tenant_id from tenants q where q.recheck_at <= clock_timestamp() order by q.recheck_at limit max_rows for update skip locked
    )
    update tenants t set recheck_at = clock_timestamp() + lease from picked where t.tenant_id = picked.tenant_id
    returning t.tenant_id, t.recheck_at;
    perform set_config('jig.sweep', '', true);
end $$;

-- Records that the approvals of the current tenant were checked, unless people have changed since then.
create function jig_rechecked(due timestamptz) returns void
language plpgsql volatile security definer
set search_path from current
as $$
begin
    update tenants t set recheck_at = null where t.tenant_id = nullif(current_setting('jig.tenant', true), '') and t.recheck_at = due;
end $$;
revoke all on function jig_recheck(), jig_take_rechecks(interval, integer), jig_rechecked(timestamptz) from public;

-- +goose StatementEnd
