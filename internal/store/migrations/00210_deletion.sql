-- Deleting sessions and tenants. The application's role has no right to delete rows; it calls these functions.

-- +goose Up
-- +goose StatementBegin

-- SHA-256 hashes of the ids of deleted sessions. They remain even if the tenant is erased: an effect that ran under an id must not run
-- again under the same idempotency key.
create table retired_sessions (
    tenant_id  text not null,
    id_hash    bytea not null check (octet_length(id_hash) = 32),
    retired_at timestamptz not null default now(),
    primary key (tenant_id, id_hash)
);
select jig_isolate('retired_sessions');

-- Remembers the id of a deleted session. Sessions that another session started are left out, because nothing can start them again once
-- that session is gone.
create function jig_retire_session() returns trigger
language plpgsql
set search_path from current
as $$
begin
    insert into retired_sessions (tenant_id, id_hash) values (old.tenant_id, sha256(convert_to(old.session_id, 'UTF8')))
    on conflict do nothing;
    return old;
end $$;
create trigger retire before delete on sessions for each row when (old.parent_id = '') execute function jig_retire_session();

-- Deletes the ended sessions of the current tenant that have not changed since a time, with everything that belongs to them. Returns
-- how many it deleted.
create function jig_prune(before timestamptz) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    tenant text := nullif(current_setting('jig.tenant', true), '');
    gone text[];
begin
    select array_agg(q.session_id) into gone from (
        select s.session_id from sessions s
        where s.tenant_id = tenant and s.status in ('completed', 'failed', 'canceled') and s.updated_at < before
        for update) q;
    if gone is null then
        return 0;
    end if;
    delete from events e where e.tenant_id = tenant and e.session_id = any(gone);
    delete from artifacts a where a.tenant_id = tenant and a.session_id = any(gone);
    delete from sessions s where s.tenant_id = tenant and s.session_id = any(gone);
    return cardinality(gone);
end $$;

-- Deletes everything of the current tenant, except retired_sessions and used_tokens.
create function jig_erase() returns void
language plpgsql volatile security definer
set search_path from current
as $$
declare
    tenant text := nullif(current_setting('jig.tenant', true), '');
begin
    if tenant is null or tenant = '_global' then
        raise exception 'name the tenant to erase' using errcode = '42501';
    end if;
    perform 1 from sessions s where s.tenant_id = tenant for update;
    delete from sessions s where s.tenant_id = tenant;
    delete from events e where e.tenant_id = tenant;
    delete from artifacts a where a.tenant_id = tenant;
    delete from documents d where d.tenant_id = tenant;
    delete from credentials c where c.tenant_id = tenant;
    delete from credential_events c where c.tenant_id = tenant;
    delete from tenants t where t.tenant_id = tenant;
end $$;
revoke all on function jig_prune(timestamptz), jig_erase() from public;

-- +goose StatementEnd
