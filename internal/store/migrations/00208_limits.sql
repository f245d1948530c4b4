-- Budgets: what has been spent, what is reserved for running calls, and the usage of calls of tools. Rate limits: when the next call may begin, and
-- which calls wait and run.

-- +goose Up
-- +goose StatementBegin

-- What a limit counts together. Costs are in billionths of the tenant's currency.
create table budget_counters (
    tenant_id    text not null references tenants on delete cascade,
    budget       text not null check (budget <> ''),
    limit_name   text not null check (limit_name <> ''),
    scope        text not null,
    period       text not null, -- a date, or '' for a limit without a window
    spent_tokens bigint not null default 0 check (spent_tokens >= 0),
    spent_cost   bigint not null default 0 check (spent_cost >= 0),
    held_tokens  bigint not null default 0 check (held_tokens >= 0),
    held_cost    bigint not null default 0 check (held_cost >= 0),
    primary key (tenant_id, budget, limit_name, scope, period)
) with (fillfactor = 50);
select jig_isolate('budget_counters');
-- Only the owner sees the counters of all tenants, and only in functions that set jig.sweep.
create policy sweep on budget_counters to current_role using (current_setting('jig.sweep', true) = 'on');

-- The latest reservation of each call of a model or priced tool.
create table budget_reservations (
    tenant_id  text not null,
    session_id text not null,
    key        text not null check (key <> ''), -- the call within its session
    attempt    text not null default '',
    -- new: nothing is reserved; reserved; settled: spent; waiting: it does not fit, and a person is asked; refused; released
    state      text not null default 'new' check (state in ('new', 'reserved', 'settled', 'waiting', 'refused', 'released')),
    claims     json not null default '[]',
    asked      json not null default '[]', -- the limits that a person may allow the call to exceed
    call       bytea, -- what a waiting call needs to be tried again
    expires_at timestamptz, -- when a reservation that nobody settled is released
    changed_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, session_id, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
create index budget_reservations_open on budget_reservations (expires_at) where state = 'reserved';
select jig_isolate('budget_reservations');
create policy sweep on budget_reservations to current_role using (current_setting('jig.sweep', true) = 'on');

-- The usage of models that tools asked, and of priced tools. Turns record the usage of sessions' own models.
create table usage_records (
    tenant_id           text not null,
    session_id          text not null,
    n                   bigint generated always as identity,
    pass                integer not null,
    call_id             text not null,
    tool                text not null,
    model               text not null default '', -- '': the price of the tool itself
    input_tokens        bigint not null default 0,
    output_tokens       bigint not null default 0,
    cache_read_tokens   bigint not null default 0,
    cache_create_tokens bigint not null default 0,
    cost                bigint not null default 0,
    created_at          timestamptz not null default clock_timestamp(),
    primary key (tenant_id, session_id, n),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
select jig_isolate('usage_records');

-- Releases up to max_rows reservations, of all tenants, that expired before they were settled: their workers are dead. Returns how many
-- it released.
create function jig_release_reservations(max_rows integer) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    r record;
    gone bigint := 0;
begin
    perform set_config('jig.sweep', 'on', true);
    for r in
        select q.tenant_id, q.session_id, q.key, q.claims from budget_reservations q
        where q.state = 'reserved' and q.expires_at < clock_timestamp()
        order by q.expires_at
        limit max_rows
        for update skip locked
    loop
        perform 1 from budget_counters c
        where c.tenant_id = r.tenant_id and (c.budget, c.limit_name, c.scope, c.period) in (
            select a.value ->> 'budget', a.value ->> 'limit', a.value ->> 'scope', a.value ->> 'period'
            from json_array_elements(r.claims) a)
        order by c.budget, c.limit_name, c.scope, c.period for no key update;
        update budget_counters c set
            held_tokens = greatest(0, c.held_tokens - coalesce((a.value -> 'reserved' ->> 'tokens')::bigint, 0)),
            held_cost = greatest(0, c.held_cost - coalesce((a.value -> 'reserved' ->> 'cost')::bigint, 0))
        from json_array_elements(r.claims) a
        where c.tenant_id = r.tenant_id and c.budget = a.value ->> 'budget' and c.limit_name = a.value ->> 'limit'
            and c.scope = a.value ->> 'scope' and c.period = a.value ->> 'period';
        update budget_reservations q set state = 'released', changed_at = clock_timestamp()
        where q.tenant_id = r.tenant_id and q.session_id = r.session_id and q.key = r.key;
        gone := gone + 1;
    end loop;
    perform set_config('jig.sweep', '', true);
    return gone;
end $$;

-- For jig_budgets_used: the counters that belong to no session. The scope of the others is a session's id, with or without a pass.
create index budget_counters_lasting on budget_counters (tenant_id, period)
    where not starts_with(scope, 'ses_') and not starts_with(scope, tenant_id || '.');

-- Lists up to max_rows counters, of all tenants, of limits of tenants and agents: those without a window and those of one day.
create function jig_budgets_used(today text, max_rows integer)
returns table (tenant text, budget text, limit_name text, scope text, period text,
    spent_tokens bigint, spent_cost bigint, held_tokens bigint, held_cost bigint)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select c.tenant_id, c.budget, c.limit_name, c.scope, c.period, c.spent_tokens, c.spent_cost, c.held_tokens, c.held_cost
    from budget_counters c
    where not starts_with(c.scope, 'ses_') and not starts_with(c.scope, c.tenant_id || '.') and c.period in ('', today)
    order by c.tenant_id, c.budget, c.limit_name, c.scope, c.period limit max_rows;
    perform set_config('jig.sweep', '', true);
end $$;
revoke all on function jig_release_reservations(integer), jig_budgets_used(text, integer) from public;

-- The calls that share a limit.
create table rate_buckets (
    tenant_id  text not null references tenants on delete cascade,
    document   text not null check (document <> ''),
    limit_name text not null check (limit_name <> ''),
    key        text not null,
    next_at    timestamptz not null default clock_timestamp(), -- from then on, the bucket is as if it had never been used
    primary key (tenant_id, document, limit_name, key)
) with (fillfactor = 50);
create index rate_buckets_idle on rate_buckets (next_at);
select jig_isolate('rate_buckets');
-- Only the owner sees the buckets of all tenants, and only in functions that set jig.sweep.
create policy sweep on rate_buckets to current_role using (current_setting('jig.sweep', true) = 'on');

-- The calls that wait for a bucket, and those that count as running.
create table rate_calls (
    tenant_id  text not null,
    session_id text not null,
    call_id    text not null,
    document   text not null,
    limit_name text not null,
    key        text not null,
    n          bigint generated by default as identity, -- the order in which calls began to wait
    state      text not null check (state in ('waiting', 'running', 'over')),
    fence      integer not null default 0, -- the fence of the call before the attempt
    reason     text not null default '',
    since      timestamptz not null default clock_timestamp(),
    until      timestamptz not null, -- a call that waits and has not asked again by then does not hold up others
    primary key (tenant_id, session_id, call_id, document, limit_name, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
) with (fillfactor = 70);
create index rate_calls_waiting on rate_calls (tenant_id, document, limit_name, key, n) include (until) where state = 'waiting';
create index rate_calls_running on rate_calls (tenant_id, document, limit_name, key) where state = 'running';
create index rate_calls_over on rate_calls (until) where state <> 'running';
select jig_isolate('rate_calls');
create policy sweep on rate_calls to current_role using (current_setting('jig.sweep', true) = 'on');

-- Deletes up to max_rows rows of each table, of all tenants, that have no effect any more. Returns how many it deleted.
create function jig_forget_rates(max_rows integer) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    calls_gone bigint;
    buckets_gone bigint;
begin
    perform set_config('jig.sweep', 'on', true);
    with old as (
        select c.tenant_id, c.session_id, c.call_id, c.document, c.limit_name, c.key from rate_calls c
        where c.state <> 'running' and c.until < clock_timestamp() - interval '1 hour'
        order by c.until limit max_rows for update skip locked
    )
    delete from rate_calls c using old o
    where (c.tenant_id, c.session_id, c.call_id, c.document, c.limit_name, c.key)
        = (o.tenant_id, o.session_id, o.call_id, o.document, o.limit_name, o.key);
    get diagnostics calls_gone = row_count;
    with old as (
        select b.tenant_id, b.document, b.limit_name, b.key from rate_buckets b
        where b.next_at < clock_timestamp() - interval '1 hour'
        order by b.next_at limit max_rows for update skip locked
    )
    delete from rate_buckets b using old o
    where (b.tenant_id, b.document, b.limit_name, b.key) = (o.tenant_id, o.document, o.limit_name, o.key);
    get diagnostics buckets_gone = row_count;
    perform set_config('jig.sweep', '', true);
    return calls_gone + buckets_gone;
end $$;
revoke all on function jig_forget_rates(integer) from public;

-- +goose StatementEnd
