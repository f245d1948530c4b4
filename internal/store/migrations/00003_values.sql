-- Large values and documents.

-- +goose Up
create table artifacts (
    tenant_id   text not null references tenants,
    artifact_id text not null check (artifact_id <> ''),
    session_id  text not null default '',
    media_type  text not null default 'application/octet-stream',
    size        bigint not null default 0 check (size >= 0),
    sealed      boolean not null default false, -- nothing is appended any more
    created_at  timestamptz not null default now(),
    primary key (tenant_id, artifact_id)
);

create table artifact_chunks (
    tenant_id   text not null,
    artifact_id text not null,
    at          bigint not null check (at >= 0),
    data        bytea not null check (length(data) between 1 and 1048576),
    primary key (tenant_id, artifact_id, at),
    foreign key (tenant_id, artifact_id) references artifacts on delete cascade
);
alter table artifact_chunks alter column data set storage external; -- so that a piece of a chunk is read alone

create table documents (
    tenant_id  text not null references tenants,
    kind       text not null check (kind <> ''),
    name       text not null check (name <> ''),
    version    text not null check (version <> ''),
    body       bytea not null,
    current    boolean not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, kind, name, version)
);
create unique index documents_current on documents (tenant_id, kind, name) where current;

-- +goose StatementBegin
do $$
declare name text;
begin
    foreach name in array array['artifacts', 'artifact_chunks', 'documents'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy tenant on %I
            using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
            with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, name);
    end loop;
end $$;
-- +goose StatementEnd
-- What belongs to everybody is read by all and written by the owner of the tables alone.
create policy everybody on documents for select using (tenant_id = '_global');
create policy operator on documents to current_role using (tenant_id = '_global') with check (tenant_id = '_global');

-- +goose Down
drop table documents, artifact_chunks, artifacts;
