-- Typed records, how they are related, and the texts that belong to them.

-- +goose Up
-- What a field of a content holds, as its declared type; null when it is missing, null or of another type, so that one odd
-- value spoils no query.
create function jig_text(content jsonb, path text[]) returns text
language sql immutable parallel safe
return case jsonb_typeof(content #> path) when 'string' then content #>> path end;

create function jig_number(content jsonb, path text[]) returns numeric
language sql immutable parallel safe
return case jsonb_typeof(content #> path) when 'number' then (content #>> path)::numeric end;

create function jig_boolean(content jsonb, path text[]) returns boolean
language sql immutable parallel safe
return case jsonb_typeof(content #> path) when 'boolean' then (content #>> path)::boolean end;

-- A date (midnight UTC) or a time of RFC 3339, cut to microseconds. The pattern lets nothing through that a cast would refuse.
-- +goose StatementBegin
create function jig_moment(content jsonb, path text[]) returns timestamptz
language plpgsql immutable parallel safe
as $$
declare
    s text := jig_text(content, path);
begin
    if s is null or s !~ ('^(?!0000)[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-9]))'
            || '(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]))?$')
        or substring(s, 6, 5) = '02-29' and extract(day from make_date(substring(s, 1, 4)::int, 3, 1) - 1) <> 29
    then
        return null;
    end if;
    return ((substring(s, 1, 10) || coalesce(' ' || nullif(substring(s, 12, 8), ''), '') || coalesce(substring(s from '\.[0-9]{1,6}'), ''))::timestamp
        - coalesce(substring(s from '[+-][0-9]{2}:[0-9]{2}$'), '00:00')::interval) at time zone 'UTC';
end $$;
-- +goose StatementEnd

create table entities (
    tenant_id    text not null references tenants on delete cascade,
    entity_id    text not null check (entity_id <> ''),
    type         text not null check (type <> ''),
    type_version text not null default '',
    title        text not null default '',
    content      jsonb not null check (jsonb_typeof(content) = 'object'),
    provenance   jsonb not null default '{}' check (jsonb_typeof(provenance) = 'object'),
    revision     bigint not null default 1 check (revision > 0),
    bundle       text not null default '',
    key          text not null default '', -- of the request that created it
    patch_key    text not null default '', -- of the latest change
    words        tsvector generated always as
        (to_tsvector('simple', title) || jsonb_to_tsvector('simple', content, '["string"]')) stored,
    created_at   timestamptz not null default clock_timestamp(),
    updated_at   timestamptz not null default clock_timestamp(),
    deleted_at   timestamptz,
    primary key (tenant_id, entity_id)
);
create unique index entities_key on entities (tenant_id, key) where key <> '';
create index entities_of_type on entities (tenant_id, type, created_at, entity_id collate "C") where deleted_at is null;
create index entities_id on entities (entity_id); -- for jig_entity_elsewhere
-- No GIN index over content, words or chunks: where row-level security holds, PostgreSQL looks nothing up by an operator that is
-- not leakproof, and those of jsonb and tsvector are not. Rows are found by tenant and type, and looked at one by one.

create table relations (
    tenant_id  text not null,
    from_id    text not null,
    name       text not null check (name <> ''),
    to_id      text not null,
    created_at timestamptz not null default clock_timestamp(),
    removed_at timestamptz,
    primary key (tenant_id, from_id, name, to_id),
    foreign key (tenant_id, from_id) references entities on delete cascade,
    foreign key (tenant_id, to_id) references entities on delete cascade
);
create index relations_to on relations (tenant_id, to_id);

-- Named subsets of a tenant's entities.
create table workspaces (
    tenant_id  text not null,
    workspace  text not null check (workspace <> ''),
    entity_id  text not null,
    added_at   timestamptz not null default clock_timestamp(),
    removed_at timestamptz,
    primary key (tenant_id, workspace, entity_id),
    foreign key (tenant_id, entity_id) references entities on delete cascade
);
create index workspaces_of_entity on workspaces (tenant_id, entity_id);

create table texts (
    tenant_id   text not null references tenants on delete cascade,
    document_id text not null check (document_id <> ''),
    entity_id   text, -- null: of none
    title       text not null default '',
    media_type  text not null default 'text/plain',
    body        text not null,
    created_at  timestamptz not null default clock_timestamp(),
    updated_at  timestamptz not null default clock_timestamp(),
    deleted_at  timestamptz,
    primary key (tenant_id, document_id),
    foreign key (tenant_id, entity_id) references entities on delete cascade
);
create index texts_of_entity on texts (tenant_id, entity_id);

-- The parts of a text; those that a shorter version has no use for are empty.
create table text_chunks (
    tenant_id   text not null,
    document_id text not null,
    n           integer not null check (n >= 0),
    body        text not null,
    words       tsvector generated always as (to_tsvector('simple', body)) stored,
    primary key (tenant_id, document_id, n),
    foreign key (tenant_id, document_id) references texts on delete cascade
);

-- +goose StatementBegin
do $$
declare name text;
begin
    foreach name in array array['entities', 'relations', 'workspaces', 'texts', 'text_chunks'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy tenant on %I
            using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
            with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, name);
    end loop;
end $$;
-- +goose StatementEnd

-- Only the owner, and only inside a function that says so, sees the entities of all tenants.
create policy sweep_read on entities for select to current_role using (current_setting('jig.sweep', true) = 'on');

-- Whether an id is that of an entity of another tenant than the current one: yes or no, for the audit.
-- +goose StatementBegin
create function jig_entity_elsewhere(id text) returns boolean
language plpgsql volatile security definer
set search_path from current
as $$
declare
    tenant text := nullif(current_setting('jig.tenant', true), '');
    found_elsewhere boolean;
begin
    if tenant is null then
        raise exception 'name the tenant that asks' using errcode = '42501';
    end if;
    perform set_config('jig.sweep', 'on', true);
    select exists (select from entities e where e.entity_id = id and e.tenant_id <> tenant) into found_elsewhere;
    perform set_config('jig.sweep', '', true);
    return found_elsewhere;
end $$;
-- +goose StatementEnd
revoke all on function jig_entity_elsewhere(text) from public;

-- +goose Down
drop function jig_entity_elsewhere(text);
drop table text_chunks, texts, workspaces, relations, entities;
drop function jig_moment(jsonb, text[]), jig_boolean(jsonb, text[]), jig_number(jsonb, text[]), jig_text(jsonb, text[]);
