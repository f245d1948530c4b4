-- What reaches over tenants, or deletes: functions of the owner that do one thing each. The application role may execute
-- them and holds no right to delete by itself.

-- +goose Up
-- Only the owner, and only inside a function that says so, sees the sessions of all tenants.
create policy sweep_read on sessions for select to current_role using (current_setting('jig.sweep', true) = 'on');
create policy sweep_mark on sessions for update to current_role using (current_setting('jig.sweep', true) = 'on');

-- Live sessions that have been quiet for a minute; those that were listed longest ago come first.
-- +goose StatementBegin
create function jig_live_sessions(max_rows integer)
returns table (tenant_id text, session_id text, status text, updated_at timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    -- Materialized: inside a join the limit would be taken anew for each row of the other side.
    return query with picked as materialized (
        select q.tenant_id, q.session_id from sessions q
        where q.status in ('working', 'input_required') and q.updated_at < now() - interval '1 minute'
        order by q.swept_at nulls first, q.updated_at
        limit max_rows
        for update skip locked
    )
    update sessions s set swept_at = clock_timestamp()
    from picked
    where s.tenant_id = picked.tenant_id and s.session_id = picked.session_id
    returning s.tenant_id, s.session_id, s.status, s.updated_at;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- The counters of the sessions that a process watches: the net under its notifications.
-- +goose StatementBegin
create function jig_last_seqs(tenants text[], sessions text[])
returns table (tenant_id text, session_id text, last_seq bigint)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query select s.tenant_id, s.session_id, s.last_seq
    from unnest($1, $2) as w(tenant_id, session_id)
    join sessions s on s.tenant_id = w.tenant_id and s.session_id = w.session_id;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Deletes the ended sessions of the current tenant that were last touched before a time, with all that belongs to them.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Deletes everything of the current tenant.
-- +goose StatementBegin
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
    delete from tenants t where t.tenant_id = tenant;
end $$;
-- +goose StatementEnd

revoke all on function jig_live_sessions(integer), jig_last_seqs(text[], text[]), jig_prune(timestamptz), jig_erase() from public;

-- +goose Down
drop function jig_erase(), jig_prune(timestamptz), jig_last_seqs(text[], text[]), jig_live_sessions(integer);
drop policy sweep_mark on sessions;
drop policy sweep_read on sessions;
