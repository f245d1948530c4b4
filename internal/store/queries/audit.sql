-- name: AuditAppend
select jig_audit($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: AuditRows
select n, encode(prev, 'hex') as prev, encode(hash, 'hex') as hash, entry
from audit where tenant_id = $1 and n > $2 order by n limit $3

-- name: AuditSpan
-- The numbers of the first rows that were written at or after $2 and at or after $3. Numbers grow with time.
select (select a.n from audit a where a.tenant_id = $1 and a.at >= $2 order by a.at, a.n limit 1) as since,
    (select a.n from audit a where a.tenant_id = $1 and a.at >= $3 order by a.at, a.n limit 1) as until

-- fragment: audit_filter
-- The rows of a filter with numbers above $2 and below $3. An empty text does not filter; $7 and $8 are the first tool of a category and what follows
-- its last.
a.tenant_id = $1 and a.n > $2 and a.n < $3
    and ($4 = '' or a.session_id = $4 and a.session_id <> '') and ($5 = '' or a.principal = $5 and a.principal <> '')
    and ($6 = '' or a.tool = $6 collate "C" and a.tool <> '') and ($7 = '' or a.tool >= $7 collate "C" and a.tool < $8 collate "C")
    and ($9 = '' or a.agent = $9 and a.agent <> '') and ($10 = '' or a.outcome = $10 and a.outcome <> '')

-- name: AuditFind
-- plan: custom
select a.n, encode(a.prev, 'hex') as prev, encode(a.hash, 'hex') as hash, a.entry
from audit a where {{audit_filter}} order by a.n limit $11

-- name: AuditDecisions
-- plan: custom
-- Decisions about calls, the latest first, with what the calls have come to. Approvals that did not suffice are listed only with those of their person.
select a.n, a.entry, c.status, c.summary, c.error
from audit a left join calls c on c.tenant_id = a.tenant_id and c.session_id = a.session_id and c.call_id = a.call_id
where {{audit_filter}} and a.outcome <> '' and (not a.in_part or $5 <> '') order by a.n desc limit $11

-- name: AuditDecisionsOfCall
-- The latest decisions about a call, the latest first.
select a.n, a.entry, c.status, c.summary, c.error
from audit a left join calls c on c.tenant_id = a.tenant_id and c.session_id = a.session_id and c.call_id = a.call_id
where a.tenant_id = $1 and a.session_id = $2 and a.session_id <> '' and a.call_id = $3 and a.outcome <> '' order by a.n desc limit $4

-- name: AuditHead
select n, encode(hash, 'hex') as hash from audit_heads where tenant_id = $1

-- name: AuditEntriesOfCall
select entry from audit where tenant_id = $1 and session_id = $2 and session_id <> '' and call_id = $3 and kind = $4 order by n
