-- Tenants whose open approvals are to be checked again, because the people who may decide them have changed.

-- +goose Up

alter table tenants add column recheck_at timestamptz; -- when a worker checks them; null: nothing has changed
create index tenants_recheck on tenants (recheck_at) where recheck_at is not null;
-- Only the owner sees all tenants, and only in functions that set jig.sweep.
create policy sweep on tenants to current_role using (current_setting('jig.sweep', true) = 'on');

-- Workers know a new document of the tenant a second after it was committed.
-- +goose StatementBegin
create function jig_recheck() returns trigger
language plpgsql security definer
set search_path from current
as $$
begin
    update tenants t set recheck_at = clock_timestamp() + interval '2 seconds' where t.tenant_id = new.tenant_id;
    return null;
end $$;
-- +goose StatementEnd
create constraint trigger recheck after insert or update on documents deferrable initially deferred
    for each row when (new.kind = 'tenant' and new.name = new.tenant_id and new.tenant_id <> '_global') execute function jig_recheck();

-- Takes up to max_rows tenants whose approvals are due to be checked. Nobody else gets them for the duration of the lease, at the end of which
-- they are due again.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Records that the approvals of the current tenant were checked, unless people have changed since then.
-- +goose StatementBegin
create function jig_rechecked(due timestamptz) returns void
language plpgsql volatile security definer
set search_path from current
as $$
begin
    update tenants t set recheck_at = null where t.tenant_id = nullif(current_setting('jig.tenant', true), '') and t.recheck_at = due;
end $$;
-- +goose StatementEnd
revoke all on function jig_recheck(), jig_take_rechecks(interval, integer), jig_rechecked(timestamptz) from public;

-- +goose Down
drop trigger recheck on documents;
drop function jig_rechecked(timestamptz), jig_take_rechecks(interval, integer), jig_recheck();
drop policy sweep on tenants;
alter table tenants drop column recheck_at;
