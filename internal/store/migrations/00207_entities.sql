-- Entities, their tasks, relations and workspaces, the texts that belong to them, and artifacts.

-- +goose Up
-- +goose StatementBegin

-- The next four functions read a field of an entity's content as its declared type. They return null if the field is missing, null or
-- of another type, so that no value makes a query fail.
create function jig_text(content jsonb, path text[]) returns text
language sql immutable parallel safe
return case jsonb_typeof(content #> path) when 'string' then content #>> path end;

create function jig_number(content jsonb, path text[]) returns numeric
language sql immutable parallel safe
return case jsonb_typeof(content #> path) when 'number' then (content #>> path)::numeric end;

create function jig_boolean(content jsonb, path text[]) returns boolean
language sql immutable parallel safe
return case jsonb_typeof(content #> path) when 'boolean' then (content #>> path)::boolean end;

-- Reads a date (as midnight UTC) or an RFC 3339 time, truncated to microseconds. The pattern rejects whatever a cast would reject.
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
    key          text not null default '', -- of the request that created the entity
    patch_key    text not null default '', -- of the request that last changed it
    untrusted    boolean not null default false, -- whether a session wrote it that had read untrusted data
    session_id   text not null default '', -- the session and call of its latest extraction
    call_id      text not null default '',
    words        tsvector generated always as
        (to_tsvector('simple', title) || jsonb_to_tsvector('simple', content, '["string"]')) stored,
    created_at   timestamptz not null default clock_timestamp(),
    updated_at   timestamptz not null default clock_timestamp(),
    deleted_at   timestamptz,
    primary key (tenant_id, entity_id)
);
-- There is no GIN index on content, on words or on the words of texts. Under row-level security PostgreSQL does not use an index with an
-- operator that is not leakproof, and those of jsonb and tsvector are not. Queries find rows by tenant and type and check each one.
create unique index entities_key on entities (tenant_id, key) where key <> '';
create index entities_of_type on entities (tenant_id, type, created_at, entity_id collate "C") where deleted_at is null;
create index entities_id on entities (entity_id); -- for jig_entity_elsewhere
select jig_isolate('entities');
-- Only the owner sees the entities of all tenants, and only in functions that set jig.sweep.
create policy sweep_read on entities for select to current_role using (current_setting('jig.sweep', true) = 'on');

-- Reports whether an entity with this id belongs to another tenant than the current one. It serves the audit only: the caller gets
-- the same answer as for an id that does not exist.
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
revoke all on function jig_entity_elsewhere(text) from public;

-- How each task of an entity last ended. The entity's next extraction reads it.
create table entity_tasks (
    tenant_id  text not null,
    entity_id  text not null,
    task       text not null check (task <> ''),
    ended      bytea not null, -- JSON
    updated_at timestamptz not null default clock_timestamp(),
    -- The outcome begins with its status. It is compared as bytes, because PostgreSQL cannot read members of JSON that has NUL or half of a
    -- surrogate pair in a value.
    failed     boolean not null generated always as (
        substring(ended from 1 for 18) = '{"status":"failed"'::bytea or substring(ended from 1 for 20) = '{"status":"canceled"'::bytea
    ) stored,
    primary key (tenant_id, entity_id, task),
    foreign key (tenant_id, entity_id) references entities on delete cascade
);
create index entity_tasks_failed on entity_tasks (tenant_id, entity_id, task) where failed;
select jig_isolate('entity_tasks');

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
select jig_isolate('relations');

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
select jig_isolate('workspaces');

create table texts (
    tenant_id   text not null references tenants on delete cascade,
    document_id text not null check (document_id <> ''),
    entity_id   text, -- null: the text belongs to no entity
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
select jig_isolate('texts');

-- The chunks of a text. If a text becomes shorter, the chunks that it no longer needs are empty.
create table text_chunks (
    tenant_id   text not null,
    document_id text not null,
    n           integer not null check (n >= 0),
    body        text not null,
    words       tsvector generated always as (to_tsvector('simple', body)) stored,
    primary key (tenant_id, document_id, n),
    foreign key (tenant_id, document_id) references texts on delete cascade
);
select jig_isolate('text_chunks');

-- Large values, stored in chunks.
create table artifacts (
    tenant_id   text not null references tenants,
    artifact_id text not null check (artifact_id <> ''),
    session_id  text not null default '',
    media_type  text not null default 'application/octet-stream',
    size        bigint not null default 0 check (size >= 0),
    sealed      boolean not null default false, -- true: nothing can be appended
    created_at  timestamptz not null default now(),
    primary key (tenant_id, artifact_id)
);
create index artifacts_id on artifacts (artifact_id); -- for jig_value_elsewhere
select jig_isolate('artifacts');
-- Only the owner sees the artifacts of all tenants, and only in functions that set jig.sweep.
create policy sweep_read on artifacts for select to current_role using (current_setting('jig.sweep', true) = 'on');

create table artifact_chunks (
    tenant_id   text not null,
    artifact_id text not null,
    at          bigint not null check (at >= 0), -- the offset in bytes
    data        bytea not null check (length(data) between 1 and 1048576),
    primary key (tenant_id, artifact_id, at),
    foreign key (tenant_id, artifact_id) references artifacts on delete cascade
);
alter table artifact_chunks alter column data set storage external; -- so that a part of a chunk can be read without the rest
select jig_isolate('artifact_chunks');

-- Reports whether an artifact or a session with this id belongs to another tenant than the current one. It serves the audit only: the
-- caller gets the same answer as for an id that does not exist.
create function jig_value_elsewhere(artifact text, session text) returns boolean
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
    select exists (select from artifacts a where a.artifact_id = artifact and a.tenant_id <> tenant)
        or exists (select from sessions s where s.session_id = session and s.tenant_id <> tenant) into found_elsewhere;
    perform set_config('jig.sweep', '', true);
    return found_elsewhere;
end $$;
revoke all on function jig_value_elsewhere(text, text) from public;

-- +goose StatementEnd
