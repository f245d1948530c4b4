-- name: Delegated
-- Parents come before their children. held counts the reserved and executing calls that cannot go on by themselves.
with {{delegated}}
select d.session_id, d.parent_id, d.via, coalesce(s.status, '') as status,
    (select count(*) from calls c where c.tenant_id = $1 and c.session_id = d.session_id and c.status in ('waiting', 'unknown')) as waiting,
    (select count(*) from calls c where c.tenant_id = $1 and c.session_id = d.session_id and c.status in ('reserved', 'executing')) as busy,
    (select count(*) from calls o where o.tenant_id = $1 and o.session_id = d.session_id and o.status in ('reserved', 'executing') and ({{held}})) as held,
    {{rests}} as paused
from delegated d left join sessions s on s.tenant_id = $1 and s.session_id = d.session_id
order by d.depth, d.via, d.session_id limit $3

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
