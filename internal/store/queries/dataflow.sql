-- What a call's arguments are compared with: the texts of its session and of the sessions above it.

-- fragment: line
-- The session $2 and the sessions above it.
recursive line(session_id, depth) as (
    select $2::text, 0
    union all
    select s.parent_id, l.depth + 1 from line l
    join sessions s on s.tenant_id = $1 and s.session_id = l.session_id
    where s.parent_id <> '' and l.depth < 20
)

-- name: LineRoot
with {{line}}
select s.session_id, s.source, s.task, s.input from line l
join sessions s on s.tenant_id = $1 and s.session_id = l.session_id
where s.parent_id = ''

-- name: LineMessages
-- What people and programs said to the sessions after they had started, the latest first. typed says that the sender is the session's principal.
with {{line}}
select m.body as text, m.by, m.by <> '' and m.by = coalesce(s.principal ->> 'id', '') as typed from line l
join sessions s on s.tenant_id = $1 and s.session_id = l.session_id
join messages m on m.tenant_id = $1 and m.session_id = l.session_id
where m.role = 'user' and m.key <> 'task'
order by m.n desc limit $3

-- name: LineEvents
-- The events that were sent to the sessions, the latest first.
with {{line}}
select r.name, r.data from line l
join received r on r.tenant_id = $1 and r.session_id = l.session_id
order by r.at desc, r.n desc limit $3

-- name: LineCalls
-- The calls of the sessions that have a result, the latest first. The error of a call that was refused may repeat any part of the call. tainted
-- says that the session had read untrusted data when the call was admitted.
with {{line}}
select case when l.depth = 0 then c.call_id else c.session_id || '/' || c.call_id end as call_id, c.tool, c.version, c.input, c.result,
    c.reads_untrusted or c.verdict = 'refuse' as untrusted, coalesce((c.flow ->> 'read_untrusted')::boolean, false) as tainted,
    c.result_artifact <> '' as cut
from line l
join calls c on c.tenant_id = $1 and c.session_id = l.session_id
where c.result is not null and c.status in ('succeeded', 'failed')
order by c.finished_at desc, c.call_id desc limit $3
