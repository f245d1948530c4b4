-- name: CallsUnsummarized
select {{call}} from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.frame = ''
    and c.pass > (select s.summary_through from sessions s where s.tenant_id = $1 and s.session_id = $2)
order by c.pass, c.ordinal, c.call_id

-- name: CallsEqual
-- The calls of other passes with one of the signatures, and whether a person has spoken since each ended, in words that pass $3 has read.
select c.tenant_id as tenant, c.session_id, c.call_id as id, c.pass, c.tool, c.version, c.signature, c.status, c.fence, c.in_doubt, c.error,
    coalesce((select max(m.pass) from messages m where m.tenant_id = $1 and m.session_id = $2 and m.role = 'user' and m.sender = ''
        and m.pass < $3 and (m.pass > c.pass or m.at > c.finished_at)), 0) as message,
    exists (select from approvals a join calls q using (tenant_id, session_id, call_id)
        where a.tenant_id = $1 and a.session_id = $2 and a.kind = 'question' and a.answer <> '' and q.pass < $3
            and a.decided_at > c.finished_at) as answered
from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.frame = '' and c.pass <> $3 and c.signature = any($4::text[]) and c.signature <> ''
    and c.status <> 'duplicate'
order by c.pass, c.ordinal, c.call_id

-- name: CallsKnown
-- Lateral with a limit, here and below, so that each call is looked up by its key. With call_id = any(…) the planner expects a small
-- session and reads all calls of it, even if there are 10,000.
select c.call_id from unnest($3::text[]) as q(call_id) cross join lateral (
    select c.call_id from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = q.call_id limit 1) c
limit 1

-- name: CallsInsert
-- A call that retries another call takes over its idempotency key. If that call does not exist, the key is null and the statement fails.
insert into calls (tenant_id, session_id, call_id, pass, ordinal, provider_id, tool, version, write, idempotent, input,
    signature, concurrency_key, digest, policy_version, verdict, reasons, status, duplicate_of, result, summary, error, frame, nth,
    reads_private, reads_untrusted, flow, finished_at, idempotency_key)
select $1, $2, q.call_id, q.pass, q.ordinal, q.provider_id, q.tool, q.version, q.write, q.idempotent, q.input,
    q.signature, q.concurrency_key, q.digest, q.policy_version, q.verdict, nullif(q.reasons, '')::json, q.status, q.duplicate_of,
    q.result, q.summary, q.error, q.frame, q.nth, q.reads_private, q.reads_untrusted, nullif(q.flow, '')::json,
    case when q.result is not null then clock_timestamp() end,
    case when q.retry_of = '' then q.idempotency_key else (select c.idempotency_key from calls c
        where c.tenant_id = $1 and c.session_id = $2 and c.call_id = q.retry_of) end
from unnest($3::text[], $4::int[], $5::int[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::boolean[], $11::bytea[],
    $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bytea[],
    $21::text[], $22::bytea[], $23::text[], $24::text[], $25::text[],
    $26::boolean[], $27::boolean[], $28::text[]) with ordinality
    as q(call_id, pass, ordinal, provider_id, tool, version, write, idempotent, input, signature, concurrency_key, digest,
        policy_version, verdict, reasons, status, duplicate_of, result, summary, error, frame, idempotency_key, retry_of,
        reads_private, reads_untrusted, flow, nth)

-- name: CallsWindow
-- Open calls of a pass: up to 100 that wait for a person and up to $4 others, plus one of each if there are more.
select {{call}} from (
    select c.*, row_number() over (partition by c.status in ('waiting', 'unknown') order by c.ordinal, c.call_id) as place
    from calls c
    where c.tenant_id = $1 and c.session_id = $2 and c.frame = '' and c.pass = $3
        and c.status in ('waiting', 'reserved', 'executing', 'unknown')
) c
where c.place <= 1 + case when c.status in ('waiting', 'unknown') then 100 else $4 end
order by c.ordinal, c.call_id

-- name: CallGet
select {{call}} from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3

-- name: CallLock
select {{call}} from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 for no key update

-- name: CallsLockOpen
select {{call}} from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.status in ('waiting', 'reserved', 'executing', 'unknown')
order by {{call_order}} for no key update

-- name: CallsHold
-- Locks calls in the order in which every transaction locks them.
select c.call_id from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = any($3::text[])
order by {{call_order}} for no key update

-- fragment: event_head
-- The beginning of the data of a call's event, a JSON object: the provider's id of the call, if there is one.
('{' || case when c.provider_id <> '' then '"provider_id":' || to_json(c.provider_id) || ',' else '' end)

-- name: CallStartFast
-- Begins the first attempt of a call that needed no approval, with its event, in one statement. It does nothing unless the call is exactly
-- as expected. $7 is the event's data, a JSON object that is not empty.
with c as (
    update calls c set status = 'executing', fence = c.fence + 1, attempt = $6, started_at = clock_timestamp()
    where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.status = 'reserved' and c.verdict = 'run'
        and c.version = $4 and c.digest = $5 and c.fence = 0
    returning c.*
), n as (
    update sessions s set last_seq = s.last_seq + 1, updated_at = clock_timestamp()
    from c where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq, clock_timestamp(), 'tool.started', c.pass, c.call_id, c.tool,
        ({{event_head}} || substr($7, 2))::json
    from n, c
)
select {{call}}, n.last_seq from c, n

-- name: CallStart
update calls c set status = 'executing', fence = c.fence + 1, attempt = $4, started_at = clock_timestamp(), finished_at = null,
    child = case when $5 = '' then c.child else $5 end, in_doubt = $6
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 returning {{call}}

-- name: CallFinishFast
-- Finalizes the attempt that holds the fence, with its event, in one statement. $9 is the event's data, a JSON object. If $13 is true, the
-- result is made from the results of the calls of the call's composition, and from the events that it has received.
with c as (
    update calls c set status = $5, result = $6, summary = $7, error = $8, finished_at = clock_timestamp(),
        reads_private = c.reads_private or $11, reads_untrusted = c.reads_untrusted or $12
            or $13 and (exists (select from calls o where o.tenant_id = $1 and o.session_id = $2 and o.frame = $3 and o.reads_untrusted)
                or exists (select from received_consumed r where r.tenant_id = $1 and r.session_id = $2 and r.frame = $3))
    where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.fence = $4 and c.status = 'executing'
    returning c.*
), n as (
    update sessions s set last_seq = s.last_seq + 1, updated_at = clock_timestamp(),
        writes = s.writes + case when c.write and c.status = 'succeeded' then 1 else 0 end,
        read_private = s.read_private or c.reads_private, read_untrusted = s.read_untrusted or c.reads_untrusted
    from c where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq, clock_timestamp(), $10, c.pass, c.call_id, c.tool,
        ({{event_head}} || '"duration_ms":' || round(extract(epoch from c.finished_at - c.started_at) * 1000) || ',' || substr($9, 2))::json
    from n, c
)
select {{call}}, n.last_seq from c, n

-- name: CallChild
-- Records the session that an executing call starts, and the hash of what it asks of it.
update calls c set child = $4, request = $5
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.status = 'executing' and c.child in ('', $4) returning c.call_id

-- name: CallAsks
-- Records the hash of what an executing call says to another session.
update calls c set request = $4
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.status = 'executing' and c.child = '' returning c.call_id

-- name: CallRequest
select c.request from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3

-- name: CallSet
-- Sets the status and the result of a locked call. Without a result the call is open.
update calls c set status = $4, result = $5, summary = $6, error = $7, result_artifact = $8,
    finished_at = case when $5::bytea is null then null else clock_timestamp() end
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 returning {{call}}

-- name: CallRead
-- Records what a call has read, for the call and for its session. $4, $5 and $6 are as $11, $12 and $13 of CallFinishFast.
with c as (
    update calls c set reads_private = c.reads_private or $4, reads_untrusted = c.reads_untrusted or $5
        or $6 and (exists (select from calls o where o.tenant_id = $1 and o.session_id = $2 and o.frame = $3 and o.reads_untrusted)
            or exists (select from received_consumed r where r.tenant_id = $1 and r.session_id = $2 and r.frame = $3))
    where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3
    returning c.reads_private, c.reads_untrusted
)
update sessions s set read_private = s.read_private or c.reads_private, read_untrusted = s.read_untrusted or c.reads_untrusted
from c where s.tenant_id = $1 and s.session_id = $2

-- name: CallGiveBack
-- Lets an open call begin again. $4 is true if an earlier attempt may have taken effect. $5 is the time of a failure that may pass; $6 is true if
-- earlier failures do not matter any more.
update calls c set status = 'reserved', in_doubt = $4, tried = false,
    failed_at = case when $6 then null else coalesce(c.failed_at, $5::timestamptz) end,
    failures = c.failures + case when $5::timestamptz is not null and c.status = 'executing' then 1 else 0 end
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 returning {{call}}

-- name: CompositionsNotBegun
-- Returns the given calls that are compositions and have not begun.
select c.call_id from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = any($3::text[])
    and exists (select from documents d where d.tenant_id in ($1, '_global') and d.kind = 'composition' and d.name = c.tool and d.version = c.version)
    and not exists (select from frames f where f.tenant_id = $1 and f.session_id = $2 and f.call_id = c.call_id)

-- name: CallsMarkRestored
-- Marks calls that may have run since a backup was made, and raises the fences of the calls in $4 by $5.
update calls c set in_doubt = true, fence = c.fence + case when c.call_id = any($4::text[]) then $5::integer else 0 end
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = any($3::text[])

-- name: CallsFinish
-- Finalizes several locked calls.
update calls c set status = q.status, result = q.result, summary = q.summary, error = q.error, finished_at = clock_timestamp()
from unnest($3::text[], $4::text[], $5::bytea[], $6::text[], $7::bytea[]) as q(call_id, status, result, summary, error)
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = q.call_id

-- name: CallSharesKey
-- Reports whether another call of the session has the same idempotency key.
select exists (select from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id <> $3 and c.idempotency_key = $4)

-- name: CallEdit
-- Stores what a decision changed in a call. The call may run, or waits for another decision.
update calls c set status = $11, input = $4, digest = $5, version = $6, policy_version = $7, reasons = $8,
    signature = $9, concurrency_key = $10, patch = $12, edited_by = $13, flow = $14,
    reads_private = $15, reads_untrusted = $16, preview = $17
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 returning {{call}}

-- name: CallReadmit
update calls c set version = $4, write = $5, idempotent = $6, digest = $7, policy_version = $8, verdict = $9, reasons = $10,
    status = $11, result = $12, summary = $13, error = $14, signature = $15, concurrency_key = $16, input = $17,
    reads_private = $18, reads_untrusted = $19, flow = $20, preview = $21, previews = $22, failed_at = null,
    finished_at = case when $12::bytea is null then null else clock_timestamp() end
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 returning {{call}}

-- name: SessionCountWrite
update sessions s set writes = s.writes + 1 where s.tenant_id = $1 and s.session_id = $2

-- name: CallCountsOfPass
select c.status, count(*) from calls c where c.tenant_id = $1 and c.session_id = $2 and c.frame = '' and c.pass = $3
group by c.status

-- name: CallCounts
select c.status, count(*) from calls c where c.tenant_id = $1 and c.session_id = $2 group by c.status

-- name: CallsHeld
-- Counts the reserved and executing calls that cannot go on by themselves.
select count(*) from calls o where o.tenant_id = $1 and o.session_id = $2 and o.status in ('reserved', 'executing') and ({{held}})

-- name: CallsStuck
-- Counts the reserved and executing calls that cannot go on by themselves, or only when an event or a time comes, or a rate limit lets them.
select count(*) from calls o where o.tenant_id = $1 and o.session_id = $2 and o.status in ('reserved', 'executing') and ({{held}} or {{stuck}})

-- name: CallViews
-- A call that is held back because a policy cannot be read, or that waits for an outage to pass, shows the reason instead of a summary.
select c.call_id as call, c.tool, c.status,
    case when c.status = 'reserved' and c.policy_version = $4 then c.reasons ->> 0
        when c.status = 'reserved' and c.failed_at is not null
            then 'is tried again; it has failed since ' || to_char(c.failed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"')
        else c.summary end as summary,
    c.error, c.child, c.started_at, c.finished_at,
    case when c.status = 'reserved' and (c.model_wait ->> 'attempt')::integer = c.fence then c.model_wait end as model_wait from calls c
where c.tenant_id = $1 and c.session_id = $2
order by c.pass desc, c.ordinal desc, c.created_at desc, c.nth desc, c.call_id desc limit $3

-- name: CallsGet
select {{call}} from (select distinct q.call_id from unnest($3::text[]) as q(call_id)) q cross join lateral (
    select c.* from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = q.call_id limit 1) c
order by {{call_order}}

-- name: CommitSoon
select set_config('synchronous_commit', 'off', true)

-- name: CallsTry
update calls c set tried = true
where c.tenant_id = $1 and c.session_id = $2 and c.call_id = any($3::text[]) and c.status = 'reserved' and c.fence = 0

-- name: CallsFinishQuick
-- Records first attempts that have already run, with their events, in one statement. Only for idempotent reads that needed no approval.
with q as (
    select * from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bytea[],
        $10::timestamptz[], $11::timestamptz[], $12::text[], $13::text[], $14::text[], $15::boolean[], $16::boolean[])
        with ordinality as q(call_id, version, digest, status, result, summary, error, started_at, finished_at, kind, start_data, end_data,
            reads_private, reads_untrusted, place)
), c as (
    update calls c set status = q.status, fence = 1, started_at = q.started_at, finished_at = q.finished_at,
        result = q.result, summary = q.summary, error = q.error,
        reads_private = c.reads_private or q.reads_private, reads_untrusted = c.reads_untrusted or q.reads_untrusted
    from q
    where c.tenant_id = $1 and c.session_id = $2 and c.call_id = q.call_id and c.status = 'reserved' and c.verdict = 'run'
        and c.version = q.version and c.digest = q.digest and c.fence = 0 and c.idempotent and not c.write
    returning c.call_id, c.pass, c.tool, q.place, q.started_at, q.finished_at, q.kind, c.reads_private, c.reads_untrusted,
        ({{event_head}} || substr(q.start_data, 2))::json as start_data, ({{event_head}} || substr(q.end_data, 2))::json as end_data
), r as (
    select c.*, row_number() over (order by c.place) as rank, count(*) over () as total from c
), n as (
    update sessions s set last_seq = s.last_seq + 2 * (select count(*) from c), updated_at = clock_timestamp(),
        read_private = s.read_private or exists (select from c where c.reads_private),
        read_untrusted = s.read_untrusted or exists (select from c where c.reads_untrusted)
    where s.tenant_id = $1 and s.session_id = $2 and exists (select from c)
    returning s.last_seq
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq - 2 * r.total + r.rank, r.started_at, 'tool.started', r.pass, r.call_id, r.tool, r.start_data
    from n, r
    union all
    select $1, $2, n.last_seq - r.total + r.rank, r.finished_at, r.kind, r.pass, r.call_id, r.tool, r.end_data
    from n, r
)
select r.call_id, r.tool, n.last_seq from r, n

-- name: CallTool
select c.tool from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3

-- name: SettledInsert
insert into settled_calls (tenant_id, session_id, call_id, frame) values ($1, $2, $3, $4) on conflict do nothing

-- name: SettledTake
select q.tenant_id as tenant, q.session_id, q.call_id as id, q.frame from jig_take_settled($1, $2) q

-- name: SettledTold
select jig_told_settled($1, $2)

-- name: RechecksTake
select q.tenant_id, q.due from jig_take_rechecks($1, $2) q

-- name: Rechecked
select jig_rechecked($1)
