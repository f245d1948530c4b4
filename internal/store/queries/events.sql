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
