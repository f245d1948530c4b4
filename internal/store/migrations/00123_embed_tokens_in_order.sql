-- +goose Up

-- Each new token deletes old ones, and sites make one for each visitor.
create index embed_tokens_in_order on embed_tokens (tenant_id, created_at, token_id);

-- +goose Down
drop index embed_tokens_in_order;
