-- name: ApprovalsInsert
insert into approvals (tenant_id, session_id, call_id, kind, tool, input, truncated, summary, reasons, digest, requested_by,
    requested_at, expires_at)
select $1, $2, q.call_id, q.kind, q.tool, nullif(q.input, '')::json, q.truncated, q.summary, nullif(q.reasons, '')::json, q.digest,
    q.requested_by, q.requested_at, q.expires_at
from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[], $8::text[], $9::text[], $10::text[], $11::text[],
    $12::timestamptz[], $13::timestamptz[])
    as q(call_id, kind, tool, input, truncated, summary, reasons, digest, requested_by, requested_at, expires_at)

-- name: ApprovalLatest
select {{approval}} from approvals a where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.kind = 'approval'
order by a.id desc limit 1 for no key update

-- name: ApprovalOpenLock
select {{approval}} from approvals a where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.status = 'open'
for no key update

-- name: ApprovalOpen
select {{approval}} from approvals a where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.status = 'open'

-- name: ApprovalsOpenOfPass
select {{approval}} from approvals a join calls c using (tenant_id, session_id, call_id)
where a.tenant_id = $1 and a.session_id = $2 and c.frame = '' and c.pass = $3 and a.status = 'open' order by c.ordinal, c.call_id

-- name: ApprovalsOpenOfFrame
-- Those of compositions within the composition come along: to leave them out would take a join.
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
-- Succeeds once for an approval: the one attempt that finds it approved.
update approvals a set status = 'consumed', consumed_at = clock_timestamp()
where a.tenant_id = $1 and a.id = $2 and a.status = 'approved'

-- name: ApprovalDecide
-- The compare-and-set of a decision: an approval that is not open any more is left as it is.
update approvals a set status = $3, answer = $4, decided_by = $5, claimed = $6, note = $7, reason = $8, decision_key = $9,
    approved_digest = $10, input_before = $11, input_after = $12, decided_at = clock_timestamp()
where a.tenant_id = $1 and a.id = $2 and a.status = 'open'

-- name: ApprovalVoid
-- Takes an approval back that was granted and not consumed.
update approvals a set status = 'expired', reason = $3 where a.tenant_id = $1 and a.id = $2 and a.status = 'approved'

-- name: ApprovalsCancel
update approvals a set status = 'canceled', reason = $3, decided_at = coalesce(a.decided_at, clock_timestamp())
where a.tenant_id = $1 and a.session_id = $2 and a.status in ('open', 'approved')

-- name: ApprovalsCancelOf
update approvals a set status = 'canceled', reason = $4, decided_at = coalesce(a.decided_at, clock_timestamp())
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = any($3::text[]) and a.status in ('open', 'approved')

-- name: DecisionGet
select d.ruled from decisions d where d.tenant_id = $1 and d.session_id = $2 and d.key = $3

-- name: DecisionInsert
insert into decisions (tenant_id, session_id, key, ruled) values ($1, $2, $3, $4)
