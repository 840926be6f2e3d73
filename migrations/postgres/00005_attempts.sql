-- +goose Up

-- The last attempt that an operator's word has ended: whoever charges the order after it asks the provider's list first.
ALTER TABLE orders ADD COLUMN written_off integer NOT NULL DEFAULT 0
    CONSTRAINT orders_written_off CHECK (written_off BETWEEN 0 AND attempt);

-- Whom the attempt was asked of: another provider knows nothing of it. NULL where nobody wrote it down.
ALTER TABLE orders ADD COLUMN attempt_provider text;

-- +goose Down

ALTER TABLE orders DROP COLUMN attempt_provider;
ALTER TABLE orders DROP COLUMN written_off;
