-- name: ApprovalsListed
-- Every filter is a range over a column of the index approvals_listing, so one plan serves all filters. Because of the collation, the
-- planner cannot choose another index, whose order would differ.
select {{approval}} from approvals a
where a.tenant_id = $1 and a.status = 'open' and (a.requested_at, a.id) > ($2, $3) and a.requested_at < $4
    and a.kind collate "C" between $5 and $6 and a.tool collate "C" between $7 and $8
    and a.session_id collate "C" between $9 and $10
    and a.listed_agent collate "C" between $11 and $12 and a.listed_requester collate "C" between $13 and $14
    and ($15 = '' or a.agent = $15) and ($16 = '' or a.requested_by = $16)
order by a.requested_at, a.id limit $17

-- name: StatisticsOpen
select count(*) as count, coalesce(min(a.requested_at), 'epoch') as oldest,
    count(*) filter (where a.kind = 'approval') as approvals, count(*) filter (where a.kind = 'reconcile') as reconciles,
    count(*) filter (where a.kind = 'question') as questions,
    percentile_cont(array[0.5, 0.9, 1]::float8[]) within group (order by extract(epoch from $2 - a.requested_at)::float8) as age
from approvals a where a.tenant_id = $1 and a.status = 'open' and a.requested_at <= $2

-- name: StatisticsDecided
-- plan: custom
-- One row for all tools, with an empty name, and one for each tool.
with d as (
    select a.tool, {{outcome}} as outcome, extract(epoch from a.decided_at - a.requested_at)::float8 as seconds
    from approvals a where a.tenant_id = $1 and a.kind = 'approval' and a.decided_at >= $2
    union all
    select a.tool, 'open', null from approvals a where a.tenant_id = $1 and a.kind = 'approval' and a.status = 'open'
)
select coalesce(d.tool, '') as tool, count(*) filter (where d.outcome = 'open') as open,
    count(*) filter (where d.outcome = 'approved') as approved, count(*) filter (where d.outcome = 'granted') as granted,
    count(*) filter (where d.outcome = 'denied') as denied, count(*) filter (where d.outcome = 'expired') as expired,
    count(*) filter (where d.outcome = 'replaced') as replaced, count(*) filter (where d.outcome = 'canceled') as canceled,
    percentile_cont(array[0.5, 0.9, 1]::float8[]) within group (order by d.seconds)
        filter (where d.outcome in ('approved', 'denied')) as seconds
from d group by grouping sets ((), (d.tool))
order by grouping(d.tool) desc, count(*) desc, d.tool

-- name: StatisticsReviewers
-- plan: custom
-- Votes are selected by their own time, whether or not their approval has been decided.
with d as (
    select a.decided_by as by, {{outcome}} as outcome, extract(epoch from a.decided_at - a.requested_at)::float8 as seconds,
        0 as votes
    from approvals a where a.tenant_id = $1 and a.kind = 'approval' and a.decided_at >= $2
    union all
    select v.by, 'voted', null, 1
    from approvals a, json_to_recordset(a.votes) as v(by text, at timestamptz)
    where a.tenant_id = $1 and a.kind = 'approval' and a.grant_id = '' and a.votes is not null
        and (a.status = 'open' or a.decided_at >= $2) and v.at >= $2
)
select d.by, count(*) filter (where d.outcome = 'approved') as approved, count(*) filter (where d.outcome = 'denied') as denied,
    sum(d.votes) as votes, coalesce(percentile_cont(0.5) within group (order by d.seconds), 0) as median
from d where d.by <> '' and d.outcome in ('approved', 'denied', 'voted') group by d.by
order by count(*) desc, d.by limit $3

-- name: ApprovalsOpenEverywhere
select q.tenant, q.kind, q.count, q.oldest from jig_approvals_open() q

-- name: ApprovalsDecidedEverywhere
select q.tenant, q.outcome, q.count from jig_approvals_decided($1, $2) q

-- name: ApprovalsPaceEverywhere
select q.p50, q.p90, q.p99, q.expired_share from jig_approvals_pace($1) q

-- name: SessionsOpenEverywhere
select q.tenant, q.status, q.count from jig_sessions_open() q

-- name: DeliveriesPendingEverywhere
select q.tenant, q.count, q.oldest from jig_deliveries_pending() q

-- name: BudgetsUsedEverywhere
select q.tenant, q.budget, q.limit_name, q.scope, q.period, q.spent_tokens, q.spent_cost, q.held_tokens, q.held_cost
from jig_budgets_used($1, $2) q

-- name: DatabaseNow
select clock_timestamp()

-- fragment: outcome
jig_outcome(a.answer, a.status, a.grant_id, a.decided_by, a.decided_at, a.expires_at)

-- name: CallsRecorded
-- A page of calls, ordered by session and call id and read along the primary keys. A page holds inputs of at most $6 bytes in total, but
-- at least one call.
with picked as materialized (
    select q.session_id, q.call_id, row_number() over w as place, sum(coalesce(octet_length(q.input), 0)) over w as bytes
    from (
        select c.session_id, c.call_id, c.input
        from sessions s cross join lateral (
            select c.session_id, c.call_id, c.input from calls c
            where c.tenant_id = $1 and c.session_id = s.session_id and c.created_at >= $2
                and (s.session_id > $3 or c.call_id > $4)
            order by c.session_id, c.call_id limit $5) c
        where s.tenant_id = $1 and s.session_id >= $3 and s.updated_at >= $2
        order by s.session_id, c.call_id limit $5) q
    window w as (order by q.session_id, q.call_id)
)
select c.tenant_id as tenant, c.session_id, c.call_id as id, c.frame, c.pass, c.ordinal, c.tool, c.version, c.write, c.input, c.verdict, c.status,
    c.created_at, c.flow, s.agent_name, coalesce(s.agent->>'version', '') as agent_version,
    coalesce((s.agent->>'registered')::boolean, false) as registered, s.root_agent, s.parent_agent, s.depth, s.source, s.principal, s.task,
    s.input as session_input,
    (select count(*) from calls w where w.tenant_id = $1 and w.session_id = c.session_id and w.write and w.status = 'succeeded'
        and w.finished_at <= c.created_at) as writes
from picked p
join calls c on c.tenant_id = $1 and c.session_id = p.session_id and c.call_id = p.call_id
join sessions s on s.tenant_id = $1 and s.session_id = c.session_id
where p.place = 1 or p.bytes <= $6
order by p.place
