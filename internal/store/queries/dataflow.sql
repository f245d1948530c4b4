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
select s.source, s.task, s.input from line l
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
-- The calls of the sessions that have a result, the latest first, except those that the caller knows. An outsider may have written a result that a call
-- read, the error of a call that was refused, which may repeat any part of the call, and the result of a call that was made after the session had read
-- untrusted data, unless its arguments were traced.
with {{line}}, ended as (
    select case when l.depth = 0 then c.call_id else c.session_id || '/' || c.call_id end as call_id, c.tool, c.result,
        c.reads_untrusted or c.verdict = 'refuse' or coalesce((c.flow ->> 'read_untrusted')::boolean, false)
            and not coalesce((c.flow ->> 'traced')::boolean, false) as untrusted,
        c.result_artifact <> '' as cut, c.finished_at
    from line l
    join calls c on c.tenant_id = $1 and c.session_id = l.session_id
    where c.result is not null and c.status in ('succeeded', 'failed')
    order by c.finished_at desc, c.call_id desc limit $3
)
select e.call_id as id, e.tool, coalesce(e.result, '') as result, e.untrusted, e.cut from ended e where e.call_id <> all($4::text[])
order by e.finished_at desc, e.call_id desc
