-- +goose Up

ALTER TABLE idempotency_records
    ADD COLUMN recoveries   integer     NOT NULL DEFAULT 0,
    ADD COLUMN recover_from timestamptz,
    ADD COLUMN disputed     boolean     NOT NULL DEFAULT false;

-- For the recovery and for operators, who ask for records in progress whose lease is over. Few rows are ever in it, and
-- none of its columns changes in the commit that completes a record but status itself.
CREATE INDEX idempotency_records_in_progress ON idempotency_records (created_at) WHERE status = 'IN_PROGRESS';

-- +goose Down

DROP INDEX idempotency_records_in_progress;
ALTER TABLE idempotency_records
    DROP COLUMN recoveries,
    DROP COLUMN recover_from,
    DROP COLUMN disputed;
