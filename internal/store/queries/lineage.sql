-- name: Delegated
-- Parents come before their children. Of the reserved and executing calls, held counts those that cannot go on by themselves, and stuck those that
-- cannot or only when an event or a time comes, or a rate limit lets them. asks reports that the session waits for a provider or to begin.
with {{delegated}}
select d.session_id, d.parent_id, d.via, coalesce(s.status, '') as status,
    (select count(*) from calls c where c.tenant_id = $1 and c.session_id = d.session_id and c.status in ('waiting', 'unknown')) as waiting,
    (select count(*) from calls c where c.tenant_id = $1 and c.session_id = d.session_id and c.status in ('reserved', 'executing')) as busy,
    (select count(*) from calls o where o.tenant_id = $1 and o.session_id = d.session_id and o.status in ('reserved', 'executing') and ({{held}})) as held,
    (select count(*) from calls o where o.tenant_id = $1 and o.session_id = d.session_id and o.status in ('reserved', 'executing') and ({{held}} or {{stuck}})) as stuck,
    ({{rests}}) as paused, coalesce({{asks}}, false) as asks
from delegated d left join sessions s on s.tenant_id = $1 and s.session_id = d.session_id
order by d.depth, d.via, d.session_id limit $3

-- name: DelegatedWaits
-- What the sessions below a session wait for, besides people.
with {{delegated}}
select d.session_id, d.via, f.waits, null as reason, null::json as model from delegated d
join frames f on f.tenant_id = $1 and f.session_id = d.session_id and not f.done and f.waits is not null
union all
select d.session_id, d.via, null, r.reason, null from delegated d
join rate_calls r on r.tenant_id = $1 and r.session_id = d.session_id and r.state = 'waiting' and r.until > clock_timestamp()
union all
select d.session_id, d.via, null, null, s.model_wait from delegated d
join sessions s on s.tenant_id = $1 and s.session_id = d.session_id and s.status in ('working', 'input_required')
    and (s.model_wait ->> 'pass')::integer = s.pass
where not exists (select from turns t where t.tenant_id = $1 and t.session_id = s.session_id and t.pass = s.pass)
order by 1 limit $3

-- name: CallsDoubtful
select c.call_id || ' ' || c.tool from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.status = 'failed' and c.error is not null
    and convert_from(c.error, 'UTF8')::json ->> 'code' = 'OUTCOME_UNKNOWN'
order by {{call_order}} limit 50

-- name: DelegatedApprovals
with {{delegated}}
select {{approval}}, d.via from delegated d
join approvals a on a.tenant_id = $1 and a.session_id = d.session_id and a.status = 'open'
order by d.depth, d.via, a.id limit $3
