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

-- name: BudgetCountersEnsure
insert into budget_counters (tenant_id, budget, limit_name, scope, period)
select $1, q.budget, q.limit_name, q.scope, q.period
from unnest($2::text[], $3::text[], $4::text[], $5::text[]) as q(budget, limit_name, scope, period)
on conflict do nothing

-- name: BudgetCountersLock
-- Locks counters in the order in which every transaction locks them.
select c.budget, c.limit_name, c.scope, c.period, c.spent_tokens, c.spent_cost, c.held_tokens, c.held_cost
from budget_counters c
where c.tenant_id = $1 and (c.budget, c.limit_name, c.scope, c.period) in (
    select q.budget, q.limit_name, q.scope, q.period
    from unnest($2::text[], $3::text[], $4::text[], $5::text[]) as q(budget, limit_name, scope, period))
order by c.budget, c.limit_name, c.scope, c.period for no key update

-- name: BudgetCountersAdd
-- Adds to locked counters. Each counter occurs once.
update budget_counters c set spent_tokens = c.spent_tokens + q.spent_tokens, spent_cost = c.spent_cost + q.spent_cost,
    held_tokens = greatest(0, c.held_tokens + q.held_tokens), held_cost = greatest(0, c.held_cost + q.held_cost)
from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])
    as q(budget, limit_name, scope, period, spent_tokens, spent_cost, held_tokens, held_cost)
where c.tenant_id = $1 and c.budget = q.budget and c.limit_name = q.limit_name and c.scope = q.scope and c.period = q.period

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

-- name: UsageGrouped
-- plan: custom
-- $4 lists what to group by: agent, model, tool, day. A column that is not listed is empty. $5 to $8 filter by agent, model, tool and session.
with u as (
    select t.session_id, t.created_at, t.model, '' as tool, 1 as requests, 0 as calls, t.tokens - t.output_tokens as input_tokens,
        t.output_tokens, t.cache_read_tokens, t.cache_create_tokens, t.cost
    from turns t where t.tenant_id = $1 and t.model <> '' and t.created_at >= $2 and t.created_at < $3
    union all
    select r.session_id, r.created_at, r.model, r.tool, case when r.model = '' then 0 else 1 end, 0, r.input_tokens, r.output_tokens,
        r.cache_read_tokens, r.cache_create_tokens, r.cost
    from usage_records r where r.tenant_id = $1 and r.created_at >= $2 and r.created_at < $3
    union all
    select c.session_id, c.started_at, '', c.tool, 0, 1, 0, 0, 0, 0, 0
    from calls c where c.tenant_id = $1 and c.started_at >= $2 and c.started_at < $3
)
select case when 'agent' = any($4::text[]) then s.agent_name else '' end as agent,
    case when 'model' = any($4::text[]) then u.model else '' end as model,
    case when 'tool' = any($4::text[]) then u.tool else '' end as tool,
    case when 'day' = any($4::text[]) then to_char(u.created_at at time zone 'UTC', 'YYYY-MM-DD') else '' end as day,
    sum(u.requests)::bigint as requests, sum(u.calls)::bigint as calls, sum(u.input_tokens)::bigint as input_tokens,
    sum(u.output_tokens)::bigint as output_tokens, sum(u.cache_read_tokens)::bigint as cache_read_tokens,
    sum(u.cache_create_tokens)::bigint as cache_create_tokens, sum(u.cost)::bigint as cost
from u join sessions s on s.tenant_id = $1 and s.session_id = u.session_id
where ($5 = '' or s.agent_name = $5) and ($6 = '' or u.model = $6) and ($7 = '' or u.tool = $7) and ($8 = '' or u.session_id = $8)
group by 1, 2, 3, 4
order by 4, sum(u.cost) desc, sum(u.input_tokens + u.output_tokens) desc, 1, 2, 3 limit $9

-- name: ExportBudgetCounters
select to_json(t)::text from budget_counters t where t.tenant_id = $1 order by t.budget, t.limit_name, t.scope, t.period

-- name: ExportBudgetReservations
select to_json(t)::text from budget_reservations t where t.tenant_id = $1 order by t.session_id, t.key

-- name: ExportUsageRecords
select to_json(t)::text from usage_records t where t.tenant_id = $1 order by t.session_id, t.n
