-- name: TokenUsed
select u.request, u.changed from used_tokens u where u.tenant_id = $1 and u.token = $2

-- name: TokenUse
insert into used_tokens (tenant_id, token, request, changed, expires_at) values ($1, $2, $3, $4, $5)

-- name: TokensForget
select jig_forget_tokens($1, $2)
