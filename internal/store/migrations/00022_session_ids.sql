-- Session ids are used once: for one request, and never again after the session was deleted.

-- +goose Up
alter table sessions add column request_digest text not null default ''; -- SHA-256 of what the session was started with

-- Ids of sessions that were pruned or erased, as SHA-256 hashes. They outlive their tenant's data: an effect that ran under an id must
-- not run again under the same idempotency key.
create table retired_sessions (
    tenant_id  text not null,
    id_hash    bytea not null check (octet_length(id_hash) = 32),
    retired_at timestamptz not null default now(),
    primary key (tenant_id, id_hash)
);
alter table retired_sessions enable row level security;
alter table retired_sessions force row level security;
create policy tenant on retired_sessions
    using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
    with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global');

-- +goose StatementBegin
create function jig_retire_session() returns trigger
language plpgsql
as $$
begin
    insert into retired_sessions (tenant_id, id_hash) values (old.tenant_id, sha256(convert_to(old.session_id, 'UTF8')))
    on conflict do nothing;
    return old;
end $$;
do $$
begin
    execute format('alter function jig_retire_session() set search_path = %I, pg_temp', current_schema());
end $$;
-- +goose StatementEnd
-- A session that another one started is not remembered: nothing can start it again once the other is gone.
create trigger retire before delete on sessions for each row when (old.parent_id = '') execute function jig_retire_session();

-- A token counts once for as long as it lives, also when its tenant is erased meanwhile; jig_forget_tokens removes it afterwards.
alter table used_tokens drop constraint used_tokens_tenant_id_fkey;

-- +goose Down
alter table used_tokens add foreign key (tenant_id) references tenants on delete cascade not valid;
drop trigger retire on sessions;
drop function jig_retire_session();
drop table retired_sessions;
alter table sessions drop column request_digest;
