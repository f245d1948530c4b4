-- Lists of what waits under any filter, and figures over approvals.

-- +goose Up
-- One index answers every list: its pages come in the order of its first columns, and what a filter leaves out is left out
-- within the index. Names that anybody may choose are cut short for it: an entry of an index has its bounds.
alter table approvals
    add column listed_agent text generated always as (left(agent, 200)) stored,
    add column listed_requester text generated always as (left(requested_by, 200)) stored;
drop index approvals_waiting;
create index approvals_listing on approvals (tenant_id, requested_at, id, kind collate "C", tool collate "C", session_id collate "C",
    listed_agent collate "C", listed_requester collate "C") where status = 'open';
-- Figures look at a stretch of time, of one tenant or of all.
create index approvals_decided_at on approvals (decided_at, tenant_id) where decided_at is not null;

-- How an approval ended; null while it is open. One that was approved stays so, whatever became of its call afterwards. One
-- that expired before its time was replaced: the tool had changed. So was one that a person ended without an answer: an edit
-- called for another.
create function jig_outcome(answer text, status text, grant_id text, decided_by text, decided_at timestamptz, expires_at timestamptz)
    returns text
language sql immutable parallel safe
return case
    when status = 'open' then null
    when answer = 'approve' and grant_id <> '' then 'granted'
    when answer = 'approve' then 'approved'
    when answer = 'deny' then 'denied'
    when answer = 'expire' and expires_at - decided_at < interval '1 minute' then 'expired'
    when answer = 'expire' or decided_by <> '' then 'replaced'
    else 'canceled' end;

-- Only the owner, and only inside a function that says so, sees the approvals of all tenants.
create policy sweep_read on approvals for select to current_role using (current_setting('jig.sweep', true) = 'on');

-- What waits, of all tenants.
-- +goose StatementBegin
create function jig_approvals_open() returns table (tenant text, kind text, count bigint, oldest timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select a.tenant_id, a.kind, count(*), min(a.requested_at) from approvals a where a.status = 'open' group by 1, 2;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- How the approvals of all tenants ended, from one time up to another.
-- +goose StatementBegin
create function jig_approvals_decided(since timestamptz, until timestamptz) returns table (tenant text, outcome text, count bigint)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select a.tenant_id, o.outcome, count(*)
    from approvals a, jig_outcome(a.answer, a.status, a.grant_id, a.decided_by, a.decided_at, a.expires_at) as o(outcome)
    where a.kind = 'approval' and a.decided_at >= since and a.decided_at < until and o.outcome is not null group by 1, 2;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- How fast people decided since a time, in seconds over all tenants, and what share expired.
-- +goose StatementBegin
create function jig_approvals_pace(since timestamptz) returns table (p50 float8, p90 float8, p99 float8, expired_share float8)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query with d as (
        select extract(epoch from a.decided_at - a.requested_at)::float8 as seconds,
            jig_outcome(a.answer, a.status, a.grant_id, a.decided_by, a.decided_at, a.expires_at) as outcome
        from approvals a where a.kind = 'approval' and a.decided_at >= since)
    select coalesce(q.p[1], 0), coalesce(q.p[2], 0), coalesce(q.p[3], 0), coalesce(q.expired::float8 / nullif(q.ended, 0), 0)
    from (select percentile_cont(array[0.5, 0.9, 0.99]::float8[]) within group (order by d.seconds)
            filter (where d.outcome in ('approved', 'denied')) as p,
            count(*) filter (where d.outcome = 'expired') as expired,
            count(*) filter (where d.outcome in ('approved', 'denied', 'expired')) as ended
        from d) q;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

revoke all on function jig_approvals_open(), jig_approvals_decided(timestamptz, timestamptz), jig_approvals_pace(timestamptz) from public;

-- +goose Down
drop function jig_approvals_pace(timestamptz), jig_approvals_decided(timestamptz, timestamptz), jig_approvals_open();
drop policy sweep_read on approvals;
drop function jig_outcome(text, text, text, text, timestamptz, timestamptz);
drop index approvals_decided_at;
drop index approvals_listing;
alter table approvals drop column listed_requester, drop column listed_agent;
create index approvals_waiting on approvals (tenant_id, requested_at, id) where status = 'open';
