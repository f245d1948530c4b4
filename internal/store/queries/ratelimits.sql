-- name: RateBucketsEnsure
insert into rate_buckets (tenant_id, document, limit_name, key)
select $1, q.document, q.limit_name, q.key from unnest($2::text[], $3::text[], $4::text[]) as q(document, limit_name, key)
on conflict do nothing

-- name: RateBucketsLock
-- Locks buckets in the order in which every transaction locks them.
select b.document from rate_buckets b
where b.tenant_id = $1 and (b.document, b.limit_name, b.key) in (
    select q.document, q.limit_name, q.key from unnest($2::text[], $3::text[], $4::text[]) as q(document, limit_name, key))
order by b.document, b.limit_name, b.key for no key update

-- name: RateCallsEnded
-- Takes calls that have ended out of those that run. A call that was let in counts for a minute until its attempt begins.
update rate_calls r set state = 'over', until = clock_timestamp()
where r.tenant_id = $1 and r.state = 'running' and (r.document, r.limit_name, r.key) in (
        select q.document, q.limit_name, q.key from unnest($2::text[], $3::text[], $4::text[]) as q(document, limit_name, key))
    and not exists (select from calls c where c.tenant_id = $1 and c.session_id = r.session_id and c.call_id = r.call_id
        and (c.status = 'executing' or c.status = 'reserved' and c.fence = r.fence and r.until > clock_timestamp()))

-- name: RateStates
-- The state of locked buckets for the call $6 of the session $5 (empty for the start of the session), in the order of the buckets. Of the calls and
-- sessions that wait, those near the front are counted only if they are open. Behind a hundred others, the difference of the tickets is exact enough, and
-- costs the same however many wait.
select b.next_at as next, clock_timestamp() as now, s.running, own.ticket is not null as queued, own.runs, first.since,
    case when s.near > 100 then greatest(s.near, coalesce(own.ticket, s.last_ticket + 1) - s.first_ticket) else (
        select count(*) from rate_calls w
        left join calls c on c.tenant_id = $1 and c.session_id = w.session_id and c.call_id = w.call_id
        join sessions s on s.tenant_id = $1 and s.session_id = w.session_id
        where case w.call_id when '' then s.status = 'working' else c.status in ('reserved', 'executing') end
            and w.tenant_id = $1 and w.document = q.document and w.limit_name = q.limit_name and w.key = q.key
            and w.state = 'waiting' and w.until > clock_timestamp() and (own.ticket is null or w.n < own.ticket)
    ) end as ahead
from unnest($2::text[], $3::text[], $4::text[]) with ordinality as q(document, limit_name, key, nth)
join rate_buckets b on b.tenant_id = $1 and b.document = q.document and b.limit_name = q.limit_name and b.key = q.key
left join rate_calls r on r.tenant_id = $1 and r.session_id = $5 and r.call_id = $6 and r.document = q.document
    and r.limit_name = q.limit_name and r.key = q.key
cross join lateral (select case r.state when 'waiting' then r.n end as ticket, coalesce(r.state = 'running', false) as runs) own
cross join (select min(w.since) as since from rate_calls w
    where w.tenant_id = $1 and w.session_id = $5 and w.call_id = $6 and w.state = 'waiting') first
cross join lateral (select
    (select count(*) from (select from rate_calls w
        where w.tenant_id = $1 and w.document = q.document and w.limit_name = q.limit_name and w.key = q.key and w.state = 'waiting'
            and w.until > clock_timestamp() and (own.ticket is null or w.n < own.ticket) order by w.n limit 101) w) as near,
    (select w.n from rate_calls w
        where w.tenant_id = $1 and w.document = q.document and w.limit_name = q.limit_name and w.key = q.key and w.state = 'waiting'
            and w.until > clock_timestamp() order by w.n limit 1) as first_ticket,
    (select w.n from rate_calls w
        where w.tenant_id = $1 and w.document = q.document and w.limit_name = q.limit_name and w.key = q.key and w.state = 'waiting'
        order by w.n desc limit 1) as last_ticket,
    (select count(*) from rate_calls r
        where r.tenant_id = $1 and r.document = q.document and r.limit_name = q.limit_name and r.key = q.key and r.state = 'running'
            and (r.session_id, r.call_id) <> ($5, $6)) as running) s
order by q.nth

-- name: RateBucketsTake
update rate_buckets b set next_at = q.next_at
from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[]) as q(document, limit_name, key, next_at)
where b.tenant_id = $1 and b.document = q.document and b.limit_name = q.limit_name and b.key = q.key

-- name: RateCallsLeave
-- Ends the waiting of a call.
update rate_calls r set state = 'over', until = clock_timestamp()
where r.tenant_id = $1 and r.session_id = $2 and r.call_id = $3 and r.state = 'waiting'

-- name: RateCallsRun
insert into rate_calls (tenant_id, session_id, call_id, document, limit_name, key, state, fence, until)
select $1, $2, $3, q.document, q.limit_name, q.key, 'running', $7, clock_timestamp() + interval '1 minute'
from unnest($4::text[], $5::text[], $6::text[]) as q(document, limit_name, key)
on conflict (tenant_id, session_id, call_id, document, limit_name, key) do update set
    state = excluded.state, fence = excluded.fence, reason = '', since = excluded.since, until = excluded.until

-- name: RateCallsWait
-- Keeps a call's places in queues. A call that begins to wait gets the last place; the bucket is locked, so nobody else takes its ticket.
insert into rate_calls as r (tenant_id, session_id, call_id, document, limit_name, key, n, state, reason, until)
select $1, $2, $3, q.document, q.limit_name, q.key, 1 + coalesce((select w.n from rate_calls w
        where w.tenant_id = $1 and w.document = q.document and w.limit_name = q.limit_name and w.key = q.key and w.state = 'waiting'
        order by w.n desc limit 1), 0),
    'waiting', $7, clock_timestamp() + make_interval(secs => $8)
from unnest($4::text[], $5::text[], $6::text[]) as q(document, limit_name, key)
on conflict (tenant_id, session_id, call_id, document, limit_name, key) do update set
    n = case r.state when 'waiting' then r.n else excluded.n end, since = case r.state when 'waiting' then r.since else excluded.since end,
    state = excluded.state, reason = excluded.reason, until = excluded.until

-- name: RateCallsRest
-- Lets others pass in the queues in which a call would have its turn, because it waits for other limits.
update rate_calls r set until = clock_timestamp()
where r.tenant_id = $1 and r.session_id = $2 and r.call_id = $3 and r.state = 'waiting' and r.until > clock_timestamp()
    and (r.document, r.limit_name, r.key) not in (
        select q.document, q.limit_name, q.key from unnest($4::text[], $5::text[], $6::text[]) as q(document, limit_name, key))

-- name: RateWaiting
-- The calls of a session that wait.
select r.call_id, min(r.reason) as reason from rate_calls r
where r.tenant_id = $1 and r.session_id = $2 and r.state = 'waiting' and r.until > clock_timestamp()
group by r.call_id limit $3

-- name: RatesForget
select jig_forget_rates($1)

-- name: ExportRateBuckets
select to_json(t)::text from rate_buckets t where t.tenant_id = $1 order by t.document, t.limit_name, t.key

-- name: ExportRateCalls
select to_json(t)::text from rate_calls t where t.tenant_id = $1 order by t.session_id, t.call_id, t.document, t.limit_name, t.key
