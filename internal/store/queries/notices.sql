-- name: NoticeInsert
-- A repeated transaction inserts the notice once.
insert into notices (tenant_id, id, kind, session_id, call_id, body) values ($1, $2, $3, $4, $5, $6) on conflict do nothing

-- name: NoticesTake
select q.tenant_id, q.body from jig_take_notices($1, $2::interval) q

-- name: NoticesForget
select jig_forget_notices($1::interval, $2)

-- name: DeliveriesOpen
-- A target that answered that it is gone gets no deliveries until the settings change.
insert into notice_deliveries (tenant_id, notice_id, target, status, last_error, ended_at)
select n.tenant_id, n.id, q.target, case when g.gone then 'given_up' else 'pending' end,
    case when g.gone then 'the target is gone' else '' end, case when g.gone then clock_timestamp() end
from notices n cross join unnest($3::text[]) as q(target) cross join lateral (
    select exists (select from notice_deliveries d
        where d.tenant_id = n.tenant_id and d.target = q.target and d.status = 'gone' and d.settings = $4) as gone) g
where n.tenant_id = $1 and n.id = $2
on conflict do nothing

-- name: NoticeOpened
update notices n set next_at = null where n.tenant_id = $1 and n.id = $2

-- name: DeliveriesTake
select q.tenant_id, q.target, q.attempts, q.body from jig_take_deliveries($1, $2, $3::text[], $4::text[], $5::interval) q

-- name: DeliverySent
-- A delivery that was sent stays sent, whatever another dispatcher reports.
update notice_deliveries d set status = 'sent', attempts = d.attempts + 1, last_error = '', ended_at = clock_timestamp()
where d.tenant_id = $1 and d.notice_id = $2 and d.target = $3 and d.status <> 'sent'

-- name: DeliveryFailed
update notice_deliveries d set attempts = d.attempts + 1, last_error = $4, next_at = clock_timestamp() + $5::interval
where d.tenant_id = $1 and d.notice_id = $2 and d.target = $3 and d.status = 'pending'

-- name: DeliveryHeld
update notice_deliveries d set last_error = $4, next_at = clock_timestamp() + $5::interval
where d.tenant_id = $1 and d.notice_id = $2 and d.target = $3 and d.status = 'pending'

-- name: DeliveryEnded
update notice_deliveries d set status = $4, attempts = d.attempts + $5, last_error = $6, settings = $7, ended_at = clock_timestamp()
where d.tenant_id = $1 and d.notice_id = $2 and d.target = $3 and d.status = 'pending'

-- name: DeliveriesRest
-- Delays the due deliveries of a target that is slow to fail. Deliveries that a dispatcher has taken are not due.
update notice_deliveries d set next_at = clock_timestamp() + $3::interval
where d.tenant_id = $1 and d.target = $2 and d.status = 'pending' and d.next_at <= now()

-- name: DeliveriesEndOf
update notice_deliveries d set status = 'given_up', last_error = $3, ended_at = clock_timestamp()
where d.tenant_id = $1 and d.target = $2 and d.status = 'pending'
