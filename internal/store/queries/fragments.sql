-- Texts that several queries share. {{name}} in a query is replaced by the fragment.

-- fragment: session
s.tenant_id as tenant, s.session_id as id, s.agent, s.principal, s.input, s.task, s.catalog, s.status, s.pass, s.writes, s.read_private, s.read_untrusted, s.tokens, s.todo,
s.answer, s.answer_artifact, s.reason, s.error, s.parent_id, s.parent_call, s.parent_agent, s.root_agent, s.depth, s.source,
s.summary_through, s.summary, s.created_at, s.updated_at, s.request_digest

-- fragment: call
c.tenant_id as tenant, c.session_id, c.call_id as id, c.pass, c.ordinal, c.provider_id, c.tool, c.version, c.write, c.idempotent, c.input,
c.signature, c.concurrency_key, c.digest, c.policy_version, c.verdict, c.reasons, c.status, c.fence, c.attempt, c.duplicate_of,
c.in_doubt, c.failed_at, c.failures, c.tried, c.result, c.result_artifact, c.frame, c.patch, c.edited_by, c.reads_private, c.reads_untrusted, c.flow, c.preview, c.previews, c.idempotency_key, c.child, c.created_at, c.started_at, c.finished_at

-- fragment: call_order
c.pass, c.ordinal, c.created_at, c.nth, c.call_id

-- fragment: approval
a.tenant_id as tenant, a.id, a.session_id, a.call_id as call, a.kind, a.status, a.tool, a.input, a.truncated, a.summary, a.reasons, a.digest,
a.approved_digest, a.requested_by, a.agent, a.policy_version, a.requested_at, a.expires_at, a.terms, a.votes, a.delegations,
a.noticed_at, a.question, a.grant_id as grant, a.decided_by, a.claimed, a.parent_id, a.parent_call, a.attempt, a.preview, a.askers,
(select json_agg(json_build_object('by', e.decided_by, 'claimed', e.claimed, 'at', e.decided_at, 'note', e.note, 'patch', e.patch) order by e.id)
    from approvals e where e.tenant_id = a.tenant_id and e.session_id = a.session_id and e.call_id = a.call_id and e.id <= a.id and e.patch::text <> '[]') as edits

-- fragment: grant
g.tenant_id as tenant, g.grant_id as id, g.tool, g.meaning, g.agent, g.condition as when, g.max_uses, g.used, g.expires_at, g.given_by as by, g.claimed, g.proof, g.note, g.session_id,
g.call_id as call, g.created_at, g.revoked_at, g.revoked_by, g.makers

-- fragment: held
-- Whether the open call o cannot go on by itself: it is a composition with open calls, or it has not begun and an earlier call with its
-- concurrency key is open, a pause of its session or of one above holds it back, or it waits for a rate limit of concurrent calls that only
-- calls of its own session take up.
o.status = 'executing' and o.call_id = any(array(select distinct f.open_frame from calls f
        where f.tenant_id = o.tenant_id and f.session_id = o.session_id and f.open_frame is not null))
    or o.status = 'reserved' and (o.concurrency_key <> '' and exists (select from calls k
            where k.tenant_id = o.tenant_id and k.session_id = o.session_id and k.frame = o.frame and k.concurrency_key = o.concurrency_key
                and k.status in ('waiting', 'unknown', 'reserved', 'executing')
                and (k.pass, k.ordinal, k.created_at, k.nth, k.call_id) < (o.pass, o.ordinal, o.created_at, o.nth, o.call_id))
        or exists (select from pauses p where p.tenant_id = o.tenant_id and p.lifted_at is null
            and (p.scope = 'tenant' or p.scope = 'tool' and p.target = o.tool or p.scope = 'session' and p.target = o.session_id))
        or exists (select from rate_calls r
            where r.tenant_id = o.tenant_id and r.session_id = o.session_id and r.call_id = o.call_id and r.state = 'waiting'
            and r.until > clock_timestamp() and (select bool_and(k.session_id = o.session_id) from rate_calls k
                where k.tenant_id = r.tenant_id and k.document = r.document and k.limit_name = r.limit_name and k.key = r.key and k.state = 'running'))
        or exists (with recursive above(session_id, depth) as (
                select u.parent_id, 1 from sessions u where u.tenant_id = o.tenant_id and u.session_id = o.session_id and u.parent_id <> ''
                union all
                select u.parent_id, above.depth + 1 from above
                join sessions u on u.tenant_id = o.tenant_id and u.session_id = above.session_id where u.parent_id <> '' and above.depth < 10
            ) select from above join pauses p on p.tenant_id = o.tenant_id and p.scope = 'session' and p.target = above.session_id and p.lifted_at is null))

-- fragment: stuck
-- Whether the open call o goes on when a rate limit lets it, or when an event or a time comes.
exists (select from rate_calls r where r.tenant_id = o.tenant_id and r.session_id = o.session_id and r.call_id = o.call_id and r.state = 'waiting'
        and r.until > clock_timestamp())
    or exists (select from frames w where w.tenant_id = o.tenant_id and w.session_id = o.session_id and w.call_id = o.call_id and not w.done
        and exists (select from json_array_elements(w.waits) one where one ->> 'retries' is null))

-- fragment: asks
-- Whether the session s waits for its model's provider, or for a rate limit before it begins.
s.model_wait is not null and (s.model_wait ->> 'pass')::integer = s.pass
        and not exists (select from turns t where t.tenant_id = s.tenant_id and t.session_id = s.session_id and t.pass = s.pass)
    or exists (select from rate_calls r where r.tenant_id = s.tenant_id and r.session_id = s.session_id and r.call_id = '' and r.state = 'waiting'
        and r.until > clock_timestamp())

-- fragment: rests
-- Whether a pause holds back the next pass of the session s.
exists (with recursive line(session_id, parent_id, depth) as (
        select s.session_id, s.parent_id, 0
        union all
        select u.session_id, u.parent_id, line.depth + 1 from line
        join sessions u on u.tenant_id = s.tenant_id and u.session_id = line.parent_id where line.parent_id <> '' and line.depth < 10
    ) select from line join pauses p on p.tenant_id = s.tenant_id and p.scope = 'session' and p.target = line.session_id and p.lifted_at is null)
or exists (select from pauses p where p.tenant_id = s.tenant_id and p.scope = 'tenant' and p.lifted_at is null)

-- fragment: delegated
-- The sessions that answer executing calls of the session $2, and the sessions below those. via is the call of $2 that waits for each.
recursive delegated(session_id, parent_id, via, depth) as (
    select c.child, c.session_id, c.call_id, 1 from calls c
    where c.tenant_id = $1 and c.session_id = $2 and c.status = 'executing' and c.child <> ''
    union all
    select c.child, c.session_id, d.via, d.depth + 1 from delegated d
    join calls c on c.tenant_id = $1 and c.session_id = d.session_id and c.status = 'executing' and c.child <> ''
    where d.depth < 10
)
