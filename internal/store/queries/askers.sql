-- name: AskerAdd
-- Adds somebody whose words a session works with. Whoever said something before counts from then on. Without a pass, they said it in the pass
-- that is running; its compositions have read everything but messages, too, and its turn everything that was said before it was stored.
insert into askers (tenant_id, session_id, principal, claimed, by, maker, pass)
select $1, $2, $3, $4, $5, $6, coalesce($7::integer, s.pass - case when $5 <> 'message' or {{asking}} then 1 else 0 end) from sessions s where s.tenant_id = $1 and s.session_id = $2
on conflict (tenant_id, session_id, principal, claimed, by, maker) do update set pass = excluded.pass where askers.pass > excluded.pass

-- name: AskersFlow
-- Adds to session $5 those on whose word a call of session $2 rests, which says something to it.
with {{words}}
insert into askers (tenant_id, session_id, principal, claimed, by, maker, pass)
select $1, $5, w.principal, w.claimed, w.by, w.maker, coalesce($6::integer, s.pass - case when {{asking}} then 1 else 0 end)
from (select distinct a.principal, a.claimed, a.by, a.maker from words a) w join sessions s on s.tenant_id = $1 and s.session_id = $5
on conflict (tenant_id, session_id, principal, claimed, by, maker) do update set pass = excluded.pass where askers.pass > excluded.pass

-- name: Askers
-- Those on whose word a call of session $2 rests.
with {{words}}
select w.principal, w.claimed, w.by, w.maker from words w
group by w.principal, w.claimed, w.by, w.maker order by min(w.depth), min(w.pass), w.principal, w.by, w.claimed, w.maker

-- name: ApprovalAskers
-- Those on whose word a call rested when people were asked about it before.
select a.askers from approvals a
where a.tenant_id = $1 and a.session_id = $2 and a.call_id = $3 and a.kind <> 'reconcile' order by a.id desc limit 1

-- fragment: words
-- The words that a call of session $2 rests on: those that were said before pass $3, and those of the sessions that calls of passes before $4 have
-- started, whose results it may have read.
recursive tree(session_id, before, below, depth) as (
    select $2::text, $3::integer, $4::integer, 0
    union all
    select s.session_id, 2147483647, 2147483647, t.depth + 1 from tree t
    join sessions s on s.tenant_id = $1 and s.parent_id = t.session_id and split_part(s.parent_call, '.', 1)::integer < t.below
    where t.depth < 20
), words as (
    select a.principal, a.claimed, a.by, a.maker, a.pass, t.depth from tree t
    join askers a on a.tenant_id = $1 and a.session_id = t.session_id and a.pass < t.before
)

-- fragment: asking
-- Whether the running pass of the session s has no turn yet: the model may read what is said now.
not exists (select from turns r where r.tenant_id = s.tenant_id and r.session_id = s.session_id and r.pass = s.pass)
