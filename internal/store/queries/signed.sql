-- name: SignedInsert
insert into signed_decisions (tenant_id, session_id, call_id, token, decision, digest, shown) values ($1, $2, $3, $4, $5, $6, $7)

-- name: SignedOf
select d.token, d.decision, d.digest, d.shown from signed_decisions d
where d.tenant_id = $1 and d.session_id = $2 and d.call_id = $3 order by d.n
