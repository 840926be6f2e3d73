-- +goose Up

ALTER TABLE idempotency_records ADD COLUMN recoveries integer NOT NULL DEFAULT 0;
ALTER TABLE idempotency_records ADD COLUMN recover_from integer;
ALTER TABLE idempotency_records ADD COLUMN disputed integer NOT NULL DEFAULT 0;

-- For the recovery and for operators, who ask for records in progress whose lease is over.
CREATE INDEX idempotency_records_in_progress ON idempotency_records (created_at) WHERE status = 'IN_PROGRESS';

-- +goose Down

DROP INDEX idempotency_records_in_progress;
ALTER TABLE idempotency_records DROP COLUMN disputed;
ALTER TABLE idempotency_records DROP COLUMN recover_from;
ALTER TABLE idempotency_records DROP COLUMN recoveries;
