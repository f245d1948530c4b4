-- What a session waits for at its model's provider.

-- +goose Up
-- See ledger.ModelWait; null if no request of the session has failed. It says something only about the pass that it names, and only until
-- that pass has its turn.
alter table sessions add column model_wait json;

-- +goose Down
alter table sessions drop column model_wait;
