-- +goose Up

-- Whom the attempt was asked of: another provider knows nothing of it. NULL where nobody wrote it down.
ALTER TABLE orders ADD COLUMN attempt_provider text;

-- +goose Down

ALTER TABLE orders DROP COLUMN attempt_provider;
