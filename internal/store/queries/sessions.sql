-- name: TenantEnsure
insert into tenants (tenant_id) values ($1) on conflict do nothing

-- name: SessionCreate
insert into sessions (tenant_id, session_id, agent, agent_name, principal, input, task, catalog, status, todo, parent_id, depth,
    parent_call, parent_agent, root_agent, source, request_digest, read_private, read_untrusted)
values ($1, $2, $3, $4, $5, $6, $7, $8, 'working', $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)

-- name: SessionRetired
select exists (select from retired_sessions r where r.tenant_id = $1 and r.id_hash = sha256(convert_to($2, 'UTF8')))

-- name: SessionGet
select {{session}} from sessions s where s.tenant_id = $1 and s.session_id = $2

-- name: SessionStatus
select s.status from sessions s where s.tenant_id = $1 and s.session_id = $2

-- name: SessionCountRefused
update sessions s set refused_signals = s.refused_signals + 1 where s.tenant_id = $1 and s.session_id = $2 returning s.refused_signals

-- name: SessionLock
select {{session}} from sessions s where s.tenant_id = $1 and s.session_id = $2 for no key update

-- name: SessionHold
-- Locks a session's row, so that later statements see what the previous holder of the lock stored.
select s.session_id from sessions s where s.tenant_id = $1 and s.session_id = $2 for no key update

-- name: SessionSetTodo
update sessions s set todo = $3, updated_at = clock_timestamp() where s.tenant_id = $1 and s.session_id = $2 returning s.session_id

-- name: SessionSetSummary
update sessions s set summary_through = $3, summary = $4, updated_at = clock_timestamp()
where s.tenant_id = $1 and s.session_id = $2 and s.summary_through <= $3 returning s.session_id

-- name: PassBegin
-- Begins a pass, with its event, unless it has already begun.
with n as (
    update sessions s set pass = $3, status = 'working', answer = '', answer_artifact = '', reason = '', error = null,
        last_seq = s.last_seq + 1, updated_at = clock_timestamp()
    where s.tenant_id = $1 and s.session_id = $2 and s.pass < $3
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, data)
    select $1, $2, n.last_seq, clock_timestamp(), 'pass.started', $3, '{}' from n
)
select n.last_seq from n

-- name: TurnInsert
-- Stores the turn of a pass and counts its tokens, once. $12 and $13 are the types and the data of its events, or null.
with t as (
    insert into turns (tenant_id, session_id, pass, body, artifact, tokens, model, output_tokens, cache_read_tokens,
        cache_create_tokens, cost)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    on conflict do nothing returning tokens
), n as (
    update sessions s set tokens = s.tokens + t.tokens, last_seq = s.last_seq + coalesce(cardinality($12::text[]), 0),
        updated_at = clock_timestamp()
    from t where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, data)
    select $1, $2, n.last_seq - cardinality($12::text[]) + u.n, clock_timestamp(), u.type, $3, u.data::json
    from n, unnest($12::text[], $13::text[]) with ordinality as u(type, data, n)
)
select n.last_seq from n

-- name: TurnGet
select t.pass, coalesce(t.body, (
    select string_agg(k.data, ''::bytea order by k.at) from artifact_chunks k
    where k.tenant_id = t.tenant_id and k.artifact_id = t.artifact)) as body
from turns t where t.tenant_id = $1 and t.session_id = $2 and t.pass = $3

-- name: TurnStore
-- Stores the turn of a pass and counts its tokens. It fails if the pass has a turn, or if the session has ended or does not exist: then
-- session_id is null.
with s as (
    update sessions s set tokens = s.tokens + $6::bigint, updated_at = clock_timestamp()
    where s.tenant_id = $1 and s.session_id = $2 and s.status in ('working', 'input_required')
    returning s.session_id
)
insert into turns (tenant_id, session_id, pass, body, artifact, tokens, model, output_tokens, cache_read_tokens, cache_create_tokens, cost)
values ($1, (select s.session_id from s), $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- name: TurnsUnsummarized
select t.pass, coalesce(t.body, (
    select string_agg(k.data, ''::bytea order by k.at) from artifact_chunks k
    where k.tenant_id = t.tenant_id and k.artifact_id = t.artifact)) as body
from turns t
where t.tenant_id = $1 and t.session_id = $2
    and t.pass > (select s.summary_through from sessions s where s.tenant_id = $1 and s.session_id = $2)
order by t.pass

-- name: MessageInsert
-- Locks the session's row first, so that the message belongs to the pass that has begun when it is stored. What others than the session's
-- principal write is not trusted.
with s as (
    select s.pass, $4 = 'user' and $6 is distinct from s.principal ->> 'id' as untrusted from sessions s where s.tenant_id = $1 and s.session_id = $2 for no key update
), m as (
    insert into messages (tenant_id, session_id, key, role, body, by, pass, at, sender)
    select $1, $2, $3, $4, $5, $6, s.pass, coalesce($7, clock_timestamp()), $9 from s
    on conflict do nothing returning pass
), n as (
    update sessions set last_seq = last_seq + 1, read_untrusted = read_untrusted or s.untrusted, updated_at = clock_timestamp()
    from m, s where tenant_id = $1 and session_id = $2
    returning last_seq, m.pass
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, data)
    select $1, $2, n.last_seq, clock_timestamp(), 'message.added', n.pass, $8::json from n
)
select (select n.last_seq from n) as last_seq from s

-- name: MessageHas
select exists (select from messages m where m.tenant_id = $1 and m.session_id = $2 and m.key = $3)

-- name: MessageRead
-- Only a pass that began after the message was stored has read it.
select exists (
    select from messages m join sessions s on s.tenant_id = m.tenant_id and s.session_id = m.session_id
    where m.tenant_id = $1 and m.session_id = $2 and m.key = $3 and m.pass < s.pass)

-- name: MessageFirst
insert into messages (tenant_id, session_id, key, role, body, by, pass, at)
values ($1, $2, $3, 'user', $4, $5, 0, clock_timestamp())

-- name: MessagesUnsummarized
select m.role, m.body as text, m.by, m.pass, m.at from messages m
where m.tenant_id = $1 and m.session_id = $2
    and m.pass >= (select s.summary_through from sessions s where s.tenant_id = $1 and s.session_id = $2)
order by m.n

-- name: MessagesUnread
select count(*) from messages m where m.tenant_id = $1 and m.session_id = $2 and m.role = 'user' and m.pass >= $3

-- name: MessageLatestPass
select m.pass from messages m where m.tenant_id = $1 and m.session_id = $2 and m.role = 'user' order by m.n desc limit 1

-- name: PassEnd
-- Ends a pass once, and its session if the status is final. If $12 is true, it does nothing while the session has messages that no turn
-- has followed.
with s as (
    select s.session_id from sessions s
    where s.tenant_id = $1 and s.session_id = $2 and s.status in ('working', 'input_required')
        and not ($12::boolean and exists (select from messages m
            where m.tenant_id = $1 and m.session_id = $2 and m.role = 'user' and m.pass >= $3))
    for no key update
), p as (
    insert into pass_ends (tenant_id, session_id, pass, body, answer) select $1, $2, $3, $4, $5 from s
    on conflict do nothing returning pass
), n as (
    update sessions s set
        status = $6, reason = $7, answer = $8, answer_artifact = $5, error = $9,
        last_seq = s.last_seq + cardinality($10::text[]), updated_at = clock_timestamp()
    from p where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, data)
    select $1, $2, n.last_seq - cardinality($10::text[]) + e.ord, clock_timestamp(), e.type, $3, e.data::json
    from n, unnest($10::text[], $11::text[]) with ordinality as e(type, data, ord)
)
select n.last_seq from n

-- name: PassEndInsert
insert into pass_ends (tenant_id, session_id, pass, body, answer) values ($1, $2, $3, $4, $5) on conflict do nothing

-- name: PassEndGet
select p.body, case when p.answer = '' then null else (
    select string_agg(k.data, ''::bytea order by k.at) from artifact_chunks k
    where k.tenant_id = p.tenant_id and k.artifact_id = p.answer) end as answer
from pass_ends p where p.tenant_id = $1 and p.session_id = $2 and p.pass = $3

-- name: SessionEnd
-- Ends a session, with the events of its end. It is the last statement of its transaction.
with n as (
    update sessions s set status = $3, reason = $4, answer = $5, answer_artifact = $6, error = $7,
        last_seq = s.last_seq + cardinality($8::text[]), updated_at = clock_timestamp()
    where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq - cardinality($8::text[]) + e.ord, clock_timestamp(), e.type, e.pass, e.call_id, e.tool, nullif(e.data, '')::json
    from n, unnest($8::text[], $9::int[], $10::text[], $11::text[], $12::text[]) with ordinality as e(type, pass, call_id, tool, data, ord)
)
select n.last_seq from n

-- name: SessionsListed
-- plan: custom
-- plan: ordered
-- A page of sessions that started before ($2, $3), the newest first. Each status, and the sessions that others started, are read along the index
-- of the filter by themselves. waiting, busy and held count calls as in the query Delegated; nested
-- reports that another session answers a call of this one.
with listed as (
    select q.session_id, q.created_at
    from unnest($5::text[]) as w(status)
    cross join unnest(case when $8 <> '' then '{false}' when $9 then '{true}' else '{true,false}' end::boolean[]) as o(topmost)
    cross join lateral (
        select s.session_id, s.created_at from sessions s
        where s.tenant_id = $1 and s.topmost = o.topmost and s.status = w.status and (s.created_at, s.session_id) < ($2, $3) and s.created_at > $4
            and ($6 = '' or s.agent_name = $6) and ($7 = '' or s.listed_requester = left($7, 200) and s.principal ->> 'id' = $7)
            and ($8 = '' or s.parent_id = $8) and ($11 = '' or s.reason = $11)
        order by s.created_at desc, s.session_id desc limit $10) q
    order by q.created_at desc, q.session_id desc limit $10
)
select s.session_id, s.agent_name as agent, coalesce(c.tool, '') as tool, s.status, s.pass, left(s.task, 300) as task,
    substring(coalesce(c.input, s.input, '') from 1 for 300) as input,
    coalesce(s.principal ->> 'id', '') as requested_by, s.source, s.parent_id, s.parent_call, s.reason, s.error, s.created_at, s.updated_at,
    coalesce(n.waiting, 0) as waiting, coalesce(n.busy, 0) as busy, coalesce(n.held, 0) as held, coalesce(n.nested, false) as nested, ({{rests}}) as paused
from listed q join sessions s on s.tenant_id = $1 and s.session_id = q.session_id
left join calls c on c.tenant_id = s.tenant_id and c.session_id = s.session_id and c.call_id = '1.1' and s.agent_name = 'call'
left join lateral (
    select count(*) filter (where o.status in ('waiting', 'unknown')) as waiting,
        count(*) filter (where o.status in ('reserved', 'executing')) as busy,
        count(*) filter (where {{held}}) as held,
        bool_or(o.status = 'executing' and o.child <> '') as nested
    from calls o
    where o.tenant_id = s.tenant_id and o.session_id = s.session_id and o.status in ('waiting', 'unknown', 'reserved', 'executing')
) n on s.status in ('working', 'input_required')
order by q.created_at desc, q.session_id desc

-- name: MessagesOfPass
select m.role, m.body as text, m.by, m.pass, m.at from messages m
where m.tenant_id = $1 and m.session_id = $2 and m.pass = $3
order by m.n

-- name: TurnTime
select t.created_at from turns t where t.tenant_id = $1 and t.session_id = $2 and t.pass = $3

-- name: CallsOfPass
select {{call}} from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.pass = $3
order by {{call_order}} offset $4 limit $5

-- name: ModelWait
-- Why the request for the turn of a session's latest pass failed, unless the pass has a turn by now.
select s.model_wait from sessions s
where s.tenant_id = $1 and s.session_id = $2 and (s.model_wait->>'pass')::integer = s.pass and s.status in ('working', 'input_required')
    and not exists (select from turns t where t.tenant_id = $1 and t.session_id = $2 and t.pass = s.pass)

-- name: ModelWaits
-- Records the event that the model is asked again.
with n as (
    update sessions s set model_wait = $4::json, last_seq = s.last_seq + 1, updated_at = clock_timestamp()
    where s.tenant_id = $1 and s.session_id = $2 and s.pass = $3 and s.status in ('working', 'input_required')
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, data)
    select $1, $2, n.last_seq, clock_timestamp(), 'model.waiting', $3, $4::json from n
)
select n.last_seq from n

-- name: CallModelWait
select c.model_wait from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3

-- name: CallModelWaits
-- Records the event that a call asks its model again, after the attempt $4.
with c as (
    update calls c set model_wait = $5::json
    where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.fence = $4 and c.status = 'reserved'
    returning c.pass, c.tool
), n as (
    update sessions s set last_seq = s.last_seq + 1, updated_at = clock_timestamp()
    from c where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq, c.pass, c.tool
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq, clock_timestamp(), 'model.waiting', n.pass, $3, n.tool, $5::json from n
)
select n.last_seq from n
