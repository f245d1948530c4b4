-- name: LoginsPrune
-- Logins that ended a while ago are not needed any more, not even to recognize their attempts.
delete from logins l where l.tenant_id = $1 and (l.expires_at < now() or l.used_at < now() - $2::interval or l.revoked_at < now() - interval '1 day')

-- name: LoginInsert
insert into logins (tenant_id, login_id, hash, attempt, issuer, subject, name, groups, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp() + $9::interval)
on conflict (attempt) do nothing
returning tenant_id, login_id, issuer, subject, name, groups, created_at, expires_at

-- name: LoginFind
select q.tenant_id, q.login_id, q.issuer, q.subject, q.name, q.groups, q.created_at, q.expires_at from jig_login($1, $2, $3) q

-- name: LoginsValid
select q from jig_logins_valid($1::text[], $2) q

-- name: LoginsOf
select l.tenant_id, l.login_id, l.issuer, l.subject, l.name, l.groups, l.created_at, l.expires_at from logins l
where l.tenant_id = $1 and l.revoked_at is null and l.expires_at > now() and l.used_at > now() - $2::interval order by l.created_at, l.login_id

-- name: LoginEnd
-- Ending a login again changes nothing.
update logins l set revoked_at = now() where l.tenant_id = $1 and l.login_id = $2 and l.revoked_at is null
returning case when l.issuer = '' then 'dev_login' else 'login' end
