-- Approvals and the decisions about them, grants, pauses, and the outbox of notices.

-- +goose Up
-- +goose StatementBegin

-- What waits or waited for a person: an approval, a question about an unknown outcome (reconcile), or a question of an agent.
create table approvals (
    tenant_id        text not null,
    id               bigint generated always as identity,
    session_id       text not null,
    call_id          text not null,
    kind             text not null check (kind in ('approval', 'reconcile', 'question')),
    status           text not null default 'open'
                     check (status in ('open', 'approved', 'denied', 'expired', 'canceled', 'consumed')),
    -- What is shown.
    tool             text not null,
    input            json,
    truncated        boolean not null default false,
    summary          text not null default '',
    reasons          json,
    question         json,
    preview          json, -- what the call will change; null if its tool has no previews
    digest           text not null default '',
    policy_version   text not null default '',
    agent            text not null default '',
    parent_id        text not null default '', -- the parent of the session that asks, and the parent's call
    parent_call      text not null default '',
    requested_by     text not null default '',
    requested_at     timestamptz not null,
    expires_at       timestamptz, -- null: never
    attempt          integer not null default 0, -- the attempt that a question about an unknown outcome is about; an answer about another does not count
    compared_at      timestamptz, -- when the latest comparison of the call with what people are shown began
    comparison       json, -- what that comparison found; null until it ends
    -- Who may decide, and what people have said so far.
    terms            json, -- null: one decision by anybody
    askers           json, -- on whose word the call rests
    votes            json,
    delegations      json,
    noticed_at       timestamptz, -- reminders and escalations that were due before this time have been handled
    -- The decision.
    answer           text not null default '',
    decided_by       text not null default '',
    claimed          boolean not null default false,
    note             text not null default '',
    reason           text not null default '',
    decision_key     text not null default '',
    grant_id         text not null default '', -- the grant that approved it
    approved_digest  text not null default '', -- differs from digest if the decision edited the input
    input_before     bytea,
    input_after      bytea,
    patch            json,
    decided_at       timestamptz,
    consumed_at      timestamptz,
    -- Shortened for the index approvals_listing, because an index entry has a maximum size and users choose these names.
    listed_agent     text generated always as (left(agent, 200)) stored,
    listed_requester text generated always as (left(requested_by, 200)) stored,
    primary key (tenant_id, id),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade,
    constraint approvals_consumed_once check ((status = 'consumed') = (consumed_at is not null)),
    constraint approvals_decided check ((status = 'open') = (decided_at is null))
);
create unique index approvals_one_open on approvals (tenant_id, session_id, call_id) where status = 'open';
create index approvals_call on approvals (tenant_id, session_id, call_id, id);
-- Serves every list, with any filter: its first columns give the order of the pages, and filters are checked within the index.
create index approvals_listing on approvals (tenant_id, requested_at, id, kind collate "C", tool collate "C", session_id collate "C",
    listed_agent collate "C", listed_requester collate "C") where status = 'open';
-- For the earlier decisions about calls of a tool, which an approval shows beside the call that waits.
create index approvals_of_tool on approvals (tenant_id, tool, decided_at desc, id desc)
    where kind = 'approval' and answer in ('approve', 'deny');
-- For statistics of a period, of one tenant or of all.
create index approvals_decided_at on approvals (decided_at, tenant_id) where decided_at is not null;
select jig_isolate('approvals');
-- Only the owner sees the approvals of all tenants, and only in functions that set jig.sweep.
create policy sweep_read on approvals for select to current_role using (current_setting('jig.sweep', true) = 'on');

-- Returns how an approval ended, or null while it is open. A given approval stays 'approved', whatever happens to its call later. An
-- approval is 'replaced' if it expired early because the tool changed, or if a person edited the input and the edit required a new
-- approval.
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

-- Counts the open approvals of all tenants.
create function jig_approvals_open() returns table (tenant text, kind text, count bigint, oldest timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select a.tenant_id, a.kind, count(*), min(a.requested_at) from approvals a where a.status = 'open' group by 1, 2;
    perform set_config('jig.sweep', '', true);
end $$;

-- Counts the approvals of all tenants that ended in a period, by outcome.
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

-- Returns how many seconds people have taken to decide since a time, over all tenants, and the share of approvals that expired.
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

revoke all on function jig_approvals_open(), jig_approvals_decided(timestamptz, timestamptz), jig_approvals_pace(timestamptz) from public;

-- The reply to each decision, under the decision's key, so that a repeated decision takes effect once.
create table decisions (
    tenant_id  text not null,
    session_id text not null,
    key        text not null check (key <> ''),
    ruled      json not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, session_id, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
select jig_isolate('decisions');

-- Decisions with the tokens that prove them, so that workers can verify the signatures again when a call begins.
create table signed_decisions (
    tenant_id  text not null,
    session_id text not null,
    call_id    text not null,
    n          bigint generated always as identity,
    token      text not null check (token <> ''),
    decision   json not null, -- what the token is about
    digest     text not null, -- the digest of the call that was shown
    shown      json not null, -- what that digest is of
    created_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, session_id, call_id, n),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade
);
select jig_isolate('signed_decisions');

-- Standing approvals.
create table grants (
    tenant_id  text not null references tenants on delete cascade,
    grant_id   text not null check (grant_id <> ''),
    tool       text not null check (tool <> ''),
    meaning    text not null default '', -- identifies the tool's contract when the grant was given; '' covers nothing
    agent      text not null default '',
    condition  text not null,
    max_uses   integer not null check (max_uses > 0),
    used       integer not null default 0,
    expires_at timestamptz not null,
    given_by   text[] not null check (cardinality(given_by) > 0),
    makers     json, -- the makers of the credentials of those who gave it, by giver
    proof      text not null default '', -- with which proof it was given
    claimed    boolean not null default false,
    note       text not null default '',
    session_id text not null default '',
    call_id    text not null default '',
    created_at timestamptz not null default now(),
    revoked_at timestamptz,
    revoked_by text not null default '',
    primary key (tenant_id, grant_id),
    constraint grants_never_overdrawn check (used between 0 and max_uses)
);
create index grants_live on grants (tenant_id, tool) where revoked_at is null;
select jig_isolate('grants');

create table pauses (
    tenant_id text not null references tenants on delete cascade,
    scope     text not null check (scope in ('tenant', 'tool', 'session')),
    target    text not null default '',
    by        text not null,
    claimed   boolean not null default false,
    reason    text not null default '',
    at        timestamptz not null default now(),
    lifted_at timestamptz,
    lifted_by text not null default '',
    primary key (tenant_id, scope, target),
    constraint pauses_target check ((scope = 'tenant') = (target = ''))
);
select jig_isolate('pauses');

-- The outbox. A notice is stored in the same transaction as the change that it reports.
create table notices (
    tenant_id  text not null,
    id         text not null check (id <> ''),
    kind       text not null check (kind <> ''),
    session_id text not null,
    call_id    text not null,
    body       bytea not null,
    next_at    timestamptz default now(), -- when a dispatcher takes the notice; null once its deliveries exist
    created_at timestamptz not null default now(),
    primary key (tenant_id, id),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
create index notices_due on notices (next_at) where next_at is not null;
create index notices_of_session on notices (tenant_id, session_id);
create index notices_age on notices (created_at);
select jig_isolate('notices');
-- Only the owner sees the notices of all tenants, and only in functions that set jig.sweep.
create policy sweep on notices to current_role using (current_setting('jig.sweep', true) = 'on');

-- One delivery for each webhook that a notice goes to. A target is the hash of the webhook's address.
create table notice_deliveries (
    tenant_id  text not null,
    notice_id  text not null,
    target     text not null check (target <> ''),
    status     text not null default 'pending' check (status in ('pending', 'sent', 'given_up', 'gone')),
    attempts   integer not null default 0 check (attempts >= 0),
    next_at    timestamptz not null default now(), -- when a pending delivery is due, or until when a dispatcher has it
    last_error text not null default '',
    settings   text not null default '', -- if the target is gone: the version of the settings that named it
    ended_at   timestamptz,
    primary key (tenant_id, notice_id, target),
    foreign key (tenant_id, notice_id) references notices on delete cascade,
    check ((status = 'pending') = (ended_at is null))
);
create index notice_deliveries_due on notice_deliveries (tenant_id, target, next_at) where status = 'pending';
create index notice_deliveries_gone on notice_deliveries (tenant_id, target) where status = 'gone';
select jig_isolate('notice_deliveries');
create policy sweep on notice_deliveries to current_role using (current_setting('jig.sweep', true) = 'on');

-- Takes up to max_rows notices, of all tenants, that have no deliveries yet. Nobody else gets them until the lease ends.
create function jig_take_notices(max_rows integer, lease interval)
returns table (tenant_id text, body bytea)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query with picked as materialized (
        select q.tenant_id, q.id from notices q
        where q.next_at <= now()
        order by q.next_at
        limit max_rows
        for update skip locked
    )
    update notices n set next_at = clock_timestamp() + lease
    from picked
    where n.tenant_id = picked.tenant_id and n.id = picked.id
    returning n.tenant_id, n.body;
    perform set_config('jig.sweep', '', true);
end $$;

-- Takes up to max_rows deliveries: the one of each target that has been due longest. The caller names the tenants and targets of the
-- deliveries that it is already sending, in two arrays of the same length. A busy target gets no other delivery, and a tenant has
-- at most per_tenant deliveries, including those being sent. Nobody else gets what is taken until the lease ends.
create function jig_take_deliveries(max_rows integer, per_tenant integer, busy_tenants text[], busy_targets text[], lease interval)
returns table (tenant_id text, target text, attempts integer, body bytea)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query with recursive targets as ( -- steps from target to target in the index, however many deliveries each has
        (select d.tenant_id, d.target from notice_deliveries d where d.status = 'pending' order by d.tenant_id, d.target limit 1)
        union all
        select following.* from targets t cross join lateral (
            select d.tenant_id, d.target from notice_deliveries d
            where d.status = 'pending' and (d.tenant_id, d.target) > (t.tenant_id, t.target)
            order by d.tenant_id, d.target limit 1) following
    ), heads as materialized (
        select h.* from targets t cross join lateral (
            select d.tenant_id, d.notice_id, d.target, d.next_at from notice_deliveries d
            where d.tenant_id = t.tenant_id and d.target = t.target and d.status = 'pending' and d.next_at <= now()
            order by d.next_at limit 1
            for update skip locked) h
        where not exists (select from unnest(busy_tenants, busy_targets) as b(tenant_id, target)
            where b.tenant_id = t.tenant_id and b.target = t.target)
    ), ranked as (
        select h.*, row_number() over (partition by h.tenant_id order by h.next_at) as place from heads h
    ), picked as materialized (
        select r.tenant_id, r.notice_id, r.target from ranked r
        where r.place + cardinality(array_positions(busy_tenants, r.tenant_id)) <= per_tenant
        order by r.next_at limit max_rows
    )
    update notice_deliveries d set next_at = clock_timestamp() + lease
    from picked join notices n on n.tenant_id = picked.tenant_id and n.id = picked.notice_id
    where d.tenant_id = picked.tenant_id and d.notice_id = picked.notice_id and d.target = picked.target
    returning d.tenant_id, d.target, d.attempts, n.body;
    perform set_config('jig.sweep', '', true);
end $$;

-- Deletes up to max_rows notices, of all tenants, that are older than age and whose deliveries all ended more than age ago. Returns
-- how many it deleted.
create function jig_forget_notices(age interval, max_rows integer) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    gone bigint;
begin
    perform set_config('jig.sweep', 'on', true);
    with old as materialized (
        select q.tenant_id, q.id from notices q
        where q.created_at < now() - age and q.next_at is null and not exists (
            select from notice_deliveries d where d.tenant_id = q.tenant_id and d.notice_id = q.id
            and (d.ended_at is null or d.ended_at >= now() - age))
        order by q.created_at
        limit max_rows
        for update skip locked
    )
    delete from notices n using old where n.tenant_id = old.tenant_id and n.id = old.id;
    get diagnostics gone = row_count;
    perform set_config('jig.sweep', '', true);
    return gone;
end $$;

-- Counts the deliveries of all tenants that are still to be made, with the time of the oldest notice.
create function jig_deliveries_pending() returns table (tenant text, count bigint, oldest timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select d.tenant_id, count(*), min(n.created_at)
    from notice_deliveries d join notices n on n.tenant_id = d.tenant_id and n.id = d.notice_id
    where d.status = 'pending' group by 1;
    perform set_config('jig.sweep', '', true);
end $$;

revoke all on function jig_deliveries_pending(), jig_take_notices(integer, interval), jig_take_deliveries(integer, integer, text[], text[], interval),
    jig_forget_notices(interval, integer) from public;

-- +goose StatementEnd
