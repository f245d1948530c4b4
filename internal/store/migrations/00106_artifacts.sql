-- Artifacts: large values, stored in chunks.

-- +goose Up

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
-- +goose StatementBegin
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
-- +goose StatementEnd
revoke all on function jig_value_elsewhere(text, text) from public;

-- +goose Down
drop function jig_value_elsewhere(text, text);
drop table artifact_chunks, artifacts;
