-- name: CallsOlder
select {{call}} from calls c
where c.tenant_id = $1 and c.session_id = $2 and c.frame = '' and c.pass <= $3 and c.status = 'succeeded'
order by c.pass desc, c.ordinal desc, c.call_id desc limit $4
