-- name: EventsAppend
-- Raises the session's counter and numbers the events with it. It is the last statement of its transaction, so that the lock on the
-- counter is held only during the commit.
with n as (
    update sessions s set last_seq = s.last_seq + cardinality($3::text[]), updated_at = clock_timestamp()
    where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq - cardinality($3::text[]) + e.ord, clock_timestamp(), e.type, e.pass, e.call_id, e.tool, nullif(e.data, '')::json
    from n, unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::text[]) with ordinality as e(type, pass, call_id, tool, data, ord)
)
select n.last_seq from n

-- name: EventsAbove
-- Adds events of a session to the logs of the sessions whose running calls it answers, at every level: under the call of that session, and
-- with the session and the call in which it happened.
with recursive above(session_id, via, depth) as (
    select s.parent_id, s.parent_call, 1 from sessions s
    join calls c on c.tenant_id = $1 and c.session_id = s.parent_id and c.call_id = s.parent_call and c.status = 'executing'
    where s.tenant_id = $1 and s.session_id = $2 and s.parent_id <> ''
    union all
    select s.parent_id, s.parent_call, a.depth + 1 from above a
    join sessions s on s.tenant_id = $1 and s.session_id = a.session_id and s.parent_id <> ''
    join calls c on c.tenant_id = $1 and c.session_id = s.parent_id and c.call_id = s.parent_call and c.status = 'executing'
    where a.depth < 10
), n as (
    update sessions s set last_seq = s.last_seq + cardinality($3::text[]), updated_at = clock_timestamp()
    from above a where s.tenant_id = $1 and s.session_id = a.session_id and s.status in ('working', 'input_required')
    returning s.session_id, s.last_seq, s.pass, a.via
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, n.session_id, n.last_seq - cardinality($3::text[]) + e.ord, clock_timestamp(), e.type, n.pass, n.via, e.tool,
        (coalesce(nullif(e.data, ''), '{}')::jsonb || jsonb_build_object('session_id', $2::text, 'call', e.call_id, 'via', n.via))::json
    from n, unnest($3::text[], $4::text[], $5::text[], $6::text[]) with ordinality as e(type, call_id, tool, data, ord)
)
select n.session_id, n.last_seq from n

-- name: EventsAfter
select e.session_id, e.seq, e.at, e.type, e.pass, e.call_id, e.tool, e.data from events e
where e.tenant_id = $1 and e.session_id = $2 and e.seq > $3 order by e.seq limit $4

-- name: EventsOfSeveral
-- The events of several watched sessions of a tenant that their watchers have not seen.
select e.session_id, e.seq, e.at, e.type, e.pass, e.call_id, e.tool, e.data
from unnest($2::text[], $3::bigint[]) as w(session_id, after)
cross join lateral (
    select e.session_id, e.seq, e.at, e.type, e.pass, e.call_id, e.tool, e.data from events e
    where e.tenant_id = $1 and e.session_id = w.session_id and e.seq > w.after order by e.seq limit $4
) e

-- name: LastSeqs
select q.tenant_id, q.session_id, q.last_seq from jig_last_seqs($1::text[], $2::text[]) q

-- name: Listened
-- Whether a connection other than that of backend $2 listens for announcements: each holds the advisory lock $1, shared.
select exists (
    select from pg_locks l
    where l.locktype = 'advisory' and l.classid = 0 and l.objid::bigint = $1 and l.objsubid = 1 and l.granted and l.pid <> $2::int
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
)

-- name: Notify
select pg_notify('jig_events', $1)

-- name: TextListeners
-- The connections, except that of backend $2, that ask for the texts that models write, and for which groups of sessions: for each group, a
-- connection holds the advisory lock ($1, group), shared.
select l.pid, l.objid::bigint as bucket from pg_locks l
where l.locktype = 'advisory' and l.classid::bigint = $1 and l.objsubid = 2 and l.granted and l.pid <> $2::int
    and l.database = (select d.oid from pg_database d where d.datname = current_database())

-- name: NotifyText
select pg_notify('jig_text', $1)

-- name: EventsInOrder
-- The events of a tenant after a place, in the order of the transactions that wrote them. It stops below the oldest transaction that still
-- runs, so that no event appears later before one that was returned.
select e.session_id, e.seq, e.at, e.type, e.pass, e.call_id, e.tool, e.data, coalesce(e.written, 0) as written
from events e
where e.tenant_id = $1 and e.written is not null and jig_notable(e.type) and (e.written, e.session_id, e.seq) > ($2::bigint, $3::text, $4::bigint)
    and e.written < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
order by e.written, e.session_id, e.seq limit $5

-- name: EventsHorizon
-- The oldest transaction that still runs, the first one that has not begun, and whether events of the tenant wait for transactions to end.
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest, pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next,
    exists (select from events e where e.tenant_id = $1 and e.written is not null and jig_notable(e.type)
        and e.written >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint) as waiting
