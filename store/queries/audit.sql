-- name: AuditAppend
select jig_audit($1, $2, $3, $4)

-- name: AuditRows
select n, encode(prev, 'hex') as prev, encode(hash, 'hex') as hash, entry
from audit where tenant_id = $1 and n > $2 order by n limit $3

-- name: AuditFind
select n, encode(prev, 'hex') as prev, encode(hash, 'hex') as hash, entry
from audit
where tenant_id = $1 and n > $2 and ($4 = '' or session_id = $4)
    and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
order by n limit $3

-- name: AuditHead
select n, encode(hash, 'hex') as hash from audit_heads where tenant_id = $1
