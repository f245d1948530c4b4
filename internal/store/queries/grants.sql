-- name: GrantInsert
insert into grants (tenant_id, grant_id, tool, agent, condition, max_uses, expires_at, given_by, claimed, note, session_id, call_id, created_at,
    meaning, proof, makers)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
on conflict do nothing

-- name: GrantsLive
-- The grants that may cover calls of some tools. The oldest come first, so that they are used up first.
select {{grant}} from grants g
where g.tenant_id = $1 and g.tool = any($2::text[]) and g.revoked_at is null and g.used < g.max_uses and g.expires_at > $3
order by g.created_at, g.grant_id limit 1000

-- name: Grants
select {{grant}} from grants g
where g.tenant_id = $1 and (g.created_at, g.grant_id) < ($2, $3) and ($4 or g.revoked_at is null and g.used < g.max_uses and g.expires_at > $5)
order by g.created_at desc, g.grant_id desc limit $6

-- name: GrantGet
select {{grant}} from grants g where g.tenant_id = $1 and g.grant_id = $2

-- name: GrantLock
select {{grant}} from grants g where g.tenant_id = $1 and g.grant_id = $2 for no key update

-- name: GrantUse
-- Counts one use if the grant is still valid and was given for the contract $3. The row's lock makes the count exact.
update grants g set used = g.used + 1
where g.tenant_id = $1 and g.grant_id = $2 and g.meaning = $3 and g.revoked_at is null and g.used < g.max_uses
    and g.expires_at > clock_timestamp()
returning {{grant}}

-- name: GrantRevoke
update grants g set revoked_at = $3, revoked_by = $4
where g.tenant_id = $1 and g.grant_id = $2 and g.revoked_at is null

-- name: PausePut
-- $8 names the actor whose pauses end by themselves. A person's pause takes the place of such a pause.
insert into pauses (tenant_id, scope, target, by, claimed, reason, at) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant_id, scope, target) do update
    set by = excluded.by, claimed = excluded.claimed, reason = excluded.reason, at = excluded.at, lifted_at = null, lifted_by = ''
    where pauses.lifted_at is not null or pauses.by = $8 and excluded.by <> $8

-- name: PauseLift
update pauses p set lifted_at = $4, lifted_by = $5
where p.tenant_id = $1 and p.scope = $2 and p.target = $3 and p.lifted_at is null

-- name: Pauses
-- Without the pauses of the actor $2 whose sessions have ended.
select p.scope, p.target, p.by, p.claimed, p.reason, p.at from pauses p
where p.tenant_id = $1 and p.lifted_at is null and not (p.by = $2 and exists (select from sessions s
    where s.tenant_id = $1 and s.session_id = p.target and s.status in ('completed', 'failed', 'canceled')))
order by p.at, p.scope, p.target

-- name: PausesOfSession
-- The pauses that can hold back calls of a session: those of the tenant, of tools, of the session, and of the sessions above it.
with recursive line(session_id, parent_id, depth) as (
    select s.session_id, s.parent_id, 0 from sessions s where s.tenant_id = $1 and s.session_id = $2
    union all
    select s.session_id, s.parent_id, l.depth + 1 from line l
    join sessions s on s.tenant_id = $1 and s.session_id = l.parent_id where l.parent_id <> '' and l.depth < 10
)
select p.scope, p.target, p.by, p.claimed, p.reason, p.at from pauses p
where p.tenant_id = $1 and p.lifted_at is null
    and (p.scope <> 'session' or p.target in (select l.session_id from line l))
order by p.at, p.scope, p.target

-- name: CallHeld
-- The tool of a call that has not begun, and the pause that last held it back.
select c.tool, c.held_by from calls c where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.status = 'reserved'

-- name: CallHeldBack
-- Whether only people can let a call begin that has not begun.
select {{held}} from calls o where o.tenant_id = $1 and o.session_id = $2 and o.call_id = $3 and o.status = 'reserved'

-- name: CallHeldBy
-- Records the event that a pause holds back a call, once for each pause.
with c as (
    update calls c set held_by = $4
    where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3 and c.status = 'reserved' and c.held_by <> $4
    returning c.pass, c.tool
), n as (
    update sessions s set last_seq = s.last_seq + 1, updated_at = clock_timestamp()
    from c where s.tenant_id = $1 and s.session_id = $2
    returning s.last_seq, c.pass, c.tool
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, call_id, tool, data)
    select $1, $2, n.last_seq, clock_timestamp(), 'tool.paused', n.pass, $3, n.tool, $5::json from n
)
select n.last_seq from n

-- name: SessionHeldBy
-- Records the event that a pause holds back the next pass of a session, once for each pause.
with n as (
    update sessions s set held_by = $3, last_seq = s.last_seq + 1, updated_at = clock_timestamp()
    where s.tenant_id = $1 and s.session_id = $2 and s.held_by <> $3 and s.status in ('working', 'input_required')
    returning s.last_seq, s.pass
), e as (
    insert into events (tenant_id, session_id, seq, at, type, pass, data)
    select $1, $2, n.last_seq, clock_timestamp(), 'session.paused', n.pass, $4::json from n
)
select n.last_seq from n
