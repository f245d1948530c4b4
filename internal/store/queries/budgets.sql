-- name: BudgetReservationEnsure
insert into budget_reservations (tenant_id, session_id, key) values ($1, $2, $3) on conflict do nothing

-- name: BudgetReservationLock
select r.attempt, r.state, r.claims, r.asked
from budget_reservations r where r.tenant_id = $1 and r.session_id = $2 and r.key = $3 for update

-- name: BudgetSessionFree
-- A person has allowed what a call asked for once no pause holds back its session. This is a statement of its own, so that it sees a pause that
-- was made while the reservation was locked.
select not exists (select from pauses p where p.tenant_id = $1 and p.scope = 'session' and p.target = $2 and p.lifted_at is null)

-- name: BudgetReservationPut
update budget_reservations r set attempt = $4, state = $5, claims = $6, asked = $7, call = $8,
    expires_at = clock_timestamp() + make_interval(secs => $9::integer), changed_at = clock_timestamp()
where r.tenant_id = $1 and r.session_id = $2 and r.key = $3

-- name: BudgetCountersOf
select c.budget, c.limit_name, c.scope, c.period, c.spent_tokens, c.spent_cost, c.held_tokens, c.held_cost
from budget_counters c
where c.tenant_id = $1 and (c.budget, c.limit_name, c.scope, c.period) in (
    select q.budget, q.limit_name, q.scope, q.period
    from unnest($2::text[], $3::text[], $4::text[], $5::text[]) as q(budget, limit_name, scope, period))

-- name: BudgetCount
select jig_count($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)

-- name: BudgetWaiting
select r.key, r.call from budget_reservations r
where r.tenant_id = $1 and r.session_id = $2 and r.state = 'waiting' order by r.key

-- name: BudgetResume
-- Lifts a pause that a budget made, not one that a person made.
update pauses p set lifted_at = clock_timestamp(), lifted_by = $3
where p.tenant_id = $1 and p.scope = 'session' and p.target = $2 and p.by = $3 and p.lifted_at is null

-- name: BudgetForget
-- Ends the waiting of calls that fit now, so that nobody has allowed them anything.
update budget_reservations r set state = 'released', asked = '[]', call = null, changed_at = clock_timestamp()
where r.tenant_id = $1 and r.session_id = $2 and r.state = 'waiting'

-- name: BudgetRelease
select jig_release_reservations($1)

-- name: BudgetCounters
-- Counters of the given periods: those of a session if $3 is not empty, else those of tenants and agents.
select c.budget, c.limit_name, c.scope, c.period, c.spent_tokens, c.spent_cost, c.held_tokens, c.held_cost
from budget_counters c
where c.tenant_id = $1 and c.period = any($2::text[]) and (c.scope = $3 or $3 = '')
order by c.budget, c.limit_name, c.scope, c.period limit $4

-- name: SessionRoot
-- The first session of the tree that a session belongs to.
with recursive line(session_id, parent_id, depth) as (
    select s.session_id, s.parent_id, 0 from sessions s where s.tenant_id = $1 and s.session_id = $2
    union all
    select s.session_id, s.parent_id, l.depth + 1 from line l
    join sessions s on s.tenant_id = $1 and s.session_id = l.parent_id where l.parent_id <> '' and l.depth < 100
)
select l.session_id from line l order by l.depth desc limit 1

-- name: UsageInsert
insert into usage_records (tenant_id, session_id, pass, call_id, tool, model, input_tokens, output_tokens, cache_read_tokens,
    cache_create_tokens, cost)
select $1, $2, $3, $4, coalesce(c.tool, ''), $5, $6, $7, $8, $9, $10
from sessions s left join calls c on c.tenant_id = $1 and c.session_id = $2 and c.call_id = $4
where s.tenant_id = $1 and s.session_id = $2 and ($4 = '' or c.call_id is not null)

-- name: UsageSummed
select u.through::timestamp at time zone 'UTC' from usage_summed u where u.tenant_id = $1 and u.through > '-infinity'

-- name: UsageGrouped
-- plan: custom
-- $4 lists what to group by: agent, model, tool, day. A column that is not listed is empty. $5 to $8 filter by agent, model, tool and session.
-- The days between $10 and $11 have been summed up.
with u as (
    select s.agent_name as agent, u.model, u.tool, (u.at at time zone 'UTC')::date as day, u.requests, u.calls, u.input_tokens, u.output_tokens,
        u.cache_read_tokens, u.cache_create_tokens, u.cost
    from (values ($2::timestamptz, $10::timestamptz), ($11, $3)) as r(since, until)
    cross join lateral jig_usage($1, r.since, r.until) u
    join sessions s on s.tenant_id = $1 and s.session_id = u.session_id
    where ($8 = '' or u.session_id = $8)
    union all
    select d.agent, d.model, d.tool, d.day, d.requests, d.calls, d.input_tokens, d.output_tokens, d.cache_read_tokens, d.cache_create_tokens, d.cost
    from usage_days d
    where d.tenant_id = $1 and d.day >= ($10 at time zone 'UTC')::date and d.day < ($11 at time zone 'UTC')::date
)
select case when 'agent' = any($4::text[]) then u.agent else '' end as agent,
    case when 'model' = any($4::text[]) then u.model else '' end as model,
    case when 'tool' = any($4::text[]) then u.tool else '' end as tool,
    case when 'day' = any($4::text[]) then to_char(u.day, 'YYYY-MM-DD') else '' end as day,
    sum(u.requests)::bigint as requests, sum(u.calls)::bigint as calls, sum(u.input_tokens)::bigint as input_tokens,
    sum(u.output_tokens)::bigint as output_tokens, sum(u.cache_read_tokens)::bigint as cache_read_tokens,
    sum(u.cache_create_tokens)::bigint as cache_create_tokens, sum(u.cost)::bigint as cost
from u
where ($5 = '' or u.agent = $5) and ($6 = '' or u.model = $6) and ($7 = '' or u.tool = $7)
group by 1, 2, 3, 4
order by 4, sum(u.cost) desc, sum(u.input_tokens + u.output_tokens) desc, 1, 2, 3 limit $9

-- name: UsageSum
select jig_sum_usage($1)

-- name: ExportBudgetCounters
select to_json(t)::text from budget_counters t where t.tenant_id = $1 order by t.budget, t.limit_name, t.scope, t.period

-- name: ExportBudgetReservations
select to_json(t)::text from budget_reservations t where t.tenant_id = $1 order by t.session_id, t.key

-- name: ExportUsageRecords
select to_json(t)::text from usage_records t where t.tenant_id = $1 order by t.session_id, t.n

-- name: ExportUsageDays
select to_json(t)::text from usage_days t where t.tenant_id = $1 order by t.day, t.agent, t.model, t.tool
