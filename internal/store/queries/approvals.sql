-- name: ApprovalsInsert
-- An approval that a grant gives is approved from the start, by the people who gave the grant.
insert into approvals (tenant_id, session_id, call_id, kind, tool, input, truncated, summary, reasons, digest, requested_by,
    requested_at, expires_at, agent, policy_version, terms, votes, delegations, question, grant_id, status, answer, decided_by, claimed,
    approved_digest, decided_at, parent_id, parent_call, attempt, preview, askers)
select $1, $2, q.call_id, q.kind, q.tool, nullif(q.input, '')::json, q.truncated, q.summary, nullif(q.reasons, '')::json, q.digest,
    q.requested_by, q.requested_at, q.expires_at, q.agent, q.policy_version, nullif(q.terms, '')::json, nullif(q.votes, '')::json,
    nullif(q.delegations, '')::json, nullif(q.question, '')::json, q.grant_id, case when q.grant_id = '' then 'open' else 'approved' end,
    case when q.grant_id = '' then '' else 'approve' end, coalesce(array_to_string(g.given_by, ', '), ''), coalesce(g.claimed, false),
    case when q.grant_id = '' then '' else q.digest end, case when q.grant_id = '' then null else clock_timestamp() end, s.parent_id, s.parent_call,
    q.attempt, nullif(q.preview, '')::json, nullif(q.askers, '')::json
from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[], $8::text[], $9::text[], $10::text[], $11::text[],
    $12::timestamptz[], $13::timestamptz[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::integer[],
    $22::text[], $23::text[])
    as q(call_id, kind, tool, input, truncated, summary, reasons, digest, requested_by, requested_at, expires_at, agent, policy_version,
        terms, votes, delegations, question, grant_id, attempt, preview, askers)
join sessions s on s.tenant_id = $1 and s.session_id = $2
left join grants g on g.tenant_id = $1 and g.grant_id = q.grant_id

-- name: ApprovalsSimilar
-- plan: custom
-- The latest decisions about other calls of a tool, with what the calls' inputs are now.
select a.session_id, a.call_id as call, a.answer, a.decided_by as by, coalesce(a.decided_at, a.requested_at) as at, c.input
from approvals a join calls c using (tenant_id, session_id, call_id)
where a.tenant_id = $1 and a.tool = $2 and a.kind = 'approval' and a.answer in ('approve', 'deny') and (a.session_id, a.call_id) <> ($3, $4)
order by a.decided_at desc, a.id desc limit $5

-- name: ApprovalLatest
select {{approval}} from approvals a where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.kind = 'approval'
order by a.id desc limit 1 for no key update

-- name: ApprovalOpenLock
select {{approval}} from approvals a where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.status = 'open'
for no key update

-- name: ApprovalOpen
select {{approval}} from approvals a where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.status = 'open'

-- name: ApprovalCompare
-- Begins a comparison, unless one began after $5.
update approvals a set compared_at = $6, comparison = null
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.status = 'open' and a.digest = $4
    and (a.compared_at is null or a.compared_at <= $5)
returning a.id

-- name: ApprovalComparison
select a.comparison from approvals a
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.status = 'open' and a.digest = $4 and a.compared_at > $5

-- name: ApprovalCompared
update approvals a set comparison = $5
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.status = 'open' and a.digest = $4

-- name: ApprovalsOpenOfPass
select {{approval}} from approvals a join calls c using (tenant_id, session_id, call_id)
where a.tenant_id = $1 and a.session_id = $2 and c.frame = '' and c.pass = $3 and a.status = 'open' order by c.ordinal, c.call_id

-- name: ApprovalsOpenOfFrame
-- This includes the approvals of nested compositions, because leaving them out would need a join.
select {{approval}} from approvals a
where a.tenant_id = $1 and a.session_id = $2 and a.status = 'open' and starts_with(a.call_id, $3 || '/')

-- name: ApprovalsOpenOfSession
select {{approval}} from approvals a join calls c using (tenant_id, session_id, call_id)
where a.tenant_id = $1 and a.session_id = $2 and a.status = 'open' order by {{call_order}} limit $3

-- name: ApprovalsOpen
select {{approval}} from approvals a
where a.tenant_id = $1 and a.status = 'open' and (a.requested_at, a.id) > ($2, $3)
order by a.requested_at, a.id limit $4

-- name: ApprovalConsume
update approvals a set status = 'consumed', consumed_at = clock_timestamp()
where a.tenant_id = $1 and a.id = $2 and a.status = 'approved'

-- name: ApprovalDecide
-- Decides an approval if it is still open.
update approvals a set status = $3, answer = $4, decided_by = $5, claimed = $6, note = $7, reason = $8, decision_key = $9,
    approved_digest = $10, input_before = $11, input_after = $12, patch = $13, votes = coalesce($14, a.votes), grant_id = $15,
    decided_at = clock_timestamp()
where a.tenant_id = $1 and a.id = $2 and a.status = 'open'

-- name: ApprovalTerms
-- Replaces the terms of an approval after its input was changed.
update approvals a set terms = $3 where a.tenant_id = $1 and a.id = $2 and a.status = 'open'

-- name: ApprovalWiden
-- Lets more people decide about an open approval.
update approvals a set terms = $3, reasons = $4 where a.tenant_id = $1 and a.id = $2 and a.status = 'open'

-- name: ApprovalVote
update approvals a set votes = $3 where a.tenant_id = $1 and a.id = $2 and a.status = 'open'

-- name: ApprovalDelegate
update approvals a set delegations = $3 where a.tenant_id = $1 and a.id = $2 and a.status = 'open'

-- name: ApprovalNoticed
update approvals a set noticed_at = $3 where a.tenant_id = $1 and a.id = $2 and a.status = 'open'

-- name: ApprovalsOfSessionOpenLock
-- Locks what can still be withdrawn from a session: everything open, and approvals that no attempt has used. Reported outcomes and answers
-- to questions are used when they arrive.
select {{approval}} from approvals a where a.tenant_id = $1 and a.session_id = $2 and (a.status = 'open' or a.status = 'approved' and a.kind = 'approval')
order by a.id for no key update

-- name: ApprovalsOfCallsOpenLock
select {{approval}} from approvals a
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = any($3::text[]) and (a.status = 'open' or a.status = 'approved' and a.kind = 'approval')
order by a.id for no key update

-- name: ApprovalWho
-- Who approved a call: the votes, or the person who decided.
select a.decided_by, a.claimed, a.votes from approvals a
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.kind = 'approval' and a.status in ('approved', 'consumed')
order by a.id desc limit 1

-- name: ApprovalVoid
-- Withdraws an approval that was given.
update approvals a set status = 'expired', reason = $3, consumed_at = null
where a.tenant_id = $1 and a.id = $2 and a.status in ('approved', 'consumed')

-- name: ApprovalsCancel
update approvals a set status = 'canceled', reason = $3, decided_at = coalesce(a.decided_at, clock_timestamp())
where a.tenant_id = $1 and a.session_id = $2 and (a.status = 'open' or a.status = 'approved' and a.kind = 'approval')

-- name: ApprovalsMarkRestored
-- Follows CallsMarkRestored. Expiry must not end a call that may have taken effect, and an answer from before the restore must not count.
update approvals a set expires_at = null, attempt = case when a.kind = 'reconcile' then c.fence else 0 end
from calls c where a.tenant_id = $1 and a.session_id = $2 and a.call_id = any($3::text[]) and a.status = 'open'
    and c.tenant_id = a.tenant_id and c.session_id = a.session_id and c.call_id = a.call_id

-- name: ApprovalsCancelOf
update approvals a set status = 'canceled', reason = $4, decided_at = coalesce(a.decided_at, clock_timestamp())
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = any($3::text[]) and (a.status = 'open' or a.status = 'approved' and a.kind = 'approval')

-- name: DecisionGet
select d.ruled from decisions d where d.tenant_id = $1 and d.session_id = $2 and d.key = $3

-- name: DecisionsOf
select d.ruled from unnest($3::text[]) with ordinality k (key, n)
join decisions d on d.tenant_id = $1 and d.session_id = $2 and d.key = k.key order by k.n

-- name: DecisionInsert
insert into decisions (tenant_id, session_id, key, ruled) values ($1, $2, $3, $4)

-- name: DecisionKeep
-- The same request may be accepted again, if people were asked about its call again.
insert into decisions (tenant_id, session_id, key, ruled) values ($1, $2, $3, $4) on conflict do nothing
