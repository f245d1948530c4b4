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

-- Changes counters, which it makes if they do not exist. If one of them would exceed its maximum then, none changes: the error has the code
-- JGB01. A maximum of 0 is none. A caller changes counters last in its transaction, without waiting for anything until it commits, because all
-- sessions of a tenant share some of them. Each counter occurs once.
create function jig_count(budgets text[], limits text[], scopes text[], periods text[], added_tokens bigint[], added_costs bigint[],
    reserved_tokens bigint[], reserved_costs bigint[], most_tokens bigint[], most_costs bigint[]) returns void
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    tenant text := nullif(current_setting('jig.tenant', true), '');
begin
    insert into budget_counters (tenant_id, budget, limit_name, scope, period)
    select tenant, q.budget, q.limit_name, q.scope, q.period from unnest(budgets, limits, scopes, periods) as q(budget, limit_name, scope, period)
    on conflict do nothing;
    -- Every transaction locks counters in this order.
    perform 1 from budget_counters c
    where c.tenant_id = tenant and (c.budget, c.limit_name, c.scope, c.period) in (
        select q.budget, q.limit_name, q.scope, q.period from unnest(budgets, limits, scopes, periods) as q(budget, limit_name, scope, period))
    order by c.budget, c.limit_name, c.scope, c.period for no key update;
    if exists (
        select from budget_counters c
        join unnest(budgets, limits, scopes, periods, reserved_tokens, reserved_costs, most_tokens, most_costs)
            as q(budget, limit_name, scope, period, held_tokens, held_cost, max_tokens, max_cost)
            on c.tenant_id = tenant and c.budget = q.budget and c.limit_name = q.limit_name and c.scope = q.scope and c.period = q.period
        where q.max_tokens > 0 and c.spent_tokens + c.held_tokens + q.held_tokens > q.max_tokens
            or q.max_cost > 0 and c.spent_cost + c.held_cost + q.held_cost > q.max_cost) then
        raise exception 'a limit of a budget would be exceeded' using errcode = 'JGB01';
    end if;
    update budget_counters c set spent_tokens = c.spent_tokens + q.spent_tokens, spent_cost = c.spent_cost + q.spent_cost,
        held_tokens = greatest(0, c.held_tokens + q.held_tokens), held_cost = greatest(0, c.held_cost + q.held_cost)
    from unnest(budgets, limits, scopes, periods, added_tokens, added_costs, reserved_tokens, reserved_costs)
        as q(budget, limit_name, scope, period, spent_tokens, spent_cost, held_tokens, held_cost)
    where c.tenant_id = tenant and c.budget = q.budget and c.limit_name = q.limit_name and c.scope = q.scope and c.period = q.period;
end $$;

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
create index usage_records_at on usage_records (tenant_id, created_at);
select jig_isolate('usage_records');

-- The usage of days that are over, so that a report reads few rows. A day is that of UTC. The usage of sessions that were deleted later remains.
create table usage_days (
    tenant_id           text not null references tenants on delete cascade,
    day                 date not null,
    agent               text not null,
    model               text not null,
    tool                text not null,
    requests            bigint not null,
    calls               bigint not null,
    input_tokens        bigint not null,
    output_tokens       bigint not null,
    cache_read_tokens   bigint not null,
    cache_create_tokens bigint not null,
    cost                bigint not null,
    primary key (tenant_id, day, agent, model, tool)
);
select jig_isolate('usage_days');

-- The days before through are in usage_days; later usage is only in the rows of sessions.
create table usage_summed (
    tenant_id text primary key references tenants on delete cascade,
    through   date not null
);
create index usage_summed_through on usage_summed (through);
select jig_isolate('usage_summed');
-- Only the owner sees the rows of all tenants, and only in functions that set jig.sweep.
create policy sweep on usage_summed to current_role using (current_setting('jig.sweep', true) = 'on');

-- Each answer of a model and each call of a tool in a time, as a row. PostgreSQL puts this function into the statements that use it.
create function jig_usage(tenant text, since timestamptz, until timestamptz)
returns table (session_id text, at timestamptz, model text, tool text, requests integer, calls integer, input_tokens bigint, output_tokens bigint,
    cache_read_tokens bigint, cache_create_tokens bigint, cost bigint)
language sql stable
as $$
    select t.session_id, t.created_at, t.model, '', 1, 0, t.tokens - t.output_tokens, t.output_tokens, t.cache_read_tokens, t.cache_create_tokens, t.cost
    from turns t where t.tenant_id = tenant and t.model <> '' and t.created_at >= since and t.created_at < until
    union all
    select r.session_id, r.created_at, r.model, r.tool, case when r.model = '' then 0 else 1 end, 0, r.input_tokens, r.output_tokens,
        r.cache_read_tokens, r.cache_create_tokens, r.cost
    from usage_records r where r.tenant_id = tenant and r.created_at >= since and r.created_at < until
    union all
    select c.session_id, c.started_at, '', c.tool, 0, 1, 0, 0, 0, 0, 0
    from calls c where c.tenant_id = tenant and c.started_at >= since and c.started_at < until
$$;

-- Sums up the usage of days that are over, of up to max_tenants tenants and up to a week each. Returns how many tenants it worked on; call it
-- again until that is 0. A day is summed up once, an hour after its end, when all transactions that recorded usage of it have ended.
create function jig_sum_usage(max_tenants integer) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    q record;
    today date := ((clock_timestamp() - interval '1 hour') at time zone 'UTC')::date;
    first timestamptz;
    next date;
    worked bigint := 0;
begin
    perform set_config('jig.sweep', 'on', true);
    insert into usage_summed (tenant_id, through)
    select t.tenant_id, '-infinity' from tenants t
    where t.tenant_id <> '_global' and not exists (select from usage_summed u where u.tenant_id = t.tenant_id)
    limit max_tenants on conflict do nothing;
    for q in
        select u.tenant_id, u.through from usage_summed u where u.through < today
        order by u.through limit max_tenants for update skip locked
    loop
        perform set_config('jig.tenant', q.tenant_id, true);
        if q.through = '-infinity' then
            first := least((select min(t.created_at) from turns t where t.tenant_id = q.tenant_id),
                (select min(r.created_at) from usage_records r where r.tenant_id = q.tenant_id),
                (select min(c.started_at) from calls c where c.tenant_id = q.tenant_id));
            q.through := coalesce((first at time zone 'UTC')::date, today);
        end if;
        next := least(today, q.through + 7);
        insert into usage_days
        select q.tenant_id, (u.at at time zone 'UTC')::date, s.agent_name, u.model, u.tool, sum(u.requests), sum(u.calls), sum(u.input_tokens),
            sum(u.output_tokens), sum(u.cache_read_tokens), sum(u.cache_create_tokens), sum(u.cost)
        from jig_usage(q.tenant_id, q.through::timestamp at time zone 'UTC', next::timestamp at time zone 'UTC') u
        join sessions s on s.tenant_id = q.tenant_id and s.session_id = u.session_id
        group by 2, 3, 4, 5;
        update usage_summed u set through = next where u.tenant_id = q.tenant_id;
        worked := worked + 1;
    end loop;
    perform set_config('jig.tenant', '', true);
    perform set_config('jig.sweep', '', true);
    return worked;
end $$;

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
revoke all on function jig_release_reservations(integer), jig_budgets_used(text, integer), jig_sum_usage(integer),
    jig_usage(text, timestamptz, timestamptz),
    jig_count(text[], text[], text[], text[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]) from public;

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
