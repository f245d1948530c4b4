-- What calls wait for at the providers of the models that they ask.

-- +goose Up
-- See ledger.ModelWait; null if no request of the call has failed. The call waits only while it is reserved and its fence is the attempt.
alter table calls add column model_wait json;

-- +goose Down
alter table calls drop column model_wait;
