-- Bundles that tenants have, whose documents are whose, and which call fills an entity.

-- +goose Up
create table bundles (
    tenant_id    text not null references tenants on delete cascade,
    name         text not null check (name <> ''),
    version      text not null check (version <> ''),
    hash         text not null check (hash <> ''),
    manifest     jsonb not null check (jsonb_typeof(manifest) = 'object'),
    documents    jsonb not null check (jsonb_typeof(documents) = 'array'), -- of {kind, name, version}
    installed_at timestamptz not null default clock_timestamp(),
    installed_by text not null default '',
    removed_at   timestamptz, -- null: the tenant has it
    primary key (tenant_id, name)
);
alter table bundles enable row level security;
alter table bundles force row level security;
create policy tenant on bundles
    using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
    with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global');

alter table documents add column bundle text not null default ''; -- that made the version the current one; '': nobody but the tenant
alter table frames add column entity_id text not null default ''; -- that it fills
alter table entities
    add column session_id text not null default '', -- of the latest extraction of it
    add column call_id text not null default '';

-- +goose Down
alter table entities drop column call_id, drop column session_id;
alter table frames drop column entity_id;
alter table documents drop column bundle;
drop table bundles;
