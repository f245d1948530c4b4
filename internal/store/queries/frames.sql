-- name: FrameTakeOver
-- Hands the composition to a later attempt of its call. An earlier attempt changes nothing.
update frames f set fence = $4, updated_at = clock_timestamp()
where f.tenant_id = $1 and f.session_id = $2 and f.call_id = $3 and f.fence < $4 and not f.done

-- name: FrameInsert
-- Starts a composition once, for a call that has no result yet, and records the call in the entity that it fills.
with f as (
    insert into frames (tenant_id, session_id, call_id, kind, name, version, fence, state, entity_id, received_before)
    select $1, $2, $3, $4, $5, $6, $7, $8, $9, case
        when c.call_id = '1.1' and s.agent_name = 'call' then 0 -- the session was started with this call, so all of its events count
        else coalesce((select max(r.n) from received r where r.tenant_id = $1 and r.session_id = $2 and r.at < c.created_at), 0) end
    from calls c join sessions s using (tenant_id, session_id)
    where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.result is null
    on conflict do nothing returning entity_id
)
update entities e set session_id = $2, call_id = $3
from f where f.entity_id <> '' and e.tenant_id = $1 and e.entity_id = f.entity_id and e.deleted_at is null

-- name: FrameGet
select f.tenant_id as tenant, f.session_id, f.call_id, f.kind, f.name, f.version, f.entity_id as entity, f.fence, f.state, f.revision, f.done, f.result, f.result_artifact,
    exists (select from documents d where d.tenant_id = f.tenant_id and d.kind = f.kind and d.name = f.name and d.version = f.version and d.untrusted) as untrusted
from frames f where f.tenant_id = $1 and f.session_id = $2 and f.call_id = $3

-- name: FrameReceived
-- The events that the composition has not consumed, and that the session received since the composition was asked for or, if no composition has
-- consumed them, since the outermost composition around it was; no events once it has ended.
select r.n as id, r.name, r.data, r.by from frames f
join frames o on o.tenant_id = f.tenant_id and o.session_id = f.session_id and o.call_id = split_part(f.call_id, '/', 1)
join received r on r.tenant_id = f.tenant_id and r.session_id = f.session_id and r.n > o.received_before
where f.tenant_id = $1 and f.session_id = $2 and f.call_id = $3 and not f.done and not exists (
    select from received_consumed k
    where k.tenant_id = f.tenant_id and k.session_id = f.session_id and k.n = r.n and (k.frame = f.call_id or r.n <= f.received_before))
order by r.n

-- name: FrameMove
-- Stores the next state if the revision is still the expected one.
update frames f set state = $5, revision = f.revision + 1, done = $6, result = $7, result_artifact = $8, waits = $9, updated_at = clock_timestamp()
where f.tenant_id = $1 and f.session_id = $2 and f.call_id = $3 and f.revision = $4 and not f.done
returning f.revision

-- name: FrameWaits
-- What the running compositions of a session wait for.
select f.waits from frames f where f.tenant_id = $1 and f.session_id = $2 and not f.done and f.waits is not null order by f.call_id limit $3

-- name: FramesAmong
-- Returns the given calls that a composition answers.
select f.call_id from frames f where f.tenant_id = $1 and f.session_id = $2 and f.call_id = any($3::text[])

-- name: FramesEnd
-- Ends all running compositions of a session.
update frames f set done = true, result = $3, revision = f.revision + 1, updated_at = clock_timestamp()
where f.tenant_id = $1 and f.session_id = $2 and not f.done

-- name: FrameCallsOpen
select {{call}} from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.open_frame = $3
order by c.created_at, c.nth, c.call_id

-- name: FrameCallsLock
-- Locks the given calls of a composition that have one of the given statuses.
select {{call}} from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.frame = $3 and c.call_id = any($4::text[]) and c.status = any($5::text[])
order by {{call_order}} for no key update

-- name: FrameValuesPut
insert into frame_values (tenant_id, session_id, frame, path, value, artifact)
select $1, $2, $3, q.path, q.value, q.artifact from unnest($4::text[], $5::bytea[], $6::text[]) as q(path, value, artifact)
on conflict (tenant_id, session_id, frame, path) do update set value = excluded.value, artifact = excluded.artifact

-- name: FrameValuesGet
-- Lateral with a limit, so that each value is looked up by its key, as in CallsKnown.
select v.path, coalesce(v.value, (
    select string_agg(k.data, ''::bytea order by k.at) from artifact_chunks k
    where k.tenant_id = v.tenant_id and k.artifact_id = v.artifact)) as value
from (select distinct q.path from unnest($4::text[]) as q(path)) q cross join lateral (
    select v.* from frame_values v where v.tenant_id = $1 and v.session_id = $2 and v.frame = $3 and v.path = q.path limit 1) v

-- name: FrameConsume
insert into received_consumed (tenant_id, session_id, frame, n)
select $1, $2, $3, q.n from unnest($4::bigint[]) as q(n)
on conflict do nothing

-- name: ReceivedInsert
-- Stores an event that was sent to a session, once per key, and numbers it, unless the session has $10 events or they would have more than
-- $11 bytes. Its data are not trusted. An earlier statement locks the session's row, so that this one sees the latest number.
with l as (
    select coalesce(max(r.n), 0) as n, coalesce(max(r.size), 0) as size from received r where r.tenant_id = $1 and r.session_id = $2
), r as (
    insert into received (tenant_id, session_id, n, key, name, data, by, claimed, at, size)
    select $1, $2, l.n + 1, $3, $4, $5::json, $6, $9, clock_timestamp(), l.size + octet_length($4) + coalesce(octet_length($5::text), 0)
    from sessions s, l where s.tenant_id = $1 and s.session_id = $2
        and l.n < $10 and l.size + octet_length($4) + coalesce(octet_length($5::text), 0) <= $11
    on conflict (tenant_id, session_id, key) do nothing returning n
), n as (
    update sessions s set last_seq = s.last_seq + 1, read_untrusted = true, updated_at = clock_timestamp()
    from r where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq, s.pass
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, data)
    select $1, $2, n.last_seq, clock_timestamp(), $7, n.pass, $8::json from n
)
select (select n.last_seq from n) as seq, (select l.n from l) as had,
    exists (select from received o where o.tenant_id = $1 and o.session_id = $2 and o.key = $3) as known

-- name: CallsBegunBelow
-- The calls of a session, or those inside a call, that have begun and either write or use one of the given tools. Compositions are left
-- out, because their steps are calls too.
select c.call_id, c.write from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.fence > 0 and (c.write or c.tool = any($4))
    and ($3 = '' or starts_with(c.call_id, $3 || '/'))
    and not exists (select from frames f where f.tenant_id = c.tenant_id and f.session_id = c.session_id and f.call_id = c.call_id)
order by c.write desc, c.call_id
limit 1000

-- name: CallsWritten
-- A call of which the composition's own undo has succeeded is marked; so is one that a call of another session has undone, or may have: that
-- session was deleted.
select {{call}}, c.frame <> '' and exists (select from calls o where o.tenant_id = c.tenant_id and o.session_id = c.session_id
        and o.call_id = regexp_replace(c.call_id, '~[0-9]+$', '') || '.undo' and o.status = 'succeeded') as undone,
    coalesce(u.by_session, '') as by_session, coalesce(u.by_call, '') as by_call
from calls c left join undos u on u.tenant_id = c.tenant_id and u.session_id = c.session_id and u.call_id = c.call_id and (
    exists (select from calls b where b.tenant_id = u.tenant_id and b.session_id = u.by_session and b.call_id = u.by_call and b.status = 'succeeded')
    or not exists (select from sessions s where s.tenant_id = u.tenant_id and s.session_id = u.by_session))
where c.tenant_id = $1 and c.session_id = $2 and c.fence > 0 and c.status in ('succeeded', 'failed') and (c.write or c.tool = any($3) or c.child <> ''
    or exists (select from frames f where f.tenant_id = c.tenant_id and f.session_id = c.session_id and f.call_id = c.call_id))
order by c.finished_at desc, c.call_id desc
limit $4

-- name: UndoInsert
insert into undos (tenant_id, session_id, call_id, by_session, by_call)
select $1, $2, $3, $4, $5 from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3
on conflict do nothing

-- name: UndoLock
select u.by_session, u.by_call, coalesce((select s.status from sessions s where s.tenant_id = u.tenant_id and s.session_id = u.by_session), '') as session_status
from undos u where u.tenant_id = $1 and u.session_id = $2 and u.call_id = $3 for update

-- name: UndoPut
update undos set by_session = $4, by_call = $5 where tenant_id = $1 and session_id = $2 and call_id = $3
