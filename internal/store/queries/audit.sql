-- name: AuditAppend
select jig_audit($1, $2, $3, $4)

-- name: AuditRows
select n, encode(prev, 'hex') as prev, encode(hash, 'hex') as hash, entry
from audit where tenant_id = $1 and n > $2 order by n limit $3

-- fragment: audit_between
($4::timestamptz is null or at >= $4) and ($5::timestamptz is null or at < $5)

-- name: AuditFind
-- plan: custom
select n, encode(prev, 'hex') as prev, encode(hash, 'hex') as hash, entry
from audit where tenant_id = $1 and n > $2 and {{audit_between}} order by n limit $3

-- name: AuditFindSession
-- plan: custom
select n, encode(prev, 'hex') as prev, encode(hash, 'hex') as hash, entry
from audit where tenant_id = $1 and n > $2 and {{audit_between}} and session_id = $6 and session_id <> '' order by n limit $3

-- name: AuditHead
select n, encode(hash, 'hex') as hash from audit_heads where tenant_id = $1

-- name: AuditEntriesOfCall
select entry from audit where tenant_id = $1 and session_id = $2 and session_id <> '' and call_id = $3 and kind = $4 order by n
